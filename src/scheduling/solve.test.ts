// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { explainPod, renderExplanation } from './explain.ts';
import type { PodSpec, RequirementSpec } from './objects.ts';
import type { OfferingSpec, Problem } from './problem.ts';
import { solve } from './solve.ts';
import { claimOf, daemonSet, instanceType, node, nodePool, offering, oneOf, pod } from './testing/builders.ts';
import {
  anti,
  app,
  arm,
  capacityType,
  existing,
  hostname,
  large,
  near,
  nodeOf,
  offers,
  place,
  reasonOf,
  required,
  small,
  spread,
  times,
  zone,
  zoneOf,
} from './testing/place.ts';

describe('packing', () => {
  test('puts pods that fit together on one node, with the cheapest type that holds them', () => {
    const result = place(times(3, 'web', { requests: { cpu: '500m', memory: '1Gi' } }));
    expect(result.newNodeClaims).toHaveLength(1);
    expect(result.newNodeClaims[0]).toMatchObject({ price: 0.1, instanceTypes: ['small', 'large'] });
    expect(result.newNodeClaims[0]!.requests).toEqual({ cpu: '1500m', memory: '3Gi', pods: '3' });
  });
  test('never puts more on a node than its type has, to the last unit', () => {
    const result = place(times(2, 'p', { requests: { cpu: '1001m' } }), { types: [small] });
    expect(result.newNodeClaims).toHaveLength(2);
  });
  test('counts pods against the pods a node takes', () => {
    const tiny = instanceType('tiny', { cpu: '2', memory: '4Gi', pods: '2' }, offers(0.1));
    expect(place(times(5, 'p', { requests: {} }), { types: [tiny] }).newNodeClaims).toHaveLength(3);
  });
  test('leaves what the kubelet, the system and daemonsets need', () => {
    const type = instanceType('t', { cpu: '2', memory: '4Gi', pods: '9' }, offers(0.1), {
      overhead: { kubeReserved: { cpu: '100m' } },
    });
    const daemonSets = [daemonSet('agent', { cpu: '400m' })];
    const result = place(times(2, 'p', { requests: { cpu: '1' } }), { types: [type], daemonSets });
    expect(result.newNodeClaims).toHaveLength(2);
    expect(result.newNodeClaims[0]!.requests['cpu']).toBe('1400m');
  });
  test('ignores daemonsets that do not run on a type', () => {
    const daemonSets = [daemonSet('agent', { cpu: '1500m' }, { nodeSelector: { 'kubernetes.io/arch': 'arm64' } })];
    expect(
      place([pod('p', { requests: { cpu: '1' } })], { types: [small, arm], daemonSets }).newNodeClaims[0]!
        .instanceTypes,
    ).toEqual(['small', 'arm']);
  });
  test('takes huge pages out of memory', () => {
    const type = instanceType('t', { cpu: '2', memory: '4Gi', 'hugepages-2Mi': '3Gi', pods: '9' }, offers(0.1));
    expect(reasonOf(place([pod('p', { requests: { memory: '2Gi' } })], { types: [type] }), 'p')).toContain('1Gi free');
  });
  test('lets an offering have another capacity than its type', () => {
    const type = instanceType('t', { cpu: '2', memory: '4Gi', pods: '9' }, [
      offering('a', 'on-demand', 0.1),
      offering('b', 'on-demand', 0.2, { capacityOverride: { cpu: '8' } }),
    ]);
    const result = place([pod('p', { requests: { cpu: '4' } })], { types: [type] });
    expect(result.newNodeClaims[0]!.price).toBe(0.2);
  });
  test('names a type once, whatever its offerings hold and however many types cannot be had', () => {
    const room = { cpu: '2', memory: '4Gi', pods: '9' };
    const types = [
      instanceType('gone', room, [offering('a', 'on-demand', 0.5, { available: false })]),
      instanceType('two', room, [
        offering('a', 'on-demand', 1.1),
        offering('b', 'spot', 0.3, { capacityOverride: { cpu: '8' } }),
      ]),
      instanceType('one', room, [offering('a', 'on-demand', 1)]),
    ];
    expect(place([pod('p')], { types }).newNodeClaims[0]!.instanceTypes).toEqual(['two', 'one']);
  });
  test('gives the same bytes for the same problem', () => {
    const pods = [
      ...times(9, 'x', { labels: { app: 'x' }, spec: spread('x', zone) }),
      ...times(5, 'y', { labels: { app: 'y' }, spec: anti('y', hostname) }),
    ];
    expect(JSON.stringify(place(pods))).toBe(JSON.stringify(place(pods)));
  });
  test('prefers several small machines to one that is far too dear', () => {
    const palace = instanceType('palace', { cpu: '64', memory: '512Gi', pods: '200' }, offers(50));
    expect(place(times(30, 'p', { requests: { cpu: '1' } }), { types: [small, palace] }).stats.totalPrice).toBeLessThan(
      2,
    );
  });
});

