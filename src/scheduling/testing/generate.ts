// SPDX-License-Identifier: Apache-2.0
// Random problems over the whole feature list, small words and few values, so that features meet each other often.
import type {
  CSINode,
  Namespace,
  Node,
  NodeClaim,
  NodePool,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  RequirementSpec,
  ResourceList,
  StorageClass,
  Taint,
} from '../objects.ts';
import type { InstanceTypeSpec, LabelRules, OfferingSpec, Problem, SolveSettings } from '../problem.ts';
import { claimOf, daemonSet, instanceType, node, nodePool, offering, oneOf, pod } from './builders.ts';
import { type Chooser, chance, pick, some } from './chooser.ts';
import { capacityTypes, clouds, podSpec, type Vocabulary, zones } from './generate-pods.ts';

/** Upstream knows one such label for all clouds; so do these. */
const reservationId = 'cloud.example/reservation';

export interface GenerateOptions {
  /** At most so many workloads (default 6) of at most so many replicas (default 5). */
  readonly workloads?: number;
  readonly replicas?: number;
  /** At most so many instance types per pool. Default 6. */
  readonly types?: number;
  /** At most so many existing nodes. Default 4. */
  readonly nodes?: number;
}

/** A problem from a sequence of choices. */
export function generateProblem(c: Chooser, options: GenerateOptions = {}): Problem {
  const pools: NodePool[] = [];
  const instanceTypes: Record<string, InstanceTypeSpec[]> = {};
  const labels: Record<string, LabelRules> = {};
  const poolCount = 1 + c.int(3);
  for (let i = 0; i < poolCount; i++) {
    const name = `pool-${i}`;
    const cloud = chance(c, 25) ? 'b' : 'a';
    pools.push(makePool(c, name, cloud));
    instanceTypes[name] = makeTypes(c, cloud, options.types ?? 6);
    labels[name] = { wellKnown: Object.values(clouds[cloud]), reservationId };
  }
  const words: Vocabulary = { pools: pools.map((p) => p.metadata.name!), claims: [] };
  const volumes = chance(c, 25) ? makeVolumes(c) : undefined;
  if (volumes) words.claims.push(...volumes.persistentVolumeClaims.map((p) => p.metadata.name!));
  const daemonSets = chance(c, 35) ? Array.from({ length: 1 + c.int(2) }, (_, i) => makeDaemon(c, `daemon-${i}`)) : [];
  const existing = makeNodes(c, pools, instanceTypes, options.nodes ?? 4, words);
  const pods: Pod[] = [...existing.pods];
  const workloads = 1 + c.int(options.workloads ?? 6);
  for (let w = 0; w < workloads; w++) pods.push(...makeWorkload(c, `w${w}`, words, options.replicas ?? 5));
  const namespaces: Namespace[] = [
    { metadata: { name: 'default', labels: { env: 'main' } } },
    { metadata: { name: 'other', labels: { env: 'side' } } },
  ];
  return {
    now: '2026-01-02T00:00:00Z',
    nodePools: pools,
    instanceTypes,
    labels,
    nodes: existing.nodes,
    nodeClaims: existing.claims,
    pods,
    daemonSets,
    namespaces,
    ...volumes,
    csiNodes: existing.csiNodes,
    state: { markedForDeletion: existing.marked },
    settings: makeSettings(c),
  };
}

function makeSettings(c: Chooser): SolveSettings {
  return {
    preferencePolicy: chance(c, 20) ? 'Ignore' : 'Respect',
    minValuesPolicy: chance(c, 30) ? 'BestEffort' : 'Strict',
    reservedOfferingMode: chance(c, 30) ? 'Fallback' : 'Strict',
  };
}

export const teamTaint: Taint = { key: 'team', value: 'red', effect: 'NoSchedule' };
const softTaint: Taint = { key: 'soft', value: 'yes', effect: 'PreferNoSchedule' };

