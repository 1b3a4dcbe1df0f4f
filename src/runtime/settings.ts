// SPDX-License-Identifier: Apache-2.0
// The settings table: one entry gives the flag, the environment variable, the default, the check, the reference page
// and the chart's schema. Providers bring tables of the same shape.
import { messageOf } from '../base/errors.ts';
import { compareStrings } from '../base/order.ts';
import { emptySchedulerConfig, readSchedulerConfig } from './scheduler-config.ts';
import { bool, decimal, document, duration, gates, int, list, oneOf, type Setting, text } from './setting-types.ts';

/** Settings by the name the program uses. */
// oxlint-disable-next-line typescript/no-explicit-any -- each entry has a value type of its own
export type SettingsTable = Readonly<Record<string, Setting<any>>>;

/** The values of a table. */
export type SettingsOf<T extends SettingsTable> = {
  readonly [K in keyof T]: T[K] extends Setting<infer V> ? V : never;
};

/** The settings of the core: upstream's names, defaults and meanings. */
export const coreSettings = {
  karpenterService: text({
    flag: 'karpenter-service',
    env: 'KARPENTER_SERVICE',
    default: '',
    help: 'Name of the Service in front of the controller. Kept for charts that set it; nothing reads it.',
  }),
  metricsPort: int({
    flag: 'metrics-port',
    env: 'METRICS_PORT',
    chart: ['controller.metrics.port', 'metricsPort.port'],
    default: 8080,
    min: 0,
    max: 65535,
    help: 'Port of /metrics. 0 takes a free one.',
  }),
  healthProbePort: int({
    flag: 'health-probe-port',
    env: 'HEALTH_PROBE_PORT',
    chart: ['controller.healthProbe.port', 'healthProbePort.port'],
    default: 8081,
    min: 0,
    max: 65535,
    help: 'Port of /healthz and /readyz. 0 takes a free one.',
  }),
  kubeClientQps: int({
    flag: 'kube-client-qps',
    env: 'KUBE_CLIENT_QPS',
    chart: ['settings.kubeClientQps'],
    default: 200,
    min: 1,
    help: 'Requests a second to each API server, on average.',
  }),
  kubeClientBurst: int({
    flag: 'kube-client-burst',
    env: 'KUBE_CLIENT_BURST',
    chart: ['settings.kubeClientBurst'],
    default: 300,
    min: 1,
    help: 'Requests to each API server that may go out at once after a quiet time.',
  }),
  enableProfiling: bool({
    flag: 'enable-profiling',
    env: 'ENABLE_PROFILING',
    chart: ['settings.enableProfiling'],
    default: false,
    help: 'Serve CPU profiles and heap snapshots below /debug on the metrics port.',
  }),
  disableControllerWarmup: bool({
    flag: 'disable-controller-warmup',
    env: 'DISABLE_CONTROLLER_WARMUP',
    chart: ['settings.disableControllerWarmup'],
    default: true,
    help: 'Fill caches only once the lease is held. With false a standby replica keeps them filled and takes over sooner.',
  }),
  disableLeaderElection: bool({
    flag: 'disable-leader-election',
    env: 'DISABLE_LEADER_ELECTION',
    default: false,
    help: 'Run without a lease. Only safe with a single replica.',
  }),
  disableClusterStateObservability: bool({
    flag: 'disable-cluster-state-observability',
    env: 'DISABLE_CLUSTER_STATE_OBSERVABILITY',
    chart: ['settings.disableClusterStateObservability'],
    default: false,
    help: 'Leave out the metrics and events about pods, nodes and NodePools.',
  }),
  leaderElectionName: text({
    flag: 'leader-election-name',
    env: 'LEADER_ELECTION_NAME',
    chart: ['settings.leaderElectionName'],
    default: 'karpenter-leader-election',
    help: 'Name of the Lease.',
  }),
  leaderElectionNamespace: text({
    flag: 'leader-election-namespace',
    env: 'LEADER_ELECTION_NAMESPACE',
    default: '',
    help: "Namespace of the Lease. Empty: SYSTEM_NAMESPACE, else the pod's own namespace.",
  }),
  systemNamespace: text({
    env: 'SYSTEM_NAMESPACE',
    default: '',
    help: 'Namespace the controller runs in.',
  }),
  memoryLimit: int({
    flag: 'memory-limit',
    env: 'MEMORY_LIMIT',
    default: -1,
    help: "Memory limit of the container in bytes; -1 for none. The heap's limit is set to 90 % of it.",
  }),
  cpuRequests: int({
    flag: 'cpu-requests',
    env: 'CPU_REQUESTS',
    default: 1000,
    adjust: (value) => (value <= 0 ? 1000 : value),
    help: 'CPU requests of the container in millicores; controllers work on more objects at once with more. 0 and less mean 1000.',
  }),
  logLevel: oneOf({
    flag: 'log-level',
    env: 'LOG_LEVEL',
    chart: ['logLevel'],
    default: 'info',
    values: ['', 'debug', 'info', 'error'],
    help: 'The least urgent lines that are written. Empty means info.',
  }),
  logOutputPaths: list({
    flag: 'log-output-paths',
    env: 'LOG_OUTPUT_PATHS',
    chart: ['logOutputPaths'],
    default: ['stdout'],
    help: 'Where the log goes: stdout, stderr or files.',
  }),
  logErrorOutputPaths: list({
    flag: 'log-error-output-paths',
    env: 'LOG_ERROR_OUTPUT_PATHS',
    chart: ['logErrorOutputPaths'],
    default: ['stderr'],
    help: 'Where failures of the logger itself go.',
  }),
  batchMaxDuration: duration({
    flag: 'batch-max-duration',
    env: 'BATCH_MAX_DURATION',
    chart: ['settings.batchMaxDuration', 'env.batchMaxDuration'],
    default: '10s',
    help: 'The longest time pending pods are collected before they are scheduled together. More time gives fewer, larger nodes.',
  }),
  batchIdleDuration: duration({
    flag: 'batch-idle-duration',
    env: 'BATCH_IDLE_DURATION',
    chart: ['settings.batchIdleDuration', 'env.batchIdleDuration'],
    default: '1s',
    help: 'How long no new pod may come before collecting ends early.',
  }),
  preferencePolicy: oneOf({
    flag: 'preference-policy',
    env: 'PREFERENCE_POLICY',
    chart: ['settings.preferencePolicy', 'env.preferencePolicy'],
    default: 'Respect',
    values: ['Respect', 'Ignore'],
    help: 'Whether preferred affinities and ScheduleAnyway spread constraints are tried before they are dropped.',
  }),
  minValuesPolicy: oneOf({
    flag: 'min-values-policy',
    env: 'MIN_VALUES_POLICY',
    chart: ['settings.minValuesPolicy'],
    default: 'Strict',
    values: ['Strict', 'BestEffort'],
    help: 'Whether minValues of a requirement may be given up when nothing satisfies them.',
  }),
  ignoreDraRequests: bool({
    flag: 'ignore-dra-requests',
    env: 'IGNORE_DRA_REQUESTS',
    chart: ['settings.ignoreDRARequests'],
    default: true,
    help: 'Schedule pods as if they claimed no devices. With false, devices are allocated in scheduling.',
  }),
  consolidationSavingsThreshold: decimal({
    flag: 'consolidation-savings-threshold',
    env: 'CONSOLIDATION_SAVINGS_THRESHOLD',
    chart: ['settings.consolidationSavingsThreshold'],
    default: 0,
    min: 0,
    max: 100,
    help: 'How many percent of the price of the nodes that go a consolidation must save at least. 0: any saving counts, as upstream has it.',
  }),
  podMovePrice: decimal({
    flag: 'pod-move-price',
    env: 'POD_MOVE_PRICE',
    chart: ['settings.podMovePrice'],
    default: 0,
    min: 0,
    help: 'How much a consolidation must save by the hour for each pod it moves. 0: moving is free, as upstream has it.',
  }),
  featureGates: gates({
    flag: 'feature-gates',
    env: 'FEATURE_GATES',
    chart: ['settings.featureGates'],
    default: {
      NodeRepair: false,
      ReservedCapacity: true,
      SpotToSpotConsolidation: false,
      NodeOverlay: false,
      StaticCapacity: false,
      CapacityBuffer: false,
    },
    help: 'Switches for optional features.',
  }),
  schedulerConfig: document({
    flag: 'scheduler-config',
    env: 'SCHEDULER_CONFIG',
    chart: ['settings.schedulerConfig'],
    empty: emptySchedulerConfig,
    read: readSchedulerConfig,
    help: 'Scheduling defaults: podTopologySpread.defaultConstraints for pods that name none.',
  }),
};

