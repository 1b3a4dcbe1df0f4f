// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { SeededRandom } from '../../base/random.ts';
import type { Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '../../kube/kinds.ts';
import { compileLabelSelector } from '../../kube/labels.ts';
import { aNode, aPod } from '../testing/objects.ts';
import { clusterState, type Lookups, noLookups } from './cluster-state.ts';
import { podInfo } from './pod-info.ts';
import { schedulePod } from './schedule-pod.ts';

interface World {
  nodes: Node[];
  running?: Pod[];
  lookups?: Partial<Lookups>;
}

/** Where the pod goes, or the message that says why nowhere. */
function outcome(pod: Pod, { nodes, running = [], lookups = {} }: World): string {
  const state = clusterState(nodes, running, { ...noLookups, ...lookups });
  const decision = schedulePod(podInfo(pod), state, new SeededRandom(1));
  return 'node' in decision ? decision.node.name : decision.message;
}

const zone = 'topology.kubernetes.io/zone';
const zonedNode = (name: string, value: string): Node => aNode(name, { labels: { [zone]: value } });
const web = { app: 'web' };
const selectsWeb = { matchLabels: web };
const notHelpful = (nodes: number): string =>
  `no new claims to deallocate, preemption: 0/${nodes} nodes are available: ${nodes} Preemption is not helpful for scheduling.`;
const noVictims = (nodes: number): string =>
  `no new claims to deallocate, preemption: 0/${nodes} nodes are available: ${nodes} No preemption victims found for incoming pod.`;

describe('room', () => {
  test('a pod goes where it fits', () => {
    const nodes = [aNode('small', { allocatable: { cpu: '1' } }), aNode('large')];
    expect(outcome(aPod('p', { requests: { cpu: '2' } }), { nodes })).toBe('large');
  });

  test('a node that is full by CPU says so, and that nobody can be thrown out', () => {
    const full = aPod('other', { node: 'n', requests: { cpu: '3500m' } });
    expect(outcome(aPod('p', { requests: { cpu: '1' } }), { nodes: [aNode('n')], running: [full] })).toBe(
      `0/1 nodes are available: 1 Insufficient cpu. ${noVictims(1)}`,
    );
  });

  test('a pod larger than any node names every resource that lacks', () => {
    const pod = aPod('p', { requests: { cpu: '64', memory: '1Ti', 'example.com/gpu': '1' } });
    expect(outcome(pod, { nodes: [aNode('n')] })).toBe(
      `0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient example.com/gpu, 1 Insufficient memory. ${notHelpful(1)}`,
    );
  });

  test('the number of pods is a limit of its own', () => {
    const nodes = [aNode('n', { allocatable: { pods: '1' } })];
    expect(outcome(aPod('p'), { nodes, running: [aPod('other', { node: 'n' })] })).toMatch('1 Too many pods.');
  });

  test('a pod that has ended takes no room', () => {
    const ended: Pod = { ...aPod('other', { node: 'n', requests: { cpu: '4' } }), status: { phase: 'Succeeded' } };
    expect(outcome(aPod('p', { requests: { cpu: '4' } }), { nodes: [aNode('n')], running: [ended] })).toBe('n');
  });

  test.each([
    ['the largest init container counts when it is larger than all containers', '4', undefined, 'n'],
    ['a sidecar adds to the containers', '500m', 'Always', '0/1'],
  ])('%s', (_, cpu, restartPolicy, expected) => {
    const spec: Pod['spec'] = {
      initContainers: [{ name: 'i', resources: { requests: { cpu } }, ...(restartPolicy ? { restartPolicy } : {}) }],
      containers: [{ name: 'c', resources: { requests: { cpu: '3800m' } } }],
    };
    expect(outcome(aPod('p', { spec }), { nodes: [aNode('n')] })).toMatch(expected);
  });

  test('overhead and pod-level requests count', () => {
    const overhead = aPod('p', { requests: { cpu: '3' }, spec: { overhead: { cpu: '1500m' } } });
    expect(outcome(overhead, { nodes: [aNode('n')] })).toMatch('Insufficient cpu');
    const podLevel = aPod('p', { requests: { cpu: '1' }, spec: { resources: { requests: { cpu: '5' } } } });
    expect(outcome(podLevel, { nodes: [aNode('n')] })).toMatch('Insufficient cpu');
  });
});

describe('nodes that do not want the pod', () => {
  test('reasons are counted per node and sorted as text', () => {
    const nodes = [
      aNode('a', { taints: [{ key: 'gpu', effect: 'NoSchedule' }] }),
      aNode('b', { taints: [{ key: 'gpu', effect: 'NoExecute' }] }),
      aNode('c', { unschedulable: true }),
      aNode('d', { allocatable: { cpu: '1' } }),
    ];
    expect(outcome(aPod('p', { requests: { cpu: '2' } }), { nodes })).toBe(
      `0/4 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable, 2 node(s) had untolerated taint(s). ${notHelpful(4)}`,
    );
  });

  test('a toleration opens a tainted node, and one of the cordon a cordoned one', () => {
    const nodes = [
      aNode('n', {
        unschedulable: true,
        taints: [
          { key: 'gpu', value: 'a100', effect: 'NoSchedule' },
          { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' },
        ],
      }),
    ];
    const tolerations = [
      { key: 'gpu', value: 'a100' },
      { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
    ];
    expect(outcome(aPod('p', { spec: { tolerations } }), { nodes })).toBe('n');
    expect(outcome(aPod('p', { spec: { tolerations: tolerations.slice(0, 1) } }), { nodes })).toMatch('unschedulable');
  });

  test('an empty cluster has its own message', () => {
    expect(outcome(aPod('p'), { nodes: [] })).toBe('no nodes available to schedule pods');
  });
});

describe('node selection', () => {
  const nodes = [aNode('a', { labels: { disk: 'ssd', size: '5' } }), aNode('b', { labels: { disk: 'hdd' } })];
  const required = (matchExpressions: object[], matchFields: object[] = []): Pod =>
    aPod('p', {
      spec: {
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{ matchExpressions, matchFields } as never],
            },
          },
        },
      },
    });

  test.each([
    ['a plain label', aPod('p', { spec: { nodeSelector: { disk: 'hdd' } } }), 'b'],
    ['In', required([{ key: 'disk', operator: 'In', values: ['ssd', 'nvme'] }]), 'a'],
    ['NotIn', required([{ key: 'disk', operator: 'NotIn', values: ['ssd'] }]), 'b'],
    ['Exists', required([{ key: 'size', operator: 'Exists' }]), 'a'],
    ['DoesNotExist', required([{ key: 'size', operator: 'DoesNotExist' }]), 'b'],
    ['Gt', required([{ key: 'size', operator: 'Gt', values: ['4'] }]), 'a'],
    [
      'Lt',
      required([{ key: 'size', operator: 'Lt', values: ['4'] }]),
      "2 node(s) didn't match Pod's node affinity/selector",
    ],
    ['the name as a field', required([], [{ key: 'metadata.name', operator: 'In', values: ['b'] }]), 'b'],
    ['a term that is empty', required([]), "didn't match Pod's node affinity/selector"],
  ])('%s', (_, pod, expected) => {
    expect(outcome(pod, { nodes })).toMatch(expected);
  });

  test('a preferred term decides among nodes that will do', () => {
    const pod = aPod('p', {
      spec: {
        affinity: {
          nodeAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              { weight: 50, preference: { matchExpressions: [{ key: 'disk', operator: 'In', values: ['hdd'] }] } },
            ],
          },
        },
      },
    });
    expect(outcome(pod, { nodes })).toBe('b');
  });
});

