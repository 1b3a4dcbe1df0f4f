// SPDX-License-Identifier: Apache-2.0
// Where volumes, daemons and protection leave room for a pod: rules that are easy to break and hard to see.
import { describe, expect, test } from 'vitest';
import type { Pod, PodSpec } from './objects.ts';
import type { Problem } from './problem.ts';
import { instanceType, node, offering, pod } from './testing/builders.ts';
import { existing, hostname, nodeOf, offers, place, reasonOf, spread, times, zone, zoneOf } from './testing/place.ts';

const using = (...claims: string[]): Partial<PodSpec> => ({
  volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
});
const claim = (name: string, more: { status?: object; metadata?: object; spec?: object } = {}) => ({
  metadata: {
    name,
    namespace: 'default',
    annotations: { 'pv.kubernetes.io/bind-completed': 'yes' },
    ...more.metadata,
  },
  spec: { volumeName: `disk-${name}`, ...more.spec },
  ...(more.status ? { status: more.status } : {}),
});
const disk = (
  name: string,
  terms: readonly Readonly<Record<string, string>>[],
  kind: object = { csi: { driver: 'd' } },
) => ({
  metadata: { name: `disk-${name}` },
  spec: {
    ...kind,
    nodeAffinity: {
      required: {
        nodeSelectorTerms: terms.map((term) => ({
          matchExpressions: Object.entries(term).map(([key, value]) => ({
            key,
            operator: 'In' as const,
            values: [value],
          })),
        })),
      },
    },
  },
});

describe('a pod with volumes', () => {
  test('of which one may be in two zones and the other in two others goes where both are', () => {
    const result = place([pod('p', { spec: using('one', 'two') })], {
      persistentVolumeClaims: [claim('one'), claim('two')],
      persistentVolumes: [
        disk('one', [{ [zone]: 'a' }, { [zone]: 'b' }]),
        disk('two', [{ [zone]: 'b' }, { [zone]: 'c' }]),
      ],
    });
    expect(zoneOf(result, 'p')).toBe('b');
  });

  test('that have no zone in common is told that it fits nowhere', () => {
    const result = place([pod('p', { spec: using('one', 'two') })], {
      persistentVolumeClaims: [claim('one'), claim('two')],
      persistentVolumes: [disk('one', [{ [zone]: 'a' }]), disk('two', [{ [zone]: 'b' }])],
    });
    expect(reasonOf(result, 'p')).toBeDefined();
  });

  test.each([{ local: { path: '/data' } }, { hostPath: { path: '/data' } }])(
    'of the kind %o does not wait for the node that had it, only for its zone',
    (kind) => {
      const result = place([pod('p', { spec: using('one') })], {
        persistentVolumeClaims: [claim('one')],
        persistentVolumes: [disk('one', [{ [hostname]: 'gone', [zone]: 'c' }], kind)],
      });
      expect(zoneOf(result, 'p')).toBe('c');
    },
  );

  test('of another kind does wait for it', () => {
    const result = place([pod('p', { spec: using('one') })], {
      persistentVolumeClaims: [claim('one')],
      persistentVolumes: [disk('one', [{ [hostname]: 'gone', [zone]: 'c' }])],
    });
    expect(result.newNodeClaims).toEqual([]);
  });

  const later = { name: 'wait', volumeBindingMode: 'WaitForFirstConsumer' };
  const noVolume = { volumeName: '' };
  test.each<[string, ReturnType<typeof claim>, Partial<Problem>]>([
    ['persistent volume claim one has lost its volume', claim('one', { status: { phase: 'Lost' } }), {}],
    [
      'persistent volume claim one is being deleted',
      claim('one', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }),
      {},
    ],
    ['persistent volume disk-one of claim one does not exist', claim('one'), {}],
    [
      'persistent volume claim one is not fully bound yet',
      claim('one', { metadata: { annotations: {} } }),
      { persistentVolumes: [disk('one', [{ [zone]: 'a' }])] },
    ],
    ['persistent volume claim one is unbound and names no storage class', claim('one', { spec: noVolume }), {}],
    [
      'storage class none of claim one does not exist',
      claim('one', { spec: { ...noVolume, storageClassName: 'none' } }),
      {},
    ],
    [
      'persistent volume claim one waits for its volume: storage class now binds immediately',
      claim('one', { spec: { ...noVolume, storageClassName: 'now' } }),
      { storageClasses: [{ metadata: { name: 'now' }, provisioner: 'd', volumeBindingMode: 'Immediate' }] },
    ],
  ])('is told: %s', (reason, one, more) => {
    const result = place([pod('p', { spec: using('one') })], { persistentVolumeClaims: [one], ...more });
    expect(reasonOf(result, 'p')).toBe(reason);
  });

  test('that are not there yet goes where their class can make them', () => {
    const storageClass = {
      metadata: { name: later.name },
      provisioner: 'd',
      volumeBindingMode: later.volumeBindingMode,
      allowedTopologies: [{ matchLabelExpressions: [{ key: zone, values: ['c'] }] }],
    };
    const result = place([pod('p', { spec: using('one') })], {
      persistentVolumeClaims: [claim('one', { spec: { ...noVolume, storageClassName: later.name } })],
      storageClasses: [storageClass],
    });
    expect(zoneOf(result, 'p')).toBe('c');
  });

  // The zones that count are those of the pod itself, not those of its volume: else every such pod would be alone in its world.
  test('in one zone still counts the others when it is spread', () => {
    const spec = { ...using('one'), ...spread('web', zone) };
    const running = ['a', 'b'].map((z) =>
      node(`in-${z}`, { labels: { [zone]: z }, allocatable: { cpu: '1', pods: '5' } }),
    );
    const web = (name: string, on: string) => pod(name, { labels: { app: 'web' }, spec: { nodeName: on } });
    const result = place([web('x', 'in-a'), pod('p', { labels: { app: 'web' }, spec })], {
      nodes: running,
      persistentVolumeClaims: [claim('one')],
      persistentVolumes: [disk('one', [{ [zone]: 'a' }])],
    });
    expect(reasonOf(result, 'p')).toBeDefined();
  });
});

