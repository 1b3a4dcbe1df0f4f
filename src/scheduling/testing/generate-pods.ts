// SPDX-License-Identifier: Apache-2.0
// Random pod specs: requests of every kind, and every rule about where a pod may run.
import type {
  Affinity,
  Container,
  NodeSelectorTerm,
  PodAffinityTerm,
  PodSpec,
  RequirementSpec,
  ResourceList,
  Toleration,
  TopologySpreadConstraint,
} from '../objects.ts';
import { oneOf } from './builders.ts';
import { type Chooser, chance, pick } from './chooser.ts';

export const zones = ['zone-1', 'zone-2', 'zone-3'] as const;
export const capacityTypes = ['on-demand', 'spot', 'reserved'] as const;

/** The labels that each cloud defines for its own machines. */
export const clouds = {
  a: { family: 'cloud-a.example/family', size: 'cloud-a.example/cpu', gpu: 'cloud-a.example/gpu-name' },
  b: { family: 'cloud-b.example/family', size: 'cloud-b.example/cpu', gpu: 'cloud-b.example/gpu-name' },
} as const;

/** What a pod can refer to. */
export interface Vocabulary {
  readonly pools: string[];
  /** Names of PersistentVolumeClaims in `default`. */
  readonly claims: string[];
}

export function podSpec(c: Chooser, words: Vocabulary, options: { readonly bound?: boolean } = {}): PodSpec {
  const affinity = makeAffinity(c);
  const tolerations = makeTolerations(c);
  const spread = chance(c, 28) ? Array.from({ length: 1 + c.int(2) }, () => makeSpread(c)) : [];
  const volumes =
    words.claims.length > 0 && chance(c, 40)
      ? [{ name: 'data', persistentVolumeClaim: { claimName: pick(c, words.claims) } }]
      : [];
  const spec: PodSpec = {
    ...makeContainers(c, options.bound ?? false),
    ...(chance(c, 14) ? { nodeSelector: makeNodeSelector(c, words) } : {}),
    ...(Object.keys(affinity).length > 0 ? { affinity } : {}),
    ...(tolerations.length > 0 ? { tolerations } : {}),
    ...(spread.length > 0 ? { topologySpreadConstraints: spread } : {}),
    ...(volumes.length > 0 ? { volumes } : {}),
  };
  return spec;
}

function makeRequests(c: Chooser): ResourceList {
  return {
    cpu: pick(c, ['100m', '500m', '1', '250m', '200m', '1500m', '400m', '2', '300m', '3', '600m', '7']),
    memory: pick(c, ['128Mi', '512Mi', '1Gi', '256Mi', '200Mi', '700Mi', '2Gi', '3000Mi', '400Mi', '6Gi']),
    ...(chance(c, 4) ? { 'example.com/gpu': '1' } : {}),
    ...(chance(c, 2) ? { 'example.com/fast': '1' } : {}),
    ...(chance(c, 5) ? { 'ephemeral-storage': '5Gi' } : {}),
  };
}

function makeContainers(
  c: Chooser,
  small: boolean,
): Pick<PodSpec, 'containers' | 'initContainers' | 'overhead' | 'resources'> {
  const main: Container = {
    name: 'main',
    resources: { requests: small ? { cpu: pick(c, ['100m', '250m']), memory: '128Mi' } : makeRequests(c) },
    ...(chance(c, 8)
      ? {
          ports: [
            {
              hostPort: pick(c, [8080, 9090]),
              protocol: pick(c, ['TCP', 'UDP']),
              ...(chance(c, 20) ? { hostIP: '10.0.0.1' } : {}),
            },
          ],
        }
      : {}),
  };
  if (small) return { containers: [main] };
  const containers = chance(c, 15) ? [main, { name: 'side', resources: { requests: makeRequests(c) } }] : [main];
  const init: Container[] = [];
  if (chance(c, 12)) init.push({ name: 'init', resources: { requests: makeRequests(c) } });
  if (chance(c, 10)) init.push({ name: 'sidecar', restartPolicy: 'Always', resources: { requests: makeRequests(c) } });
  if (chance(c, 5)) init.push({ name: 'late', resources: { requests: makeRequests(c) } });
  return {
    containers,
    ...(init.length > 0 ? { initContainers: init } : {}),
    ...(chance(c, 8) ? { overhead: { cpu: '250m', memory: '64Mi' } } : {}),
    ...(chance(c, 6) ? { resources: { requests: { cpu: '2', memory: '2Gi' } } } : {}),
  };
}

function makeNodeSelector(c: Chooser, words: Vocabulary): Record<string, string> {
  return pick(c, [
    { 'topology.kubernetes.io/zone': pick(c, zones) },
    { 'karpenter.sh/capacity-type': pick(c, capacityTypes) },
    { 'kubernetes.io/arch': pick(c, ['amd64', 'arm64']) },
    { team: pick(c, ['red', 'blue']) },
    { 'karpenter.sh/nodepool': pick(c, words.pools) },
    { [clouds.a.family]: pick(c, ['f', 'g', 'h']) },
    { 'failure-domain.beta.kubernetes.io/zone': pick(c, zones) },
    { [clouds.b.family]: 'f' },
    { nobody: 'knows' },
    { 'kubernetes.io/os': pick(c, ['linux', 'windows']) },
  ]);
}