describe('node selection', () => {
  test('a pod that selects a value narrows its node, and another value gets another node', () => {
    const pods = [
      pod('x', { spec: { nodeSelector: { 'kubernetes.io/arch': 'arm64' } } }),
      pod('y', { spec: { nodeSelector: { 'kubernetes.io/arch': 'amd64' } } }),
    ];
    const result = place(pods, { types: [small, arm] });
    expect(result.newNodeClaims.map((c) => c.instanceTypes)).toEqual([['arm'], ['small']]);
  });
  test.each([
    ['In', ['x'], false],
    ['Exists', undefined, false],
    ['NotIn', ['x'], true],
    ['DoesNotExist', undefined, true],
  ])('a label that nobody defines: %s is scheduled: %s', (operator, values, expected) => {
    const result = place([
      pod('p', { spec: required([[{ key: 'team', operator, ...(values ? { values: values as string[] } : {}) }]]) }),
    ]);
    expect(result.errors.length === 0).toBe(expected);
  });
  test('a label of one cloud is not bought from another', () => {
    const category = 'karpenter.k8s.aws/instance-category';
    const m = instanceType('m', { cpu: '2', memory: '4Gi', pods: '9' }, offers(1), {
      requirements: [oneOf(category, 'm')],
    });
    const result = place([pod('p', { spec: { nodeSelector: { [category]: 'm' } } })], {
      nodePools: [nodePool('linode', { weight: 50 }), nodePool('aws')],
      instanceTypes: { linode: [small], aws: [m] },
      labels: { aws: { wellKnown: [category] } },
    });
    expect(result.newNodeClaims[0]!.nodePool).toBe('aws');
  });
  test('a restricted label makes the pod an error of its own', () => {
    expect(reasonOf(place([pod('p', { spec: { nodeSelector: { [hostname]: 'x' } } }), pod('q')]), 'p')).toContain(
      hostname,
    );
  });
  test('deprecated names of labels still work', () => {
    const result = place([pod('p', { spec: { nodeSelector: { 'failure-domain.beta.kubernetes.io/zone': 'b' } } })]);
    expect(zoneOf(result, 'p')).toBe('b');
  });
  test('the first of several alternatives that works is used, and the last is never dropped', () => {
    const arch = (value: string): RequirementSpec[] => [oneOf('kubernetes.io/arch', value)];
    expect(place([pod('p', { spec: required([arch('sparc'), arch('amd64')]) })]).errors).toEqual([]);
    expect(reasonOf(place([pod('p', { spec: required([arch('sparc'), arch('mips')]) })]), 'p')).toContain('mips');
  });
  test('preferences are honoured where they can be, dropped where not, and not read under Ignore', () => {
    const prefers = (value: string): Partial<PodSpec> => ({
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, preference: { matchExpressions: [oneOf(zone, value)] } },
          ],
        },
      },
    });
    expect(zoneOf(place([pod('p', { spec: prefers('b') })]), 'p')).toBe('b');
    expect(place([pod('p', { spec: prefers('nowhere') })]).errors).toEqual([]);
    expect(
      zoneOf(place([pod('p', { spec: prefers('b') })], { settings: { preferencePolicy: 'Ignore' } }), 'p'),
    ).toBeUndefined();
  });
});