describe('host ports', () => {
  const withPort = (name: string, hostPort: number, extra: object = {}, node?: string): Pod =>
    aPod(name, {
      ...(node ? { node } : {}),
      spec: { containers: [{ name: 'c', ports: [{ containerPort: 80, hostPort, ...extra }] }] },
    });

  test.each([
    ['the same port clashes', withPort('p', 80), 'free ports'],
    ['another protocol does not', withPort('p', 80, { protocol: 'UDP' }), /^n$/],
    ['one address clashes with all addresses', withPort('p', 80, { hostIP: '10.0.0.1' }), 'free ports'],
    ['another port does not', withPort('p', 81), /^n$/],
  ])('%s', (_, pod, expected) => {
    expect(outcome(pod, { nodes: [aNode('n')], running: [withPort('other', 80, {}, 'n')] })).toMatch(expected);
  });
});

describe('pod affinity', () => {
  const nodes = [zonedNode('a1', 'a'), zonedNode('a2', 'a'), zonedNode('b1', 'b')];
  const affinity = (kind: 'podAffinity' | 'podAntiAffinity', term: object, labels?: Record<string, string>): Pod =>
    aPod('p', {
      ...(labels ? { labels } : {}),
      spec: { affinity: { [kind]: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } as never },
    });
  const byZone = { topologyKey: zone, labelSelector: selectsWeb };

  test('a pod goes to the zone of those it wants to be near', () => {
    const running = [aPod('w', { labels: web, node: 'b1' })];
    expect(outcome(affinity('podAffinity', byZone), { nodes, running })).toBe('b1');
  });

  test('the first of its kind starts the group, a stranger waits', () => {
    expect(outcome(affinity('podAffinity', byZone, web), { nodes })).toMatch(/^[ab]\d$/);
    expect(outcome(affinity('podAffinity', byZone), { nodes })).toBe(
      `0/3 nodes are available: 3 node(s) didn't match pod affinity rules. ${notHelpful(3)}`,
    );
  });

  test('a pod keeps away from the zone of those it avoids', () => {
    const running = [aPod('w', { labels: web, node: 'a1' })];
    expect(outcome(affinity('podAntiAffinity', byZone), { nodes, running })).toBe('b1');
  });

  test('a running pod keeps others away as well', () => {
    const guard = aPod('guard', {
      node: 'a1',
      spec: {
        affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [byZone] } },
      },
    });
    expect(outcome(aPod('p', { labels: web }), { nodes, running: [guard] })).toBe('b1');
    expect(outcome(aPod('p', { labels: web }), { nodes: nodes.slice(0, 2), running: [guard] })).toBe(
      `0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules. ${noVictims(2)}`,
    );
  });

  test('terms look at their own namespace unless they say otherwise', () => {
    const running = [aPod('w', { labels: web, node: 'b1', namespace: 'shop' })];
    const namespaces: Namespace[] = [
      { metadata: { name: 'shop', labels: { team: 'shop' } } },
      { metadata: { name: 'default' } },
    ];
    const lookups = { namespaces: () => namespaces };
    const near = (extra: object): string =>
      outcome(affinity('podAffinity', { ...byZone, ...extra }), { nodes, running, lookups });
    expect(near({})).toMatch("3 node(s) didn't match pod affinity rules");
    expect(near({ namespaces: ['shop'] })).toBe('b1');
    expect(near({ namespaceSelector: { matchLabels: { team: 'shop' } } })).toBe('b1');
    expect(near({ namespaceSelector: {} })).toBe('b1');
  });

  test('mismatchLabelKeys keep tenants apart', () => {
    const term = { topologyKey: zone, labelSelector: {}, mismatchLabelKeys: ['tenant'] };
    const running = [aPod('w', { labels: { tenant: 'x' }, node: 'a1' })];
    expect(outcome(affinity('podAntiAffinity', term, { tenant: 'y' }), { nodes, running })).toBe('b1');
    expect(outcome(affinity('podAntiAffinity', term, { tenant: 'x' }), { nodes, running })).toMatch(/^[ab]\d$/);
  });

  test('preferred terms pull and push', () => {
    const preferred = (kind: string, weight: number): Pod =>
      aPod('p', {
        spec: {
          affinity: {
            [kind]: {
              preferredDuringSchedulingIgnoredDuringExecution: [{ weight, podAffinityTerm: byZone }],
            },
          } as never,
        },
      });
    const running = [aPod('w', { labels: web, node: 'a1', requests: { cpu: '10m' } })];
    expect(outcome(preferred('podAffinity', 100), { nodes: [nodes[0]!, nodes[2]!], running })).toBe('a1');
    expect(outcome(preferred('podAntiAffinity', 100), { nodes, running })).toBe('b1');
  });
});