function makeExpression(c: Chooser): RequirementSpec {
  switch (c.int(9)) {
    case 0:
      return { key: 'topology.kubernetes.io/zone', operator: pick(c, ['In', 'NotIn']), values: [pick(c, zones)] };
    case 1:
      return { key: 'topology.kubernetes.io/zone', operator: 'In', values: [zones[0], pick(c, [zones[1], zones[2]])] };
    case 2:
      return {
        key: 'karpenter.sh/capacity-type',
        operator: pick(c, ['In', 'NotIn']),
        values: [pick(c, capacityTypes)],
      };
    case 3:
      return { key: clouds.a.size, operator: pick(c, ['Gt', 'Lt']), values: [pick(c, ['2', '4', '7'])] };
    case 4:
      return { key: clouds.a.gpu, operator: pick(c, ['Exists', 'DoesNotExist']) };
    case 5:
      return { key: 'team', operator: pick(c, ['In', 'NotIn']), values: [pick(c, ['red', 'blue'])] };
    case 6:
      return { key: 'team', operator: pick(c, ['Exists', 'DoesNotExist']) };
    case 7:
      return { key: clouds.a.family, operator: pick(c, ['In', 'NotIn']), values: [pick(c, ['f', 'g'])] };
    default:
      return oneOf('kubernetes.io/arch', pick(c, ['amd64', 'arm64']));
  }
}

function makeTerm(c: Chooser): NodeSelectorTerm {
  return { matchExpressions: Array.from({ length: 1 + c.int(2) }, () => makeExpression(c)) };
}

const topologyKeys = [
  'topology.kubernetes.io/zone',
  'kubernetes.io/hostname',
  'karpenter.sh/capacity-type',
  'team',
] as const;

function makeTopologyKey(c: Chooser): string {
  return topologyKeys[[0, 1, 0, 1, 0, 1, 2, 3][c.int(8)]!]!;
}

function makeSelector(c: Chooser): {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
} {
  switch (c.int(5)) {
    case 4:
      return {};
    case 3:
      return {
        matchExpressions: [{ key: 'app', operator: pick(c, ['NotIn', 'In']), values: [pick(c, ['a', 'b']), 'c'] }],
      };
    default:
      return { matchLabels: { app: pick(c, ['a', 'b', 'c']) } };
  }
}

function makeTermOfPods(c: Chooser): PodAffinityTerm {
  return {
    topologyKey: makeTopologyKey(c),
    labelSelector: makeSelector(c),
    ...(chance(c, 10) ? { namespaces: ['other'] } : {}),
    ...(chance(c, 8) ? { namespaceSelector: pick(c, [{}, { matchLabels: { env: 'main' } }]) } : {}),
    ...(chance(c, 8) ? { matchLabelKeys: ['rev'] } : {}),
  };
}

function makeAffinity(c: Chooser): Affinity {
  const affinity: { -readonly [K in keyof Affinity]: Affinity[K] } = {};
  const terms = chance(c, 14) ? Array.from({ length: 1 + c.int(3) }, () => makeTerm(c)) : [];
  const preferred = chance(c, 15)
    ? Array.from({ length: 1 + c.int(2) }, () => ({ weight: 1 + c.int(3), preference: makeTerm(c) }))
    : [];
  if (terms.length + preferred.length > 0)
    affinity.nodeAffinity = {
      ...(terms.length > 0 ? { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } } : {}),
      ...(preferred.length > 0 ? { preferredDuringSchedulingIgnoredDuringExecution: preferred } : {}),
    };
  const together = makePodRules(c, 9);
  const apart = makePodRules(c, 14);
  if (together) affinity.podAffinity = together;
  if (apart) affinity.podAntiAffinity = apart;
  return affinity;
}

function makePodRules(c: Chooser, percent: number) {
  const required = chance(c, percent) ? Array.from({ length: chance(c, 15) ? 2 : 1 }, () => makeTermOfPods(c)) : [];
  const preferred = chance(c, percent / 2) ? [{ weight: 1 + c.int(100), podAffinityTerm: makeTermOfPods(c) }] : [];
  if (required.length + preferred.length === 0) return undefined;
  return {
    ...(required.length > 0 ? { requiredDuringSchedulingIgnoredDuringExecution: required } : {}),
    ...(preferred.length > 0 ? { preferredDuringSchedulingIgnoredDuringExecution: preferred } : {}),
  };
}

function makeSpread(c: Chooser): TopologySpreadConstraint {
  return {
    maxSkew: 1 + c.int(2),
    topologyKey: makeTopologyKey(c),
    whenUnsatisfiable: chance(c, 25) ? 'ScheduleAnyway' : 'DoNotSchedule',
    labelSelector: makeSelector(c),
    ...(chance(c, 12) ? { minDomains: 2 + c.int(2) } : {}),
    ...(chance(c, 12) ? { nodeAffinityPolicy: 'Ignore' } : {}),
    ...(chance(c, 15) ? { nodeTaintsPolicy: 'Honor' } : {}),
    ...(chance(c, 10) ? { matchLabelKeys: ['rev'] } : {}),
  };
}

function makeTolerations(c: Chooser): Toleration[] {
  const list: Toleration[] = [];
  if (chance(c, 35)) list.push({ key: 'team', operator: 'Equal', value: 'red', effect: 'NoSchedule' });
  if (chance(c, 5)) list.push({ operator: 'Exists' });
  if (chance(c, 8)) list.push({ key: 'soft', operator: 'Exists', effect: 'PreferNoSchedule' });
  return list;
}