describe('taints', () => {
  const gpu = { key: 'gpu', value: 'yes', effect: 'NoSchedule' };
  test('keep pods away that do not tolerate them', () => {
    const nodePools = [nodePool('default', { taints: [gpu] })];
    expect(reasonOf(place([pod('p')], { nodePools }), 'p')).toBe('the pod does not tolerate gpu=yes:NoSchedule');
    expect(
      place([pod('p', { spec: { tolerations: [{ key: 'gpu', operator: 'Exists' }] } })], { nodePools }).errors,
    ).toEqual([]);
  });
  test('that are preferences give way last, after a pool without them was tried', () => {
    const soft = { key: 'soft', effect: 'PreferNoSchedule' };
    const tainted = nodePool('tainted', { taints: [soft], weight: 50 });
    expect(place([pod('p')], { nodePools: [tainted, nodePool('plain')] }).newNodeClaims[0]!.nodePool).toBe('plain');
    expect(place([pod('p')], { nodePools: [tainted] }).errors).toEqual([]);
  });
  test('of starting nodes are ignored until the node is initialised', () => {
    const starting = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
    const options = {
      pool: 'default',
      labels: { [zone]: 'a' },
      taints: [starting],
      allocatable: { cpu: '4', memory: '8Gi', pods: '20' },
    } as Parameters<typeof node>[1];
    const fresh = node('n', options);
    delete (fresh.metadata.labels as Record<string, string>)['karpenter.sh/initialized'];
    expect(nodeOf(place([pod('p')], { nodes: [fresh], nodeClaims: [claimOf('n', options)] }), 'p')).toBe('n');
  });
});

describe('existing nodes', () => {
  test('come first, and are filled before anything is bought', () => {
    const result = place(times(5, 'p', { requests: { cpu: '1' } }), { nodes: [existing('n')] });
    expect(result.existingNodes).toEqual([
      { name: 'n', pods: ['default/p-0', 'default/p-1', 'default/p-2', 'default/p-3'] },
    ]);
    expect(result.newNodeClaims).toHaveLength(1);
  });
  test('keep what their pods use, and room for daemons that are still to come', () => {
    const running = pod('r', { requests: { cpu: '2' }, spec: { nodeName: 'n' } });
    const daemonSets = [daemonSet('agent', { cpu: '1500m' })];
    expect(
      nodeOf(
        place([pod('p', { requests: { cpu: '1' } }), running], { nodes: [existing('n')], daemonSets, types: [large] }),
        'p',
      ),
    ).toBe(0);
    expect(nodeOf(place([pod('p', { requests: { cpu: '1' } }), running], { nodes: [existing('n')] }), 'p')).toBe('n');
  });
  test('with a soft taint keep room for daemons as well: it keeps none of them away', () => {
    const taints = [{ key: 'k', effect: 'PreferNoSchedule' }];
    const daemonSets = [daemonSet('agent', { cpu: '3500m' })];
    const asked = [pod('p', { requests: { cpu: '1' } })];
    expect(nodeOf(place(asked, { nodes: [existing('n', { taints })], daemonSets, types: [large] }), 'p')).toBe(0);
  });
  test('that go away are no targets, and their pods move', () => {
    const running = pod('r', { requests: { cpu: '1' }, spec: { nodeName: 'old' } });
    const result = place([running], {
      nodes: [existing('old'), existing('other')],
      state: { markedForDeletion: ['old'] },
    });
    expect(nodeOf(result, 'r')).toBe('other');
  });
  test('closed to moves take pending pods but none of a candidate', () => {
    const moving = pod('m', { requests: { cpu: '1' }, spec: { nodeName: 'old' } });
    const state = { candidates: ['old'], closedToMoves: ['closed'] };
    const result = place([moving, pod('p')], { nodes: [existing('old'), existing('closed')], state });
    expect(nodeOf(result, 'p')).toBe('closed');
    expect(nodeOf(result, 'm')).toBe(0);
  });
  test('attach no more volumes than their driver allows; a claim that two pods share counts once', () => {
    const uses = (claim: string): Partial<PodSpec> => ({
      volumes: [{ name: 'v', persistentVolumeClaim: { claimName: claim } }],
    });
    const claim = (name: string) => ({ metadata: { name, namespace: 'default' }, spec: { storageClassName: 'fast' } });
    const result = place(
      [pod('x', { spec: uses('one') }), pod('y', { spec: uses('one') }), pod('z', { spec: uses('two') })],
      {
        nodes: [existing('n')],
        persistentVolumeClaims: [claim('one'), claim('two')],
        storageClasses: [
          { metadata: { name: 'fast' }, provisioner: 'csi.example', volumeBindingMode: 'WaitForFirstConsumer' },
        ],
        csiNodes: [
          { metadata: { name: 'n' }, spec: { drivers: [{ name: 'csi.example', allocatable: { count: 1 } }] } },
        ],
      },
    );
    expect([nodeOf(result, 'x'), nodeOf(result, 'y'), nodeOf(result, 'z')]).toEqual(['n', 'n', 0]);
  });
});