describe('what machines have to spare', () => {
  test('is less in a zone where an offering takes more for itself', () => {
    const greedy = { ...offering('b', 'on-demand', 0.1), overheadOverride: { cpu: '1500m' } };
    const types = [instanceType('small', { cpu: '2', memory: '4Gi', pods: '20' }, [...offers(0.1, 'a'), greedy])];
    const asking = (name: string) => pod('p', { requests: { cpu: '1' }, spec: { nodeSelector: { [zone]: name } } });
    expect(reasonOf(place([asking('a')], { types }), 'p')).toBeUndefined();
    expect(reasonOf(place([asking('b')], { types }), 'p')).toBeDefined();
  });

  test('is what the newest pod of a daemon leaves, not what its template says', () => {
    const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'agent', uid: 'u', controller: true };
    const daemon = (name: string, cpu: string, creationTimestamp: string): Pod => {
      const made = pod(name, { requests: { cpu }, spec: { nodeName: 'elsewhere' } });
      return { ...made, metadata: { ...made.metadata, creationTimestamp, ownerReferences: [owner] } } as Pod;
    };
    const template = pod('template', { requests: { cpu: '100m' } });
    const daemonSets = [
      { metadata: { name: 'agent', namespace: 'default' }, spec: { template: { metadata: {}, spec: template.spec } } },
    ];
    const types = [instanceType('small', { cpu: '2', memory: '4Gi', pods: '20' }, offers(0.1))];
    const web = pod('web', { requests: { cpu: '1500m' } });
    const old = daemon('old', '100m', '2026-01-01T00:00:00Z');
    const grown = daemon('grown', '1', '2026-01-02T00:00:00Z');
    expect(reasonOf(place([web, old], { types, daemonSets: daemonSets as never }), 'web')).toBeUndefined();
    expect(reasonOf(place([web, grown, old], { types, daemonSets: daemonSets as never }), 'web')).toBeDefined();
  });
});