export type Settings = SettingsOf<typeof coreSettings>;
export type FeatureGates = Settings['featureGates'];

/** Either settings, or everything that is wrong. Warnings come with both. */
export type ParseOutcome<T extends SettingsTable> =
  | { readonly settings: SettingsOf<T>; readonly problems: undefined; readonly warnings: readonly string[] }
  | { readonly settings: undefined; readonly problems: readonly string[]; readonly warnings: readonly string[] };

/**
 * Reads the settings of a table from arguments (without the program's name) and an environment. A flag wins over its
 * variable. A flag that cannot be read is a problem; a variable that cannot be read is a warning, and the default
 * counts (upstream says nothing), except for what is `strict`; a value that is read but not allowed is a problem either way. All problems are
 * reported at once. The result is frozen.
 */
export function parseSettings<T extends SettingsTable>(
  table: T,
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): ParseOutcome<T> {
  const warnings: string[] = [];
  const { given, problems } = readFlags(table, argv);
  const values: Record<string, unknown> = {};
  for (const [key, setting] of Object.entries(table)) {
    const source = valueSource(setting, given, env);
    const value: unknown = source ? readValue(setting, source, problems, warnings) : setting.default;
    values[key] = setting.adjust ? setting.adjust(value) : value;
  }
  if (problems.length > 0) return { settings: undefined, problems, warnings };
  return { settings: Object.freeze(values) as SettingsOf<T>, problems: undefined, warnings };
}