describe('host ports', () => {
  const listens = (port: number, hostIP?: string): Partial<PodSpec> => ({
    containers: [{ name: 'c', ports: [{ hostPort: port, ...(hostIP ? { hostIP } : {}) }] }],
  });
  test('two pods with the same one get two nodes; different addresses do not collide', () => {
    expect(place([pod('x', { spec: listens(80) }), pod('y', { spec: listens(80) })]).newNodeClaims).toHaveLength(2);
    expect(
      place([pod('x', { spec: listens(80, '10.0.0.1') }), pod('y', { spec: listens(80, '10.0.0.2') })]).newNodeClaims,
    ).toHaveLength(1);
  });
  test('of daemonsets are taken on every node they run on', () => {
    const daemonSets = [daemonSet('agent', { cpu: '1m' }, listens(80))];
    expect(reasonOf(place([pod('p', { spec: listens(80) })], { daemonSets }), 'p')).toContain('host ports');
  });
});

describe('topology spread', () => {
  test('levels pods over zones', () => {
    const result = place(times(6, 'p', { labels: { app: 'p' }, spec: spread('p', zone) }));
    const zones = [0, 1, 2, 3, 4, 5]
      .map((i) => zoneOf(result, `p-${i}`))
      .sort((x, y) => (x ?? '').localeCompare(y ?? ''));
    expect(zones).toEqual(['a', 'a', 'b', 'b', 'c', 'c']);
  });
  test('counts pods that run already, but not those that are terminating or elsewhere', () => {
    const runs = (name: string, extra: Parameters<typeof pod>[1] = {}) =>
      pod(name, { labels: { app: 'p' }, ...extra, spec: { nodeName: 'n' } });
    const gone = { ...runs('gone'), metadata: { ...runs('gone').metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    const full = existing('n', { allocatable: { cpu: '1', memory: '1Gi', pods: '3' } } as never);
    const result = place(
      [
        runs('r'),
        gone,
        runs('far', { namespace: 'other' }),
        ...times(2, 'p', { labels: { app: 'p' }, spec: spread('p', zone) }),
      ],
      { nodes: [full] },
    );
    expect([zoneOf(result, 'p-0'), zoneOf(result, 'p-1')].sort((x, y) => (x ?? '').localeCompare(y ?? ''))).toEqual([
      'b',
      'c',
    ]);
  });
  test('over hosts gives each its node', () => {
    expect(place(times(4, 'p', { labels: { app: 'p' }, spec: spread('p', hostname) })).newNodeClaims).toHaveLength(4);
  });
  test('fails on a label that no node has', () => {
    expect(reasonOf(place([pod('p', { labels: { app: 'p' }, spec: spread('p', 'rack') })]), 'p')).toBe(
      'no node has the topology label rack',
    );
  });
  test('that is only a wish is dropped when it cannot be had', () => {
    expect(
      place([pod('p', { labels: { app: 'p' }, spec: spread('p', 'rack', { whenUnsatisfiable: 'ScheduleAnyway' }) })])
        .errors,
    ).toEqual([]);
  });
  test('wants minDomains before it puts a second pod anywhere', () => {
    const one = instanceType('one', { cpu: '2', memory: '4Gi', pods: '9' }, offers(0.1, 'a'));
    const pods = times(2, 'p', { labels: { app: 'p' }, spec: spread('p', zone, { minDomains: 2 }) });
    expect(place(pods, { types: [one] }).errors).toHaveLength(1);
    expect(place(times(2, 'p', { labels: { app: 'p' }, spec: spread('p', zone) }), { types: [one] }).errors).toEqual(
      [],
    );
  });
  test('looks only at domains the pod may use', () => {
    const spec = { ...spread('p', zone), ...required([[oneOf(zone, 'a', 'b')]]) };
    expect(place(times(4, 'p', { labels: { app: 'p' }, spec })).errors).toEqual([]);
  });
  test('counts pods of undecided nodes when their zone is decided', () => {
    // The first pod is merely selected and leaves its node open; joining it would break the skew.
    const pods = [
      pod('big', { labels: { app: 'p' }, requests: { cpu: '1' } }),
      pod('p', { labels: { app: 'p' }, spec: spread('p', zone) }),
    ];
    expect(place(pods).errors).toEqual([]);
  });
  test('per revision counts only pods of the same revision', () => {
    const of = (rev: string, i: number) =>
      pod(`${rev}-${i}`, { labels: { app: 'p', rev }, spec: spread('p', zone, { matchLabelKeys: ['rev'] }) });
    const one = instanceType('one', { cpu: '2', memory: '4Gi', pods: '9' }, offers(0.1, 'a', 'b'));
    expect(place([of('x', 0), of('x', 1), of('y', 0), of('y', 1)], { types: [one] }).errors).toEqual([]);
  });
});

describe('pod affinity', () => {
  test('bootstraps in one zone and keeps the rest there', () => {
    const result = place(times(4, 'p', { labels: { app: 'p' }, requests: { cpu: '1500m' }, spec: near('p', zone) }), {
      types: [small],
    });
    expect(new Set([0, 1, 2, 3].map((i) => zoneOf(result, `p-${i}`))).size).toBe(1);
    expect(result.errors).toEqual([]);
  });
  test('follows a pod that is placed later in the queue', () => {
    const result = place([
      pod('follower', { requests: { cpu: '1500m' }, spec: near('leader', hostname) }),
      pod('leader', { labels: { app: 'leader' }, requests: { cpu: '100m' } }),
    ]);
    expect(nodeOf(result, 'follower')).toBe(nodeOf(result, 'leader'));
  });
  test('to pods that do not exist cannot be satisfied', () => {
    expect(reasonOf(place([pod('p', { spec: near('nobody', zone) })]), 'p')).toContain('affinity');
  });
  test('to a pod on an undecided node decides that node', () => {
    const pods = [
      pod('leader', { labels: { app: 'leader' }, requests: { cpu: '1900m' } }),
      pod('p', { requests: { cpu: '1' }, spec: near('leader', zone) }),
    ];
    const result = place(pods, { types: [small] });
    expect(zoneOf(result, 'p')).toBe(zoneOf(result, 'leader'));
  });
});

describe('pod anti-affinity', () => {
  test('on hosts gives each its node, zones at most one each', () => {
    expect(place(times(5, 'p', { labels: { app: 'p' }, spec: anti('p', hostname) })).newNodeClaims).toHaveLength(5);
    expect(place(times(5, 'p', { labels: { app: 'p' }, spec: anti('p', zone) })).errors).toHaveLength(2);
  });
  test('of a running pod keeps others away although they say nothing', () => {
    const runs = pod('r', { labels: { app: 'r' }, spec: { nodeName: 'n', ...anti('p', zone) } });
    const result = place([runs, pod('p', { labels: { app: 'p' } })], { nodes: [existing('n')] });
    expect(nodeOf(result, 'p')).toBe(0);
    expect(zoneOf(result, 'p')).not.toBe('a');
  });
  test('of a running pod that is terminating still does', () => {
    const there = pod('r', { spec: { ...anti('p', zone), nodeName: 'n' } });
    const going = { ...there, metadata: { ...there.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    const result = place([going, pod('p', { labels: { app: 'p' } })], { nodes: [existing('n')] });
    expect(nodeOf(result, 'p')).toBe(0);
    expect(zoneOf(result, 'p')).not.toBe('a');
  });
  test('is content with nodes that do not have the topology label', () => {
    expect(place(times(3, 'p', { labels: { app: 'p' }, spec: anti('p', 'rack') })).errors).toEqual([]);
  });
  test('looks into other namespaces when it is told to', () => {
    const spec: Partial<PodSpec> = {
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: hostname, ...app('p'), namespaceSelector: {} },
          ],
        },
      },
    };
    const result = place([pod('p', { labels: { app: 'p' }, namespace: 'other' }), pod('q', { spec })]);
    expect(result.newNodeClaims).toHaveLength(2);
  });
  test('that is preferred spreads where it can', () => {
    const spec: Partial<PodSpec> = {
      affinity: {
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, podAffinityTerm: { topologyKey: hostname, ...app('p') } },
          ],
        },
      },
    };
    expect(place(times(3, 'p', { labels: { app: 'p' }, spec })).newNodeClaims).toHaveLength(3);
    expect(
      place(times(3, 'p', { labels: { app: 'p' }, spec }), { settings: { preferencePolicy: 'Ignore' } }).newNodeClaims,
    ).toHaveLength(1);
  });
});

