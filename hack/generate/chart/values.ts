// SPDX-License-Identifier: Apache-2.0
// Every value of `charts/karpenter`: how it is called, what it is unless told, what it may be. Deployment values are
// listed here, under upstream's names; settings come from the table of the program.
import { programSettings } from '../../../src/cli/program-settings.ts';
import type { Setting } from '../../../src/runtime/setting-types.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface ChartValue {
  /** Its place, with dots between. */
  readonly path: string;
  /** What values.yaml holds; `undefined` for what it leaves out. */
  readonly default: unknown;
  readonly help: string;
  readonly schema: JsonSchema;
}

const string: JsonSchema = { type: 'string' };
const boolean: JsonSchema = { type: 'boolean' };
const object: JsonSchema = { type: 'object' };
const strings: JsonSchema = { type: 'object', additionalProperties: string };
const objects: JsonSchema = { type: 'array', items: object };
const count: JsonSchema = { type: 'integer', minimum: 0 };
const intOrPercent: JsonSchema = { type: ['integer', 'string'], minimum: 0, pattern: '^[0-9]+%$' };
const pullPolicy: JsonSchema = { type: 'string', enum: ['Always', 'IfNotPresent', 'Never'] };
const optional = (schema: JsonSchema): JsonSchema => ({ ...schema, type: [schema['type'], 'null'].flat() });

const value = (path: string, initial: unknown, schema: JsonSchema, help: string): ChartValue => ({
  path,
  default: initial,
  schema,
  help,
});