function makePool(c: Chooser, name: string, cloud: 'a' | 'b'): NodePool {
  const requirements: RequirementSpec[] = [];
  const labels: Record<string, string> = {};
  if (chance(c, 25))
    requirements.push(oneOf('topology.kubernetes.io/zone', ...atLeastOne(some(c, zones, 60), zones[0]!)));
  if (chance(c, 25))
    requirements.push(oneOf('karpenter.sh/capacity-type', ...atLeastOne(some(c, capacityTypes, 60), 'on-demand')));
  if (chance(c, 15)) requirements.push(oneOf('kubernetes.io/arch', pick(c, ['amd64', 'arm64'])));
  if (chance(c, 15))
    requirements.push({
      key: clouds[cloud].size,
      operator: pick(c, ['Gt', 'Lt', 'Gte', 'Lte']),
      values: [pick(c, ['2', '4', '8'])],
    });
  if (chance(c, 15)) requirements.push({ key: clouds[cloud].family, operator: 'NotIn', values: [pick(c, ['f', 'g'])] });
  if (chance(c, 12)) requirements.push({ key: 'node.kubernetes.io/instance-type', operator: 'Exists', minValues: 2 });
  if (chance(c, 8)) requirements.push({ key: clouds[cloud].family, operator: 'Exists', minValues: 2 });
  if (chance(c, 20)) requirements.push(oneOf('team', ...atLeastOne(some(c, ['red', 'blue'], 60), 'red')));
  else if (chance(c, 21)) labels['team'] = pick(c, ['red', 'blue']);
  if (chance(c, 10)) requirements.push({ key: 'rack', operator: 'Exists' });
  const limits: Record<string, string> = {};
  if (chance(c, 15)) limits['cpu'] = pick(c, ['64', '16', '8', '4']);
  if (chance(c, 8)) limits['memory'] = pick(c, ['64Gi', '16Gi', '8Gi']);
  if (chance(c, 15)) limits['nodes'] = pick(c, ['5', '3', '2', '1', '0']);
  const taints = [...(chance(c, 12) ? [teamTaint] : []), ...(chance(c, 12) ? [softTaint] : [])];
  return nodePool(name, {
    ...(chance(c, 40) ? { weight: 1 + c.int(3) } : {}),
    ...(Object.keys(limits).length > 0 ? { limits } : {}),
    labels,
    requirements,
    ...(taints.length > 0 ? { taints } : {}),
    ...(chance(c, 10) ? { startupTaints: [{ key: 'starting', effect: 'NoSchedule' }] } : {}),
  });
}

function atLeastOne<T>(list: T[], otherwise: T): T[] {
  return list.length > 0 ? list : [otherwise];
}

/** Sizes of machines: cpu, memory in GiB, pods. */
const sizes = [
  [2, 4, 8],
  [4, 8, 20],
  [1, 2, 4],
  [8, 16, 40],
  [4, 32, 30],
  [16, 32, 60],
] as const;

function makeTypes(c: Chooser, cloud: 'a' | 'b', most: number): InstanceTypeSpec[] {
  const count = 1 + c.int(most);
  return Array.from({ length: count }, (_, i) => makeType(c, cloud, `${cloud}-type-${i}`));
}