describe('volumes', () => {
  const uses: Partial<PodSpec> = { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] };
  const bound = {
    metadata: { name: 'data', namespace: 'default', annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
    spec: { volumeName: 'disk' },
  };
  const disk = (...zones: string[]) => ({
    metadata: { name: 'disk' },
    spec: {
      csi: { driver: 'd' },
      nodeAffinity: { required: { nodeSelectorTerms: zones.map((z) => ({ matchExpressions: [oneOf(zone, z)] })) } },
    },
  });
  test('pull their pod to where they are, and alternatives are tried in order', () => {
    const more = { persistentVolumeClaims: [bound] };
    expect(zoneOf(place([pod('p', { spec: uses })], { ...more, persistentVolumes: [disk('b')] }), 'p')).toBe('b');
    expect(zoneOf(place([pod('p', { spec: uses })], { ...more, persistentVolumes: [disk('nowhere', 'c')] }), 'p')).toBe(
      'c',
    );
  });
  test('that are missing make the pod an error of its own', () => {
    expect(reasonOf(place([pod('p', { spec: uses })]), 'p')).toBe('persistent volume claim data does not exist');
  });
});

describe('pools', () => {
  test('are tried by weight, and the pod may name one', () => {
    const nodePools = [nodePool('light', { weight: 1 }), nodePool('heavy', { weight: 9 })];
    expect(place([pod('p')], { nodePools }).newNodeClaims[0]!.nodePool).toBe('heavy');
    expect(
      place([pod('p', { spec: { nodeSelector: { 'karpenter.sh/nodepool': 'light' } } })], { nodePools })
        .newNodeClaims[0]!.nodePool,
    ).toBe('light');
  });
  test('that are not ready, being deleted or static take no part', () => {
    const ready = nodePool('p');
    const broken = [
      { ...ready, status: { conditions: [{ type: 'Ready', status: 'False' }] } },
      { ...ready, metadata: { ...ready.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } },
      { ...ready, spec: { ...ready.spec, replicas: 3 } },
    ];
    for (const p of broken)
      expect(reasonOf(place([pod('x')], { nodePools: [p] }), 'x')).toBe('there is no usable NodePool');
  });
  test('buy no more nodes than their limit, within one pass too', () => {
    const result = place(times(3, 'p', { labels: { app: 'p' }, spec: anti('p', hostname) }), {
      nodePools: [nodePool('default', { limits: { nodes: '2' } })],
    });
    expect(result.newNodeClaims).toHaveLength(2);
    expect(result.errors[0]!.reason).toBe('its limits are used up');
  });
  test('buy only types that their limits still allow', () => {
    const result = place([pod('p')], { nodePools: [nodePool('default', { limits: { cpu: '4' } })] });
    expect(result.newNodeClaims[0]!.instanceTypes).toEqual(['small']);
  });
  test('with minValues keep enough types, or say so; BestEffort lowers it', () => {
    const nodePools = [
      nodePool('default', {
        requirements: [{ key: 'node.kubernetes.io/instance-type', operator: 'Exists', minValues: 2 }],
      }),
    ];
    const pods = [pod('p', { requests: { cpu: '8' } })];
    expect(reasonOf(place(pods, { nodePools }), 'p')).toContain('minValues');
    const relaxed = place(pods, { nodePools, settings: { minValuesPolicy: 'BestEffort' } });
    expect(relaxed.newNodeClaims[0]!.minValuesRelaxed).toBe(true);
    expect(place([pod('p', { requests: { cpu: '1' } })], { nodePools }).newNodeClaims[0]!.instanceTypes).toHaveLength(
      2,
    );
  });
  test('list at most as many types as asked, and never lose minValues by it', () => {
    const types = Array.from({ length: 9 }, (_, i) =>
      instanceType(`t${i}`, { cpu: '2', memory: '4Gi', pods: '9' }, offers(1 + i), {
        requirements: [oneOf('family', i < 8 ? 'x' : 'y')],
      }),
    );
    const settings = { maxInstanceTypes: 3 };
    expect(place([pod('p')], { types, settings }).newNodeClaims[0]!.instanceTypes).toEqual(['t0', 't1', 't2']);
    const nodePools = [nodePool('default', { requirements: [{ key: 'family', operator: 'Exists', minValues: 2 }] })];
    expect(place([pod('p')], { types, settings, nodePools }).newNodeClaims[0]!.instanceTypes).toEqual([
      't0',
      't1',
      't8',
    ]);
  });
});