describe('topology spread', () => {
  const nodes = [zonedNode('a1', 'a'), zonedNode('b1', 'b'), zonedNode('c1', 'c')];
  const spreading = (extra: object = {}, spec: Partial<Pod['spec']> = {}): Pod =>
    aPod('p', {
      labels: web,
      spec: {
        topologySpreadConstraints: [
          { topologyKey: zone, maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule', labelSelector: selectsWeb, ...extra },
        ],
        ...spec,
      },
    });
  const webOn = (...names: string[]): Pod[] => names.map((node, i) => aPod(`w${i}`, { labels: web, node }));

  test('the emptiest domain wins when the others are ahead', () => {
    expect(outcome(spreading(), { nodes, running: webOn('a1', 'b1') })).toBe('c1');
  });

  test('a domain that is full by skew is refused, with a word on nodes without the label', () => {
    const world = { nodes: [nodes[0]!, aNode('plain'), zonedNode('b1', 'b')], running: webOn('a1') };
    const cordonedB = { ...world.nodes[2]!, spec: { unschedulable: true } };
    expect(outcome(spreading(), { ...world, nodes: [world.nodes[0]!, world.nodes[1]!, cordonedB] })).toBe(
      "0/3 nodes are available: 1 node(s) didn't match pod topology spread constraints, " +
        "1 node(s) didn't match pod topology spread constraints (missing required label), 1 node(s) were unschedulable. " +
        'no new claims to deallocate, preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, ' +
        '2 Preemption is not helpful for scheduling.',
    );
  });

  test('pods on their way out do not count', () => {
    const leaving = aPod('w', { labels: web, node: 'c1', deleting: true });
    expect(outcome(spreading(), { nodes, running: [...webOn('a1', 'b1'), leaving] })).toBe('c1');
  });

  test('minDomains asks for more zones than there are', () => {
    expect(outcome(spreading({ minDomains: 4 }), { nodes, running: webOn('a1', 'b1', 'c1') })).toMatch('spread');
    expect(outcome(spreading({ minDomains: 3 }), { nodes, running: webOn('a1', 'b1', 'c1') })).toMatch(/^[abc]1$/);
  });

  test('nodes the pod may not use do not drag the minimum down, unless told to', () => {
    const onlyAB = {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: zone, operator: 'In', values: ['a', 'b'] }] }],
          },
        },
      },
    };
    const running = webOn('a1', 'b1');
    expect(outcome(spreading({}, onlyAB), { nodes, running })).toMatch(/^[ab]1$/);
    expect(outcome(spreading({ nodeAffinityPolicy: 'Ignore' }, onlyAB), { nodes, running })).toMatch('spread');
  });

  test('tainted nodes drag the minimum down, unless taints are honoured', () => {
    const tainted = { ...nodes[2]!, spec: { taints: [{ key: 'x', effect: 'NoSchedule' }] } };
    const world = { nodes: [nodes[0]!, nodes[1]!, tainted], running: webOn('a1', 'b1') };
    expect(outcome(spreading(), world)).toMatch('spread');
    expect(outcome(spreading({ nodeTaintsPolicy: 'Honor' }), world)).toMatch(/^[ab]1$/);
  });

  test('matchLabelKeys count only the pods of the same revision', () => {
    const pod = spreading({ matchLabelKeys: ['rev'] });
    pod.metadata.labels = { ...web, rev: '2' };
    const running = webOn('a1', 'a1').map((p) => ({ ...p, metadata: { ...p.metadata, labels: { ...web, rev: '1' } } }));
    expect(outcome(pod, { nodes: [nodes[0]!], running })).toBe('a1');
    expect(outcome(spreading({}), { nodes: [nodes[0]!, nodes[1]!], running })).toBe('b1');
  });

  test('a soft constraint and the default one of a workload only prefer', () => {
    const running = webOn('a1', 'a1', 'b1');
    expect(outcome(spreading({ whenUnsatisfiable: 'ScheduleAnyway' }), { nodes, running })).toBe('c1');
    const lookups = { ownerSelector: () => compileLabelSelector(selectsWeb) };
    expect(outcome(aPod('p', { labels: web }), { nodes, running, lookups })).toBe('c1');
  });
});

