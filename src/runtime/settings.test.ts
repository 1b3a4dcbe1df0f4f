// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { int, list, text } from './setting-types.ts';
import {
  coreSettings,
  defaultSettings,
  parseSettings,
  renderSettingsHelp,
  renderSettingsReference,
} from './settings.ts';

const parse = (argv: string[] = [], env: Record<string, string> = {}) => parseSettings(coreSettings, argv, env);
const settingsOf = (argv: string[] = [], env: Record<string, string> = {}) => {
  const { settings, problems } = parse(argv, env);
  expect(problems).toBeUndefined();
  return settings!;
};

describe('settings', () => {
  test('have upstream defaults when nothing is given', () => {
    expect(settingsOf()).toEqual(defaultSettings(coreSettings));
    expect(settingsOf()).toMatchObject({
      metricsPort: 8080,
      healthProbePort: 8081,
      kubeClientQps: 200,
      kubeClientBurst: 300,
      disableControllerWarmup: true,
      memoryLimit: -1,
      cpuRequests: 1000,
      batchMaxDuration: 10_000,
      batchIdleDuration: 1000,
      preferencePolicy: 'Respect',
      minValuesPolicy: 'Strict',
      ignoreDraRequests: true,
      featureGates: { ReservedCapacity: true, NodeRepair: false },
      schedulerConfig: { podTopologySpread: { defaultConstraints: [] } },
    });
  });

  test('come from the environment, and a flag wins over it', () => {
    const env = { METRICS_PORT: '1', HEALTH_PROBE_PORT: '2', SYSTEM_NAMESPACE: 'karpenter' };
    expect(settingsOf(['--metrics-port', '9'], env)).toMatchObject({
      metricsPort: 9,
      healthProbePort: 2,
      systemNamespace: 'karpenter',
    });
  });

  test('take flags with one dash or two, with an equals sign or a space', () => {
    const { settings } = parse(['-metrics-port=1', '--health-probe-port', '2', '--memory-limit', '-1', '--log-level=']);
    expect(settings).toMatchObject({ metricsPort: 1, healthProbePort: 2, memoryLimit: -1, logLevel: '' });
  });

  test('take booleans as --flag, --flag=true and --flag=false only', () => {
    expect(settingsOf(['--enable-profiling']).enableProfiling).toBe(true);
    expect(settingsOf(['--enable-profiling=false'], { ENABLE_PROFILING: 'T' }).enableProfiling).toBe(false);
    expect(settingsOf([], { ENABLE_PROFILING: '1' }).enableProfiling).toBe(true);
    expect(parse(['--enable-profiling=1']).problems).toEqual(['--enable-profiling="1" must be true or false']);
    expect(parse(['--enable-profiling', 'true']).problems).toEqual([
      'unexpected argument "true"; a boolean takes its value as --enable-profiling=true',
    ]);
  });

  test('hold durations in milliseconds', () => {
    expect(settingsOf(['--batch-max-duration=1m30s'], { BATCH_IDLE_DURATION: '250ms' })).toMatchObject({
      batchMaxDuration: 90_000,
      batchIdleDuration: 250,
    });
    expect(parse(['--batch-max-duration=10']).problems).toEqual([
      '--batch-max-duration="10" must be a duration such as 10s, 1m30s or 500ms',
    ]);
    expect(parse(['--batch-max-duration=-1s']).problems).toEqual(['--batch-max-duration="-1s" must not be negative']);
  });

  test('cannot be changed', () => {
    const settings = settingsOf() as { metricsPort: number };
    expect(() => (settings.metricsPort = 1)).toThrow(TypeError);
  });

  test('take cpu requests of nothing as one core', () => {
    expect(settingsOf(['--cpu-requests=0']).cpuRequests).toBe(1000);
    expect(settingsOf([], { CPU_REQUESTS: '-5' }).cpuRequests).toBe(1000);
    expect(settingsOf([], { CPU_REQUESTS: '2500' }).cpuRequests).toBe(2500);
  });

  test('take an empty variable as not given, except for plain text', () => {
    const { settings, warnings } = parse([], { METRICS_PORT: '', LOG_LEVEL: '', LEADER_ELECTION_NAME: '' });
    expect(settings).toMatchObject({ metricsPort: 8080, logLevel: 'info', leaderElectionName: '' });
    expect(warnings).toEqual([]);
  });
});