describe('reserved capacity', () => {
  const reservation = 'cloud.example/reservation';
  const reserved = (capacity: number): OfferingSpec =>
    offering('a', 'reserved', 0.01, {
      reservationCapacity: capacity,
      requirements: [oneOf(zone, 'a'), oneOf(capacityType, 'reserved'), oneOf(reservation, 'r-1')],
    });
  const type = (capacity: number) =>
    instanceType('t', { cpu: '2', memory: '4Gi', pods: '9' }, [reserved(capacity), offering('a', 'on-demand', 1)]);
  const labels = { default: { wellKnown: [reservation], reservationId: reservation } };
  const two = times(2, 'p', { requests: { cpu: '1500m' } });
  test('is used first, and pods wait for it rather than pay', () => {
    const result = place(two, { types: [type(1)], labels });
    expect(result.newNodeClaims).toMatchObject([{ price: 0.01, reservations: ['r-1'] }]);
    expect(result.errors).toMatchObject([{ deferred: true, reason: 'waits for reserved capacity' }]);
  });
  test('falls back to other capacity where that is allowed', () => {
    const result = place(two, { types: [type(1)], labels, settings: { reservedOfferingMode: 'Fallback' } });
    expect(result.newNodeClaims.map((c) => c.price)).toEqual([0.01, 1]);
    expect(result.newNodeClaims[1]!.requirements).toContainEqual({
      key: capacityType,
      operator: 'NotIn',
      values: ['reserved'],
    });
  });
});