function makeType(c: Chooser, cloud: 'a' | 'b', name: string): InstanceTypeSpec {
  const [cpu, memory, pods] = pick(c, sizes);
  const gpu = chance(c, 15);
  const price = cpu * 0.05 + memory * 0.007 + (gpu ? 0.5 : 0) + c.int(5) * 0.01;
  const offerings: OfferingSpec[] = [];
  const soldIn = atLeastOne(some(c, zones, 75), zones[0]!);
  for (const zone of soldIn) {
    offerings.push(offering(zone, 'on-demand', round(price), { available: !chance(c, 8) }));
    if (chance(c, 60))
      offerings.push(offering(zone, 'spot', round(price * (0.3 + c.int(5) * 0.1)), { available: !chance(c, 10) }));
  }
  if (chance(c, 15)) {
    const reserved = offering(pick(c, soldIn), 'reserved', round(price * 0.1), { reservationCapacity: c.int(3) });
    offerings.push({
      ...reserved,
      requirements: [...reserved.requirements, oneOf(reservationId, `r-${pick(c, [name, 'shared'])}`)],
    });
  }
  if (chance(c, 8)) {
    const last = offerings.length - 1;
    offerings[last] = { ...offerings[last]!, capacityOverride: { 'example.com/fast': '2' } };
  }
  const capacity: Record<string, string> = {
    cpu: `${cpu}`,
    memory: `${memory}Gi`,
    pods: `${pods}`,
    'ephemeral-storage': '20Gi',
  };
  if (gpu) capacity['example.com/gpu'] = pick(c, ['1', '2']);
  return instanceType(name, capacity, offerings, {
    arch: chance(c, 25) ? 'arm64' : 'amd64',
    os: chance(c, 10) ? ['linux', 'windows'] : ['linux'],
    requirements: [
      oneOf(clouds[cloud].family, pick(c, ['f', 'g', 'h'])),
      oneOf(clouds[cloud].size, `${cpu}`),
      gpu ? oneOf(clouds[cloud].gpu, 'tesla') : { key: clouds[cloud].gpu, operator: 'DoesNotExist' },
    ],
    overhead: {
      kubeReserved: { cpu: '100m', memory: '100Mi' },
      ...(chance(c, 20) ? { evictionThreshold: { memory: '100Mi' } } : {}),
    },
  });
}

function round(price: number): number {
  return Math.round(price * 10_000) / 10_000;
}

function makeWorkload(c: Chooser, name: string, words: Vocabulary, most: number): Pod[] {
  const replicas = 1 + c.int(most);
  const namespace = chance(c, 15) ? 'other' : 'default';
  const labels: Record<string, string> = { app: pick(c, ['a', 'b', 'c']) };
  if (chance(c, 30)) labels['rev'] = pick(c, ['1', '2']);
  const spec = podSpec(c, words);
  return Array.from({ length: replicas }, (_, i) =>
    pod(`${name}-${i}`, {
      namespace,
      labels,
      created: `2026-01-01T00:0${c.int(2)}:00Z`,
      owner: { kind: 'ReplicaSet', name },
      spec,
    }),
  );
}

function makeDaemon(c: Chooser, name: string) {
  const requests: ResourceList = { cpu: pick(c, ['50m', '200m', '500m']), memory: pick(c, ['64Mi', '256Mi']) };
  const only = chance(c, 30)
    ? { nodeSelector: pick(c, [{ 'kubernetes.io/arch': 'arm64' }, { 'cloud-a.example/family': 'f' }, { team: 'red' }]) }
    : {};
  const ports = chance(c, 15)
    ? { containers: [{ name: 'main', resources: { requests }, ports: [{ hostPort: 8080, protocol: 'TCP' }] }] }
    : {};
  const tolerations = chance(c, 50) ? { tolerations: [{ operator: 'Exists' }] } : {};
  return daemonSet(name, requests, { ...only, ...ports, ...tolerations });
}

interface Existing {
  readonly nodes: Node[];
  readonly claims: NodeClaim[];
  readonly csiNodes: CSINode[];
  readonly marked: string[];
  readonly pods: Pod[];
}