const deploymentValues: readonly ChartValue[] = [
  value('nameOverride', '', string, "Replaces the chart's name in the names of objects."),
  value('fullnameOverride', '', string, 'Replaces the whole name of objects.'),
  value('additionalLabels', {}, strings, 'Labels of every object.'),
  value('additionalAnnotations', {}, strings, 'Annotations of every object.'),
  value('imagePullPolicy', 'IfNotPresent', pullPolicy, 'When the image is pulled.'),
  value('imagePullSecrets', [], objects, 'Secrets to pull the image with.'),
  value('service.annotations', {}, strings, 'Annotations of the Service in front of the metrics.'),
  value('serviceAccount.create', true, boolean, 'Whether the chart makes the ServiceAccount.'),
  value('serviceAccount.name', '', string, "Its name; the release's unless told. Without `create` it must exist."),
  value(
    'serviceAccount.annotations',
    {},
    strings,
    'Annotations of the ServiceAccount: how some clouds give a pod its rights.',
  ),
  value('additionalClusterRoleRules', [], objects, 'Rules that are added to the ClusterRole of the controller.'),
  value(
    'serviceMonitor.enabled',
    false,
    boolean,
    'Whether a ServiceMonitor tells the Prometheus operator to read the metrics.',
  ),
  value('serviceMonitor.additionalLabels', {}, strings, 'Labels by which a Prometheus finds it.'),
  value('serviceMonitor.relabelings', [], objects, 'Relabelings of the target.'),
  value('serviceMonitor.metricRelabelings', [], objects, 'Relabelings of the metrics.'),
  value('serviceMonitor.endpointConfig', {}, object, 'More fields of the endpoint, such as `interval`.'),
  value('serviceMonitor.sampleLimit', null, optional(count), 'How many samples a scrape may have.'),
  value('replicas', 2, count, 'How many run. One acts at a time; another takes over when it goes.'),
  value('revisionHistoryLimit', 10, count, 'How many old revisions of the Deployment are kept.'),
  value('strategy', { rollingUpdate: { maxUnavailable: 1 } }, object, 'How the Deployment is updated.'),
  value('podLabels', {}, strings, 'Labels of the pods.'),
  value('podAnnotations', {}, strings, 'Annotations of the pods.'),
  value('podDisruptionBudget.name', '', string, "Name of the PodDisruptionBudget; the release's unless told."),
  value('podDisruptionBudget.maxUnavailable', 1, intOrPercent, 'How many pods may be away at a time.'),
  value(
    'podSecurityContext',
    { fsGroup: 65532, seccompProfile: { type: 'RuntimeDefault' } },
    object,
    'The security context of the pods.',
  ),
  value(
    'priorityClassName',
    'system-cluster-critical',
    string,
    'Their priority: without the controller nobody else gets a node.',
  ),
  value(
    'terminationGracePeriodSeconds',
    null,
    optional(count),
    "How long a pod may take to end; Kubernetes' 30 s unless told. The controller needs up to 25 s.",
  ),
  value('hostNetwork', false, boolean, 'Whether pods use the network of their node.'),
  value('schedulerName', '', string, "The scheduler of the pods; Kubernetes' own unless told."),
  value(
    'dnsPolicy',
    'ClusterFirst',
    string,
    'Their DNS policy. `Default` where the controller brings the DNS its node.',
  ),
  value('dnsConfig', {}, object, 'Their DNS settings.'),
  value('initContainers', [], objects, 'Containers that run before.'),
  value('nodeSelector', { 'kubernetes.io/os': 'linux' }, strings, 'Labels of the nodes they run on.'),
  value(
    'affinity',
    {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: 'karpenter.sh/nodepool', operator: 'DoesNotExist' }] }],
        },
      },
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'kubernetes.io/hostname' }],
      },
    },
    object,
    'Never on a node that it manages itself, and never two on one. Terms about pods that select nobody select the controller.',
  ),
  value(
    'topologySpreadConstraints',
    [{ maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway' }],
    objects,
    'Over zones, where nodes have them: those of some clouds (LKE) do not. Constraints that select nobody select the controller.',
  ),
  value('tolerations', [{ key: 'CriticalAddonsOnly', operator: 'Exists' }], objects, 'Taints they live with.'),
  value('extraVolumes', [], objects, 'Volumes of the pods.'),
  value('controller.containerName', 'controller', { type: 'string', minLength: 1 }, 'Name of the container.'),
  value(
    'controller.image.repository',
    'karpenter-ts',
    { type: 'string', minLength: 1 },
    'The image, without its tag. Build it with the Dockerfile of this repository, and push it where your nodes can pull it.',
  ),
  value('controller.image.tag', '', string, 'Its tag; the version of the chart unless told.'),
  value('controller.image.digest', '', { type: 'string', pattern: '^(sha256:[0-9a-f]{64})?$' }, 'Its digest.'),
  value('controller.env', [], objects, 'More environment variables, as a container has them.'),
  value('controller.envFrom', [], objects, 'Where more variables come from: ConfigMaps and Secrets.'),
  value(
    'controller.securityContext',
    {},
    object,
    'Added to the security context of the container: not root, root folder read-only, no capabilities.',
  ),
  value(
    'controller.resources',
    {},
    object,
    'Requests and limits. With a CPU request the controller works on more at once; the heap follows the memory limit.',
  ),
  value('controller.extraVolumeMounts', [], objects, 'Where volumes are mounted.'),
  value('controller.sidecarContainer', [], objects, 'Containers beside it.'),
  value('controller.sidecarVolumeMounts', [], objects, 'Where volumes are mounted in those.'),
  value(
    'credentialsSecretRef',
    '',
    { type: ['string', 'object'], properties: { name: string }, additionalProperties: false },
    'A Secret of your own with LINODE_TOKEN, and if you like LINODE_URL, LINODE_API_VERSION, LINODE_REGION or CLUSTER_REGION: its name, or `name: …`. Then apiToken, apiURL, apiVersion and region do not count.',
  ),
];

/** What `helm uninstall` does first. */
const cleanupValues: readonly ChartValue[] = [
  value(
    'cleanup.enabled',
    true,
    boolean,
    'Whether `helm uninstall` first deletes all NodePools and NodeClaims and waits until every machine is gone (`karpenter cleanup`, as a hook). Without it machines stay, and cost money.',
  ),
  value(
    'cleanup.timeoutSeconds',
    1800,
    { type: 'integer', minimum: 1 },
    'How long that may take before the uninstallation fails. Helm has a limit of its own: `--timeout`.',
  ),
];

/** Values of the upstream providers' charts that mean nothing here: taken without a word, named in the notes. */
const ignoredValues: readonly ChartValue[] = [
  value('webhook', undefined, object, 'Accepted for upstream’s values, without effect: there is no webhook.'),
  value(
    'settings.clusterCABundle',
    undefined,
    optional(string),
    'Accepted for upstream’s values, without effect: machines learn the authority of the cluster from the cluster.',
  ),
];

/** The Cluster API provider's chart has other names for these; both count, and its own win. */
const otherNames: readonly ChartValue[] = [
  value('replicaCount', undefined, count, '`replicas`.'),
  value('image.repo', undefined, string, '`controller.image.repository`.'),
  value('image.tag', undefined, string, '`controller.image.tag`.'),
  value('image.pullPolicy', undefined, pullPolicy, '`imagePullPolicy`.'),
  value('arguments', [], { type: 'array', items: string }, 'Flags for the controller.'),
  value('securityContext', {}, object, '`controller.securityContext`.'),
  value('resources', {}, object, '`controller.resources`.'),
  value('volumes', [], objects, '`extraVolumes`; both are used.'),
  value('volumeMounts', [], objects, '`controller.extraVolumeMounts`; both are used.'),
];

/** A setting that is in the chart. */
export interface ChartSetting {
  readonly setting: Setting;
  readonly names: readonly [string, ...string[]];
  /** A value that, when it is given, gives this setting as well. */
  readonly unless?: string;
}

/** What a Secret of the user's own may hold of the Linode settings, under the names of their variables. */
export const linodeSecretKeys: readonly string[] = [
  'LINODE_TOKEN',
  'LINODE_URL',
  'LINODE_API_VERSION',
  'LINODE_REGION',
  'CLUSTER_REGION',
];

/** The settings that the chart's values give, in the order of the table. */
export const chartSettings: readonly ChartSetting[] = Object.values<Setting>(programSettings).flatMap((setting) =>
  setting.chart
    ? [
        {
          setting,
          names: setting.chart,
          ...(linodeSecretKeys.includes(setting.env) ? { unless: 'credentialsSecretRef' } : {}),
        },
      ]
    : [],
);

/** `NodeRepair` is `nodeRepair` in the chart. */
export function gateName(gate: string): string {
  return gate.charAt(0).toLowerCase() + gate.slice(1);
}

export function isGates({ schema }: Setting): boolean {
  return schema['type'] === 'object';
}

function isDocument({ schema }: Setting): boolean {
  return Array.isArray(schema['type']);
}

function settingValues({ setting, names: [own, ...others] }: ChartSetting): ChartValue[] {
  const schema = chartSchema(setting);
  return [
    { path: own, default: chartDefault(setting), help: setting.help, schema },
    ...others.map((path) => value(path, undefined, schema, `\`${own}\`.`)),
  ];
}

function chartSchema(setting: Setting): JsonSchema {
  const { schema } = setting;
  if (isGates(setting)) {
    const gates = Object.entries(schema['properties'] as JsonSchema);
    return { ...schema, properties: Object.fromEntries(gates.map(([gate, of]) => [gateName(gate), of])) };
  }
  // Empty or a map: helm warns about a default that is neither the one nor the other.
  if (isDocument(setting)) return optional(schema);
  // Any free port is no port that a Service can name.
  return schema['minimum'] === 0 && schema['maximum'] === 65535 ? { ...schema, minimum: 1 } : schema;
}

/** The default as the chart writes it: lists as lists, gates as a map, durations and the rest as people write them. */
function chartDefault(setting: Setting): unknown {
  const initial = setting.default;
  if (isGates(setting)) {
    return Object.fromEntries(Object.entries(initial as Record<string, boolean>).map(([g, on]) => [gateName(g), on]));
  }
  if (isDocument(setting)) return null;
  const isPlain = ['array', 'boolean', 'integer', 'number'].includes(String(setting.schema['type']));
  return isPlain ? initial : setting.format(initial);
}

/** Every value of the chart: the deployment's, the settings', and the names of other charts last. */
export const chartValues: readonly ChartValue[] = (() => {
  const settings = chartSettings.flatMap(settingValues);
  const isOther = ({ default: initial }: ChartValue): boolean => initial === undefined;
  return [
    ...deploymentValues,
    ...cleanupValues,
    ...settings.filter((each) => !isOther(each)),
    ...otherNames,
    ...settings.filter(isOther),
    ...ignoredValues,
  ];
})();