describe('a mistake', () => {
  test('in a variable is warned about and the default counts', () => {
    const { settings, warnings } = parse([], { METRICS_PORT: 'eighty', BATCH_IDLE_DURATION: '1 second' });
    expect(settings).toMatchObject({ metricsPort: 8080, batchIdleDuration: 1000 });
    expect(warnings).toEqual([
      'METRICS_PORT="eighty" must be a whole number; using the default, 8080',
      'BATCH_IDLE_DURATION="1 second" must be a duration such as 10s, 1m30s or 500ms; using the default, 1s',
    ]);
  });

  test('in a word of a closed set stops the program wherever it comes from', () => {
    expect(parse([], { LOG_LEVEL: 'loud', PREFERENCE_POLICY: 'respect' }).problems).toEqual([
      'LOG_LEVEL="loud" must be one of debug, info, error',
      'PREFERENCE_POLICY="respect" must be one of Respect, Ignore',
    ]);
  });

  test('is not alone: all are named at once', () => {
    expect(
      parse(['--metric-port=1', '--kube-client-qps', 'x', 'stray', '--health-probe-port=70000', '--log-level'])
        .problems,
    ).toEqual([
      'unknown flag --metric-port; did you mean --metrics-port?',
      'unexpected argument "stray"',
      '--log-level needs a value',
      '--health-probe-port="70000" must be from 0 to 65535',
      '--kube-client-qps="x" must be a whole number',
    ]);
  });

  test('in a flag that resembles nothing gets no advice, and its value is not blamed', () => {
    expect(parse(['--colour', 'red']).problems).toEqual(['unknown flag --colour']);
  });
});

describe('feature gates', () => {
  test('change what they name and leave the rest', () => {
    const { featureGates } = settingsOf(['--feature-gates', ' NodeRepair=true, ReservedCapacity=false ,']);
    expect(featureGates).toMatchObject({ NodeRepair: true, ReservedCapacity: false, NodeOverlay: false });
  });

  test('of the flag replace those of the environment as a whole', () => {
    const { featureGates } = settingsOf(['--feature-gates=NodeOverlay=true'], { FEATURE_GATES: 'NodeRepair=true' });
    expect(featureGates).toMatchObject({ NodeRepair: false, NodeOverlay: true });
  });

  test('that are not known are warned about, not more', () => {
    const { settings, warnings } = parse(['--feature-gates=Drift=true,NodeRepair=true,toString=true']);
    expect(settings?.featureGates.NodeRepair).toBe(true);
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toContain('--feature-gates: Drift is not known and has no effect; known are NodeRepair,');
  });

  test('that cannot be read stop the program', () => {
    expect(parse([], { FEATURE_GATES: 'NodeRepair' }).problems).toEqual([
      'FEATURE_GATES="NodeRepair" must be a list of name=true and name=false; "NodeRepair" is not',
    ]);
    expect(parse(['--feature-gates=NodeRepair=maybe']).problems).toEqual([
      '--feature-gates="NodeRepair=maybe" must give NodeRepair the value true or false',
    ]);
  });
});