describe('bad input', () => {
  test.each<[string, Partial<PodSpec>, string]>([
    [
      'a broken selector',
      {
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: zone,
            whenUnsatisfiable: 'DoNotSchedule',
            labelSelector: { matchExpressions: [{ key: 'a', operator: 'Like' }] },
          },
        ],
      },
      'selector is broken',
    ],
    ['a negative request', { containers: [{ resources: { requests: { cpu: '-1' } } }] }, 'negative'],
    ['a request that is no quantity', { containers: [{ resources: { requests: { cpu: 'lots' } } }] }, 'not a quantity'],
    ['a million CPUs', { containers: [{ resources: { requests: { cpu: '1000000' } } }] }, 'was "m" for milli meant?'],
    ['an unknown operator', required([[{ key: 'a', operator: 'Like', values: ['b'] }]]), 'is not known'],
    ['resource claims', { resourceClaims: [{ name: 'gpu' }] }, 'resource claims are not supported yet'],
    ['containers that are no list', { containers: 7 as never }, 'spec.containers must be a list'],
  ])('%s is an error of that pod alone', (_, spec, expected) => {
    const problem: Problem = {
      nodePools: [nodePool('default')],
      instanceTypes: { default: [small] },
      pods: [pod('bad', { spec }), pod('good')],
    };
    const result = solve(problem);
    expect(reasonOf(result, 'bad')).toContain(expected);
    expect(nodeOf(result, 'good')).toBe(0);
  });
  test('a pod that asks for nothing says nothing of one whose containers are no list', () => {
    const pods = [
      pod('nothing', { spec: { containers: [] } }),
      pod('number', { spec: { containers: 7 as never } }),
      pod('text', { spec: { containers: 'x' as never } }),
      pod('init', { spec: { containers: [], initContainers: {} as never } }),
    ];
    const result = solve({ nodePools: [nodePool('default')], instanceTypes: { default: [small] }, pods });
    expect(nodeOf(result, 'nothing')).toBe(0);
    for (const name of ['number', 'text'])
      expect(reasonOf(result, name), name).toContain('spec.containers must be a list');
    expect(reasonOf(result, 'init')).toContain('spec.initContainers must be a list');
  });
  test('a pool whose requirements contradict and a type without offerings are errors of their own', () => {
    const clash = nodePool('clash', { weight: 9, requirements: [oneOf(zone, 'a'), oneOf(zone, 'b')] });
    const bare = { ...small, name: 'bare', offerings: [] };
    const result = place([pod('p')], {
      nodePools: [clash, nodePool('default')],
      instanceTypes: { clash: [small], default: [bare, small] },
    });
    expect(result.objectErrors.map(({ object }) => object)).toEqual(['NodePool/clash', 'InstanceType/default/bare']);
    expect(nodeOf(result, 'p')).toBe(0);
  });
  test('a pathological problem ends at its deadline with what it has', () => {
    const pods = times(3000, 'p', { labels: { app: 'p' }, requests: { cpu: '100m' }, spec: anti('p', hostname) });
    const problem: Problem = { nodePools: [nodePool('default')], instanceTypes: { default: [small] }, pods };
    const result = solve(problem, { maxSteps: 1000 });
    expect(result.stats).toMatchObject({ timedOut: true, scheduled: 1000 });
    expect(result.errors).toHaveLength(2000);
    expect(result.errors[0]).toMatchObject({ deferred: true });
  });
  test('ten thousand pods that repel each other, and a thousand topology groups, are no trouble', () => {
    const repelling = times(10_000, 'p', {
      labels: { app: 'p' },
      requests: { cpu: '100m' },
      spec: anti('p', hostname),
    });
    const problem: Problem = { nodePools: [nodePool('default')], instanceTypes: { default: [small] }, pods: repelling };
    expect(solve(problem).newNodeClaims).toHaveLength(10_000);
    const groups = Array.from({ length: 10_000 }, (_, i) => {
      const name = `g${i % 1000}`;
      const constraints = [zone, hostname].flatMap((key) => spread(name, key).topologySpreadConstraints!);
      return pod(`p-${i}`, {
        labels: { app: name },
        requests: { cpu: '10m' },
        spec: { topologySpreadConstraints: constraints },
      });
    });
    expect(solve({ ...problem, instanceTypes: { default: [large] }, pods: groups }).stats.scheduled).toBe(10_000);
  });
  test('where every pod brings a selector of its own, a pass takes as many as it can and leaves the rest to the next', () => {
    const own = Array.from({ length: 1500 }, (_, i) =>
      pod(`p-${i}`, {
        labels: { app: `p${i}` },
        spec: {
          affinity: {
            podAntiAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: [
                {
                  topologyKey: hostname,
                  labelSelector: { matchExpressions: [{ key: 'app', operator: 'NotIn', values: [`p${i}`] }] },
                },
              ],
            },
          },
        },
      }),
    );
    const problem: Problem = { nodePools: [nodePool('default')], instanceTypes: { default: [small] }, pods: own };
    const result = solve(problem);
    expect(result.stats).toMatchObject({ pods: 1500, scheduled: 1000, timedOut: true });
    expect(result.errors.filter(({ deferred }) => deferred)).toHaveLength(500);
  });
  test('time is read from the clock that is handed in', () => {
    let now = 0;
    const pods = times(500, 'p', { labels: { app: 'p' }, spec: anti('p', hostname) });
    const result = solve(
      { nodePools: [nodePool('default')], instanceTypes: { default: [small] }, pods },
      { clock: () => now++, timeoutMs: 5 },
    );
    expect(result.stats.timedOut).toBe(true);
  });
});