function makeNodes(
  c: Chooser,
  pools: readonly NodePool[],
  types: Readonly<Record<string, readonly InstanceTypeSpec[]>>,
  most: number,
  words: Vocabulary,
): Existing {
  const found: Existing = { nodes: [], claims: [], csiNodes: [], marked: [], pods: [] };
  const count = chance(c, 60) ? c.int(most + 1) : 0;
  for (let i = 0; i < count; i++) {
    const name = `node-${i}`;
    const pool = pick(c, pools);
    const type = pick(c, types[pool.metadata.name!]!);
    const sold = pick(c, type.offerings);
    const labels: Record<string, string> = { ...pool.spec.template.metadata?.labels };
    for (const r of [...type.requirements, ...sold.requirements])
      if (r.operator === 'In') labels[r.key] = r.values![0]!;
    for (const r of pool.spec.template.spec?.requirements ?? [])
      if (r.key === 'team' && r.operator === 'In') labels['team'] = r.values![0]!;
    const allocatable = { ...type.capacity, cpu: `${Number(type.capacity['cpu']) * 1000 - 100}m` };
    const taints = pool.spec.template.spec?.taints;
    const shape = { pool: pool.metadata.name!, labels, allocatable, ...(taints ? { taints } : {}) };
    const state = c.int(6);
    if (state === 5) {
      // A machine on its way: bought, not joined.
      found.claims.push(claimOf(name, shape));
      continue;
    }
    if (state === 4) {
      const { pool: _pool, ...unmanaged } = shape;
      found.nodes.push(node(name, unmanaged));
    } else {
      const young = state === 3;
      const startup = { key: 'starting', effect: 'NoSchedule' };
      const notReady = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
      found.nodes.push(
        node(name, {
          ...shape,
          ...(young ? { initialized: false, taints: [...(taints ?? []), startup, notReady] } : {}),
        }),
      );
      found.claims.push(claimOf(name, { ...shape, startupTaints: [startup] }));
    }
    if (chance(c, 10)) found.marked.push(name);
    if (chance(c, 35))
      found.csiNodes.push({
        metadata: { name },
        spec: { drivers: [{ name: 'disk.example', allocatable: { count: c.int(3) } }] },
      });
    const running = c.int(4);
    for (let p = 0; p < running; p++) {
      found.pods.push(
        pod(`run-${i}-${p}`, {
          labels: { app: pick(c, ['a', 'b', 'c']) },
          owner: { kind: 'ReplicaSet', name: 'running' },
          spec: { ...podSpec(c, { ...words, claims: [] }, { bound: true }), nodeName: name },
        }),
      );
    }
  }
  return found;
}

function makeVolumes(c: Chooser) {
  const topologies = (list: string[]) =>
    list.map((z) => ({ matchLabelExpressions: [{ key: 'topology.kubernetes.io/zone', values: [z] }] }));
  const storageClasses: StorageClass[] = [
    {
      metadata: { name: 'disk' },
      provisioner: 'disk.example',
      volumeBindingMode: 'WaitForFirstConsumer',
      ...(chance(c, 50) ? { allowedTopologies: topologies(atLeastOne(some(c, zones, 50), zones[0]!)) } : {}),
    },
  ];
  const persistentVolumes: PersistentVolume[] = [];
  const persistentVolumeClaims: PersistentVolumeClaim[] = [];
  const count = 1 + c.int(3);
  for (let i = 0; i < count; i++) {
    const bound = chance(c, 50);
    persistentVolumeClaims.push({
      metadata: { name: `data-${i}`, namespace: 'default', annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
      spec: { storageClassName: 'disk', ...(bound ? { volumeName: `volume-${i}` } : {}) },
      status: { phase: bound ? 'Bound' : 'Pending' },
    });
    if (!bound) continue;
    const terms = atLeastOne(some(c, zones, 40), zones[c.int(3)]!).map((z) => ({
      matchExpressions: [oneOf('topology.kubernetes.io/zone', z)],
    }));
    persistentVolumes.push({
      metadata: { name: `volume-${i}` },
      spec: {
        ...(chance(c, 80) ? { csi: { driver: 'disk.example' } } : { hostPath: { path: '/data' } }),
        ...(chance(c, 75) ? { nodeAffinity: { required: { nodeSelectorTerms: terms } } } : {}),
      },
    });
  }
  return { storageClasses, persistentVolumes, persistentVolumeClaims };
}