/** The defaults of a table: what an empty command line and environment give. */
export function defaultSettings<T extends SettingsTable>(
  table: T,
  changes: Partial<SettingsOf<T>> = {},
): SettingsOf<T> {
  const defaults = Object.fromEntries(Object.entries(table).map(([key, setting]) => [key, setting.default as unknown]));
  return Object.freeze({ ...defaults, ...changes }) as SettingsOf<T>;
}

interface Source {
  readonly from: 'flag' | 'env';
  /** As the user wrote it: `--metrics-port` or `METRICS_PORT`. */
  readonly name: string;
  readonly text: string;
}

function valueSource(
  setting: Setting,
  given: ReadonlyMap<string, string>,
  env: Readonly<Record<string, string | undefined>>,
): Source | undefined {
  const flagText = setting.flag === undefined ? undefined : given.get(setting.flag);
  if (flagText !== undefined) return { from: 'flag', name: `--${setting.flag}`, text: flagText };
  const envText = env[setting.env];
  // A chart writes an empty variable where a value was left out; only plain text can mean to be empty.
  if (envText === undefined || (envText === '' && setting.type !== 'string')) return undefined;
  return { from: 'env', name: setting.env, text: envText };
}

function readValue(setting: Setting, source: Source, problems: string[], warnings: string[]): unknown {
  const shown = source.text.length > 80 ? `${source.text.slice(0, 80)}…` : source.text;
  let value: unknown;
  try {
    value = setting.parse(source.text, source.from, (message) => warnings.push(`${source.name}: ${message}`));
  } catch (error) {
    const message = `${source.name}="${shown}" ${messageOf(error)}`;
    if (source.from === 'flag' || setting.strict) problems.push(message);
    else warnings.push(`${message}; using the default, ${setting.format(setting.default) || 'empty'}`);
    return setting.default;
  }
  const refused = setting.check(value);
  if (refused !== undefined) problems.push(`${source.name}="${shown}" ${refused}`);
  return value;
}