describe('an explanation', () => {
  const problem: Problem = {
    nodePools: [
      nodePool('default', { requirements: [oneOf('kubernetes.io/arch', 'amd64')] }),
      nodePool('tainted', { taints: [{ key: 'gpu', effect: 'NoSchedule' }] }),
    ],
    instanceTypes: { default: [small, large], tainted: [small] },
    nodes: [existing('n')],
    pods: [pod('huge', { requests: { cpu: '20' } }), pod('fine')],
  };
  const result = solve(problem);
  test('names per pool what removed which types, the nearest miss and the fix', () => {
    const tree = explainPod(problem, result, 'default/huge')!;
    const pool = tree.nodePools.find(({ nodePool: name }) => name === 'default')!;
    expect(pool).toMatchObject({
      types: 2,
      nearest: { instanceType: 'large', lacks: [{ resource: 'cpu', asked: '20', free: '16' }] },
    });
    expect(pool.funnel.at(-1)).toMatchObject({
      constraint: '20 cpu',
      removed: 2,
      left: 0,
      examples: ['small', 'large'],
    });
    expect(pool.fix).toContain('at most 16 cpu');
    expect(tree.nodePools.find(({ nodePool: name }) => name === 'tainted')!.fix).toBe(
      'tolerate gpu:NoSchedule in the pod',
    );
    expect(tree.existingNodes).toEqual([{ why: 'not enough cpu', count: 1, examples: ['n'] }]);
  });
  test('reads as text', () => {
    expect(renderExplanation(explainPod(problem, result, 'default/huge')!)).toContain('nearest: large (cpu 16 of 20)');
    expect(renderExplanation(explainPod(problem, result, 'default/fine')!)).toBe('default/fine is placed on node n');
  });
  test('of a pod that is not there is none', () => {
    expect(explainPod(problem, result, 'default/nobody')).toBeUndefined();
  });
});