describe('volumes', () => {
  const nodes = [zonedNode('a1', 'a'), zonedNode('b1', 'b')];
  const pod = aPod('p', { spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] } });
  const claim = (extra: Partial<PersistentVolumeClaim['spec']>, bound = false): PersistentVolumeClaim => ({
    metadata: {
      name: 'data',
      namespace: 'default',
      ...(bound ? { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } } : {}),
    },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...extra },
  });
  const inZone = (value: string): PersistentVolume => ({
    metadata: { name: 'pv' },
    spec: {
      csi: { driver: 'ebs', volumeHandle: 'vol-1' },
      nodeAffinity: {
        required: { nodeSelectorTerms: [{ matchExpressions: [{ key: zone, operator: 'In', values: [value] }] }] },
      },
    },
  });
  const lookups = (found: {
    claim?: PersistentVolumeClaim;
    volume?: PersistentVolume;
    storageClass?: Partial<StorageClass>;
  }): Partial<Lookups> => ({
    claim: () => found.claim,
    volume: () => found.volume,
    storageClass: () => ({ metadata: { name: 'fast' }, provisioner: 'ebs', ...found.storageClass }) as StorageClass,
  });

  test('a claim that is missing or waits for nobody holds the pod back', () => {
    expect(outcome(pod, { nodes })).toBe(
      `0/2 nodes are available: persistentvolumeclaim "data" not found. ${notHelpful(2)}`,
    );
    expect(outcome(pod, { nodes, lookups: lookups({ claim: claim({ storageClassName: 'fast' }) }) })).toMatch(
      'pod has unbound immediate PersistentVolumeClaims.',
    );
  });

  test('a bound claim ties the pod to where the volume is', () => {
    const found = { claim: claim({ volumeName: 'pv' }, true), volume: inZone('b') };
    expect(outcome(pod, { nodes, lookups: lookups(found) })).toBe('b1');
    expect(outcome(pod, { nodes: [nodes[0]!], lookups: lookups(found) })).toMatch(
      "1 node(s) didn't match PersistentVolume's node affinity",
    );
  });

  test('an unbound claim that waits goes where its class may make a volume', () => {
    const storageClass = {
      volumeBindingMode: 'WaitForFirstConsumer',
      allowedTopologies: [{ matchLabelExpressions: [{ key: zone, values: ['b'] }] }],
    };
    const found = { claim: claim({ storageClassName: 'fast' }), storageClass };
    expect(outcome(pod, { nodes, lookups: lookups(found) })).toBe('b1');
    expect(outcome(pod, { nodes: [nodes[0]!], lookups: lookups(found) })).toMatch(
      "1 node(s) didn't find available persistent volumes to bind",
    );
  });

  test('a driver attaches only so many volumes to a node', () => {
    const found = lookups({
      claim: claim({ storageClassName: 'fast' }),
      storageClass: { volumeBindingMode: 'WaitForFirstConsumer' },
    });
    const csiNode = () => ({
      metadata: { name: 'a1' },
      spec: { drivers: [{ name: 'ebs', nodeID: 'i', allocatable: { count: 1 } }] },
    });
    const other = aPod('other', {
      node: 'a1',
      spec: { volumes: [{ name: 'd', persistentVolumeClaim: { claimName: 'other' } }] },
    });
    expect(outcome(pod, { nodes: [nodes[0]!], lookups: { ...found, csiNode } })).toBe('a1');
    expect(outcome(pod, { nodes: [nodes[0]!], running: [other], lookups: { ...found, csiNode } })).toMatch(
      '1 node(s) exceed max volume count',
    );
  });

  test('a claim for one pod only is not shared', () => {
    const found = { claim: claim({ volumeName: 'pv', accessModes: ['ReadWriteOncePod'] }, true), volume: inZone('a') };
    const other = {
      ...pod,
      metadata: { ...pod.metadata, name: 'other', uid: 'other' },
      spec: { ...pod.spec, nodeName: 'a1' },
    };
    expect(outcome(pod, { nodes, running: [other], lookups: lookups(found) })).toMatch('ReadWriteOncePod');
  });
});

describe('choice', () => {
  test('the node with more room is preferred, and fewer PreferNoSchedule taints', () => {
    const nodes = [aNode('busy'), aNode('free')];
    expect(
      outcome(aPod('p'), { nodes, running: [aPod('x', { node: 'busy', requests: { cpu: '2', memory: '4Gi' } })] }),
    ).toBe('free');
    const avoided = aNode('avoided', { taints: [{ key: 'x', effect: 'PreferNoSchedule' }] });
    expect(outcome(aPod('p'), { nodes: [avoided, aNode('plain')] })).toBe('plain');
  });

  test('a nominated node is taken while it will do', () => {
    const nominated: Pod = { ...aPod('p'), status: { nominatedNodeName: 'busy' } };
    const running = [aPod('x', { node: 'busy', requests: { cpu: '2' } })];
    expect(outcome(nominated, { nodes: [aNode('busy'), aNode('free')], running })).toBe('busy');
  });

  test('ties fall by the seed, the same way each time', () => {
    const nodes = ['a', 'b', 'c', 'd'].map((name) => aNode(name));
    expect(outcome(aPod('p'), { nodes })).toBe(outcome(aPod('p'), { nodes }));
  });
});