describe('the scheduler config', () => {
  const problemsOf = (config: string): string => parse(['--scheduler-config', config]).problems?.join('\n') ?? '';
  const constraint = (fields: object): string =>
    JSON.stringify({ podTopologySpread: { defaultConstraints: [fields] } });
  const good = { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway' };

  test('is YAML or JSON', () => {
    const yaml = `
podTopologySpread:
  defaultConstraints:
    - maxSkew: 2
      topologyKey: topology.kubernetes.io/zone
      whenUnsatisfiable: DoNotSchedule
      matchLabelKeys: []
`;
    for (const config of [yaml, constraint({ ...good, maxSkew: 2, whenUnsatisfiable: 'DoNotSchedule' })]) {
      expect(settingsOf(['--scheduler-config', config]).schedulerConfig.podTopologySpread.defaultConstraints).toEqual([
        { maxSkew: 2, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'DoNotSchedule' },
      ]);
    }
  });

  test.each([
    ['podTopologySpreads: {}', 'unknown field "podTopologySpreads"'],
    ['a list', '[1]', 'the document must be an object'],
    ['a broken document', '{', 'is not a valid scheduler config'],
    ['a repeated key', 'podTopologySpread: {}\npodTopologySpread: {}', 'Map keys must be unique'],
    ['no skew', constraint({ ...good, maxSkew: 0 }), 'defaultConstraints[0].maxSkew: must be a whole number above 0'],
    ['no key', constraint({ ...good, topologyKey: '' }), 'defaultConstraints[0].topologyKey: must be set'],
    ['a bad key', constraint({ ...good, topologyKey: 'a b' }), 'defaultConstraints[0].topologyKey: '],
    ['no policy', constraint({ ...good, whenUnsatisfiable: 'Never' }), 'must be DoNotSchedule or ScheduleAnyway'],
    ['a selector', constraint({ ...good, labelSelector: {} }), 'labelSelector: must not be set'],
    ['label keys', constraint({ ...good, matchLabelKeys: ['a'] }), 'matchLabelKeys: must be empty'],
    ['a typo', constraint({ ...good, maxskew: 1 }), 'defaultConstraints[0]: unknown field "maxskew"'],
    [
      'the same twice',
      JSON.stringify({ podTopologySpread: { defaultConstraints: [good, { ...good, maxSkew: 5 }] } }),
      'defaultConstraints[1]: repeats the pair (topology.kubernetes.io/zone, ScheduleAnyway)',
    ],
  ])('refuses %s', (...row) => {
    const [config, message] = row.slice(-2) as [string, string];
    expect(problemsOf(config)).toContain(message);
  });

  test('stops the program also when it comes from the environment', () => {
    expect(parse([], { SCHEDULER_CONFIG: 'x: 1' }).problems).toHaveLength(1);
    for (const text of [
      'a: &a [*a]',
      '['.repeat(100_000),
      'podTopologySpread: {defaultConstraints: [{topologyKey: {toString: 1}}]}',
    ]) {
      const [problem] = parse([], { SCHEDULER_CONFIG: text }).problems!;
      expect(problem).toContain('is not a valid scheduler config');
    }
  });
});

test('a provider adds a table of its own', () => {
  const table = {
    ...coreSettings,
    hubKubeconfig: text({ flag: 'hub-kubeconfig', env: 'HUB_KUBECONFIG', default: '', help: 'Where the hub is.' }),
    tries: int({ env: 'TRIES', default: 3, min: 1, help: 'How often.' }),
  };
  const { settings } = parseSettings(table, ['--hub-kubeconfig', 'hub.yaml'], { TRIES: '5' });
  expect([settings?.hubKubeconfig, settings?.tries, settings?.metricsPort]).toEqual(['hub.yaml', 5, 8080]);
});

test('no two settings share a flag or a variable', () => {
  const all = Object.values(coreSettings);
  expect(new Set(all.map((setting) => setting.env)).size).toBe(all.length);
  const flags = all.flatMap((setting) => setting.flag ?? []);
  expect(new Set(flags).size).toBe(flags.length);
});

test('the text of every default gives the default', () => {
  for (const setting of Object.values(coreSettings)) {
    expect(setting.parse(setting.format(setting.default as never), 'flag', () => undefined)).toEqual(setting.default);
  }
});

test('the reference and the help name every setting', () => {
  const reference = renderSettingsReference();
  const help = renderSettingsHelp(coreSettings);
  for (const { flag, env } of Object.values(coreSettings)) {
    expect(reference).toContain(`\`${env}\``);
    if (flag) expect(help).toContain(`--${flag} `);
  }
});

test('no command line and no environment makes it throw', () => {
  const word = fc.oneof(
    fc.string(),
    fc.constantFrom(...Object.values(coreSettings).flatMap(({ flag }) => (flag ? [`--${flag}`, `--${flag}=`] : []))),
  );
  const names = fc.constantFrom(...Object.values(coreSettings).map((setting) => setting.env));
  fc.assert(
    fc.property(fc.array(word), fc.dictionary(names, fc.string()), (argv, env) => {
      const outcome = parse(argv, env);
      expect(outcome.settings === undefined).toBe((outcome.problems?.length ?? 0) > 0);
    }),
  );
});

test('a list of known words takes none, some or all of them, and no other', () => {
  const table = {
    clouds: list({ flag: 'clouds', env: 'CLOUDS', default: [], values: ['sun', 'moon'], help: 'Clouds.' }),
  };
  expect(parseSettings(table, [], {}).settings?.clouds).toEqual([]);
  expect(parseSettings(table, ['--clouds=moon, sun'], {}).settings?.clouds).toEqual(['moon', 'sun']);
  expect(parseSettings(table, [], { CLOUDS: 'mars,moon' }).problems).toEqual([
    'CLOUDS="mars,moon" may only name sun, moon; mars is none of them',
  ]);
});