describe('pods of a node that goes away', () => {
  const on = (name: string, more: Partial<Pod['metadata']> = {}, status?: Pod['status']): Pod => {
    const made = pod(name, { labels: { app: name }, spec: { nodeName: 'going' } });
    return { ...made, metadata: { ...made.metadata, ...more }, ...(status ? { status } : {}) } as Pod;
  };
  const going = (pods: readonly Pod[], more: Partial<Problem> = {}) =>
    place(pods, {
      now: '2026-01-01T12:00:00Z',
      nodes: [existing('going')],
      state: { markedForDeletion: ['going'] },
      ...more,
    });
  const budget = (app: string, spec: object) => ({
    metadata: { name: app, namespace: 'default' },
    spec: { selector: { matchLabels: { app } }, ...spec },
  });

  test('get a place elsewhere, unless they may not be disturbed', () => {
    const guarded = (value: string, startTime: string) =>
      on(
        `for-${value}-${startTime.slice(11, 13)}`,
        { annotations: { 'karpenter.sh/do-not-disrupt': value } },
        { startTime },
      );
    const result = going([
      on('free'),
      guarded('true', '2026-01-01T00:00:00Z'),
      guarded('1h', '2026-01-01T11:30:00Z'),
      guarded('1h', '2026-01-01T10:30:00Z'),
    ]);
    expect(result.placements.map(({ pod: key }) => key).toSorted()).toEqual(['default/for-1h-10', 'default/free']);
  });

  test('stay with a budget that never gives way, or with two; one that may give way does not hold them', () => {
    const pods = ['never', 'percent', 'twice', 'sometimes'].map((name) => on(name));
    const podDisruptionBudgets = [
      budget('never', { maxUnavailable: 0 }),
      budget('percent', { minAvailable: '100%' }),
      budget('twice', { maxUnavailable: 1 }),
      { ...budget('twice', { maxUnavailable: 1 }), metadata: { name: 'again', namespace: 'default' } },
      budget('sometimes', { maxUnavailable: 1 }),
    ];
    const result = going(pods, { podDisruptionBudgets });
    expect(result.placements.map(({ pod: key }) => key)).toEqual(['default/sometimes']);
  });

  test('that are sick go where their budget lets the sick go', () => {
    const sick = { conditions: [{ type: 'Ready', status: 'False' }] };
    const podDisruptionBudgets = [
      budget('sick', { maxUnavailable: 0, unhealthyPodEvictionPolicy: 'AlwaysAllow' }),
      budget('well', { maxUnavailable: 0, unhealthyPodEvictionPolicy: 'AlwaysAllow' }),
    ];
    const result = going([on('sick', {}, sick), on('well')], { podDisruptionBudgets });
    expect(result.placements.map(({ pod: key }) => key)).toEqual(['default/sick']);
  });

  test('that go anyway are not placed, but those of a StatefulSet, which come back', () => {
    const deletionTimestamp = '2026-01-01T11:59:00Z';
    const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: 'u', controller: true };
    const result = going([
      on('leaving', { deletionTimestamp }),
      on('db-0', { deletionTimestamp, ownerReferences: [owner] } as Partial<Pod['metadata']>),
    ]);
    expect(result.placements.map(({ pod: key }) => key)).toEqual(['default/db-0']);
    expect(nodeOf(result, 'db-0')).toBe(0);
  });

  test('and those that wait share what is bought', () => {
    const result = going([...times(2, 'new', { requests: { cpu: '500m' } }), on('moved')]);
    expect(result.newNodeClaims).toHaveLength(1);
  });
});