function readFlags(table: SettingsTable, argv: readonly string[]): { given: Map<string, string>; problems: string[] } {
  const flags = new Map(Object.values(table).flatMap((s) => (s.flag === undefined ? [] : [[s.flag, s as Setting]])));
  const given = new Map<string, string>();
  const problems: string[] = [];
  let previousBool: string | undefined;
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i]!;
    const match = /^--?([^-=][^=]*)(?:=([\s\S]*))?$/.exec(argument);
    if (!match) {
      const hint = previousBool ? `; a boolean takes its value as --${previousBool}=${argument}` : '';
      problems.push(`unexpected argument "${argument}"${hint}`);
      previousBool = undefined;
      continue;
    }
    previousBool = undefined;
    const name = match[1]!;
    let value = match[2];
    const setting = flags.get(name);
    if (!setting) {
      const near = nearest(name, [...flags.keys()]);
      problems.push(`unknown flag --${name}${near ? `; did you mean --${near}?` : ''}`);
      // Its value, if it looks like one, must not be reported as well.
      if (value === undefined && argv[i + 1] !== undefined && !argv[i + 1]!.startsWith('-')) i++;
      continue;
    }
    if (value === undefined && setting.type === 'bool') {
      value = 'true';
      previousBool = name;
    } else if (value === undefined) {
      i++;
      value = argv[i];
      if (value === undefined) {
        problems.push(`--${name} needs a value`);
        continue;
      }
    }
    given.set(name, value);
  }
  return { given, problems };
}

/** The known name that takes the fewest edits, if it takes few enough to be a slip. */
function nearest(name: string, known: readonly string[]): string | undefined {
  const ranked = known
    .map((candidate) => ({ candidate, edits: editDistance(name, candidate) }))
    .toSorted((a, b) => a.edits - b.edits || compareStrings(a.candidate, b.candidate));
  const best = ranked[0];
  return best && best.edits <= Math.max(2, Math.floor(name.length / 3)) ? best.candidate : undefined;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}

/** A titled table for the reference page. */
export interface SettingsGroup {
  readonly title: string;
  readonly table: SettingsTable;
}

/** `docs/reference/settings.md`. */
export function renderSettingsReference(
  groups: readonly SettingsGroup[] = [{ title: 'Core', table: coreSettings }],
): string {
  const lines = [
    '<!-- Generated from src/runtime/settings.ts by `npm run generate`. Do not edit. -->',
    '',
    '# Settings',
    '',
    'Each setting is a flag and an environment variable; the flag wins. Booleans on the command line are `--flag`,',
    '`--flag=true` or `--flag=false`. Durations are written as in Go: `10s`, `1m30s`, `500ms`. A flag that cannot be read',
    'stops the program with exit code 2, and all problems are named at once. A variable that cannot be read is warned about',
    'and the default counts, except for feature gates and documents; a value that is read but not allowed stops the program',
    'wherever it comes from. In the [chart](chart.md) most of them have a value of their own; the others go into',
    '`controller.env`.',
  ];
  for (const { title, table } of groups) {
    lines.push(
      '',
      `## ${title}`,
      '',
      '| Flag | Environment | Chart value | Type | Default | Meaning |',
      '|---|---|---|---|---|---|',
    );
    for (const setting of Object.values(table)) {
      const shown = setting.format(setting.default);
      const cells = [
        setting.flag === undefined ? '–' : `\`--${setting.flag}\``,
        `\`${setting.env}\``,
        setting.chart === undefined ? '–' : `\`${setting.chart[0]}\``,
        setting.type,
        shown === ''
          ? '–'
          : shown
              .split(',')
              .map((part) => `\`${part}\``)
              .join(', '),
        setting.help,
      ];
      lines.push(`| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`);
    }
  }
  return `${lines.join('\n')}\n`;
}

/** The flags of a table for `--help`, one per line. */
export function renderSettingsHelp(table: SettingsTable): string {
  const rows = Object.values(table).flatMap((setting) => {
    if (setting.flag === undefined) return [];
    const shown = setting.format(setting.default);
    return [[`--${setting.flag}`, `${setting.help} [${setting.env}${shown ? `, default ${shown}` : ''}]`] as const];
  });
  const width = Math.max(0, ...rows.map(([flag]) => flag.length));
  return rows.map(([flag, help]) => `  ${flag.padEnd(width)}  ${help}`).join('\n');
}
