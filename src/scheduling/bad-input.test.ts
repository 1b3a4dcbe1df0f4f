// SPDX-License-Identifier: Apache-2.0
// Objects that nobody can use: an error of their own that says where and what, and everything else is solved. The property
// test over `testing/garble.ts` looks for exceptions; here is what people get to read.
import { describe, expect, test } from 'vitest';
import { deepFreeze } from '../base/freeze.ts';
import type { DaemonSet, Node, NodeClaim, NodePool, Pod, PodSpec } from './objects.ts';
import type { InstanceTypeSpec, Problem, SolveResult } from './problem.ts';
import { solve } from './solve.ts';
import { daemonSet, instanceType, node, nodePool, offering, oneOf, pod } from './testing/builders.ts';
import { existing, large, nodeOf, offers, place, reasonOf, required, small, zone, zoneOf } from './testing/place.ts';

/** What tests break on purpose has other types than it should. */
const broken = <T>(value: unknown): T => value as T;
/** As `place`, without the judge: it takes only objects that an API server would have let pass. */
function answer(pods: readonly Pod[], more: Partial<Problem> = {}): SolveResult {
  const nodePools = more.nodePools ?? [nodePool('default')];
  return solve(deepFreeze({ instanceTypes: { default: [small, large] }, pods, ...more, nodePools }));
}
const wishes = (kind: 'podAffinity' | 'nodeAffinity', ...terms: unknown[]): Partial<PodSpec> =>
  broken({ affinity: { [kind]: { preferredDuringSchedulingIgnoredDuringExecution: terms } } });
const spreads = (extra: object): Partial<PodSpec> =>
  broken({
    topologySpreadConstraints: [
      { maxSkew: 1, topologyKey: zone, whenUnsatisfiable: 'DoNotSchedule', labelSelector: {}, ...extra },
    ],
  });

describe('a pod is refused alone, with a word on where and what, when', () => {
  test.each<[string, Partial<PodSpec>, string]>([
    [
      'a value of its node selector is no text',
      broken({ nodeSelector: { gpu: true } }),
      'nodeSelector.gpu must be a text: put true in quotes',
    ],
    ['its node selector is a list', broken({ nodeSelector: ['gpu'] }), 'spec.nodeSelector must be a map'],
    [
      'a bound is no text',
      required([[broken({ key: 'a', operator: 'Gt', values: [3] })]]),
      'values[0] must be a text: put 3 in quotes',
    ],
    ['an expression is nothing', required([[broken(null)]]), 'matchExpressions[0] must be an object'],
    ['its node affinity has no terms', required([]), 'a term needs an expression, or it matches no node'],
    ['its node affinity has only an empty term', required([[]]), 'a term needs an expression, or it matches no node'],
    [
      'a wish for a node has an unknown operator',
      wishes('nodeAffinity', { weight: 1, preference: { matchExpressions: [{ key: 'a', operator: 'Like' }] } }),
      'operator "Like" of a is not known',
    ],
    ['a wish for a node wishes nothing', wishes('nodeAffinity', { weight: 1 }), '[0].preference is missing'],
    [
      'a wish for neighbours has a broken namespace selector',
      wishes('podAffinity', {
        weight: 1,
        podAffinityTerm: {
          topologyKey: zone,
          namespaceSelector: { matchExpressions: [{ key: 'a', operator: 'Like' }] },
        },
      }),
      'a label selector is broken: "Like"',
    ],
    [
      'a wish for neighbours names no topology',
      wishes('podAffinity', { weight: 1, podAffinityTerm: { topologyKey: '' } }),
      'names no topologyKey',
    ],
    ['its tolerations are no list', broken({ tolerations: 'all' }), 'spec.tolerations must be a list'],
    ['a toleration is nothing', broken({ tolerations: [null] }), 'spec.tolerations[0] must be an object'],
    ['a spread is over fewer than one domain', spreads({ minDomains: 0 }), 'minDomains must be at least 1'],
    [
      'a spread has an unknown policy',
      spreads({ nodeTaintsPolicy: 'Maybe' }),
      'policy "Maybe" is neither Honor nor Ignore',
    ],
    ['a spread skews by nothing', spreads({ maxSkew: 0 }), 'maxSkew must be at least 1'],
    [
      'a spread counts by what is no label',
      spreads({ matchLabelKeys: ['x y'] }),
      'label key "x y" of matchLabelKeys is not valid',
    ],
    [
      'a request is no quantity',
      broken({ containers: [{ resources: { requests: { memory: '12MiB' } } }] }),
      'containers[0].resources.requests.memory: "12MiB" is not a quantity',
    ],
    [
      'a request is beyond all counting',
      broken({ containers: [{ resources: { requests: { cpu: '1e40' } } }] }),
      'cpu is more than any machine has (about 1e40)',
    ],
    ['a container is nothing', broken({ containers: [null] }), 'spec.containers[0] must be an object'],
    ['a volume is nothing', broken({ volumes: [null] }), 'spec.volumes[0] must be an object'],
  ])('%s', (_, spec, expected) => {
    const result = answer([pod('bad', { spec }), pod('good')]);
    expect(reasonOf(result, 'bad')).toContain(expected);
    expect(nodeOf(result, 'good')).toBe(0);
  });

  test('it has no spec, or no name', () => {
    const { spec: _, ...hollow } = pod('hollow');
    const nameless = { ...pod('x'), metadata: { namespace: 'default' } };
    const result = answer([broken(hollow), nameless, pod('good')]);
    expect(result.errors.map(({ pod: who, reason }) => [who, reason])).toEqual([
      ['default/hollow', 'it is not a pod: it has no spec'],
      ['?', 'it has no name'],
    ]);
    expect(nodeOf(result, 'good')).toBe(0);
  });

  test('what it says of its owners or conditions cannot be read', () => {
    const owned = { ...pod('owned'), metadata: { ...pod('owned').metadata, ownerReferences: broken<[]>('me') } };
    const result = answer([owned, pod('good')]);
    expect(reasonOf(result, 'owned')).toContain('shape of a pod');
    expect(nodeOf(result, 'good')).toBe(0);
  });

  test('its volume is somewhere that cannot be read', () => {
    const uses: Partial<PodSpec> = { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] };
    const done = { 'pv.kubernetes.io/bind-completed': 'yes' };
    const bound = { metadata: { name: 'data', namespace: 'default', annotations: done }, spec: { volumeName: 'disk' } };
    const terms = [{ matchExpressions: [{ key: zone, operator: 'Near', values: ['a'] }] }];
    const disk = { metadata: { name: 'disk' }, spec: { nodeAffinity: { required: { nodeSelectorTerms: terms } } } };
    const onDisk = answer([pod('bad', { spec: uses }), pod('good')], {
      persistentVolumeClaims: [bound],
      persistentVolumes: [disk],
    });
    expect(reasonOf(onDisk, 'bad')).toContain('persistent volume disk of claim data cannot be used');
    const unbound = { metadata: { name: 'data', namespace: 'default' }, spec: { storageClassName: 'fast' } };
    const fast = {
      metadata: { name: 'fast' },
      volumeBindingMode: 'WaitForFirstConsumer',
      allowedTopologies: broken<[]>([null]),
    };
    const ofClass = answer([pod('bad', { spec: uses }), pod('good')], {
      persistentVolumeClaims: [unbound],
      storageClasses: [fast],
    });
    expect(reasonOf(ofClass, 'bad')).toContain('storage class fast of claim data cannot be used: allowedTopologies[0]');
  });
});

test('an empty alternative matches no node: the pod goes where the others say', () => {
  expect(zoneOf(place([pod('p', { spec: required([[], [oneOf(zone, 'b')]]) })]), 'p')).toBe('b');
});

describe('an object that cannot be used is named with its problem, and the rest is solved:', () => {
  const pool = (spec: object, template: object = {}): NodePool => {
    const good = nodePool('bad');
    const inner = { ...good.spec.template, spec: { ...good.spec.template.spec, ...template } };
    return broken({ ...good, spec: { ...good.spec, template: inner, ...spec } });
  };
  const type = (change: object): InstanceTypeSpec => broken({ ...small, name: 'bad', ...change });
  const has = { cpu: '4', memory: '8Gi', pods: '20' };
  const daemons = (spec: object): DaemonSet[] => [broken({ ...daemonSet('bad', {}), spec })];
  const claim = (change: object): NodeClaim =>
    broken({ metadata: { name: 'bad' }, status: { allocatable: has }, ...change });
  const nodes = (change: object): Node[] => [broken({ ...node('bad', { allocatable: has }), ...change })];
  test.each<[string, Partial<Problem>, string, string]>([
    [
      'a pool with contradicting bounds',
      {
        nodePools: [
          pool(
            {},
            {
              requirements: [
                { key: 'n', operator: 'Gt', values: ['5'] },
                { key: 'n', operator: 'Lt', values: ['3'] },
              ],
            },
          ),
        ],
      },
      'NodePool/bad',
      'no value of n satisfies all of them',
    ],
    [
      'a pool without a spec',
      { nodePools: [broken({ metadata: { name: 'bad' } })] },
      'NodePool/bad',
      'spec is missing',
    ],
    [
      'a pool whose taints are no list',
      { nodePools: [pool({}, { taints: 'gpu' })] },
      'NodePool/bad',
      'spec.template.spec.taints must be a list',
    ],
    [
      'a pool with a negative limit',
      { nodePools: [pool({ limits: { cpu: '-1' } })] },
      'NodePool/bad',
      'its limits cannot be used: cpu is negative (-1)',
    ],
    [
      'a pool with a limit that is no quantity',
      { nodePools: [pool({ limits: { cpu: 'many' } })] },
      'NodePool/bad',
      'spec.limits.cpu: "many" is not a quantity',
    ],
    [
      'a pool whose weight is no number',
      { nodePools: [pool({ weight: 'high' })] },
      'NodePool/bad',
      'spec.weight must be a whole number',
    ],
    [
      'a pool of broken types only',
      { nodePools: [pool({})], instanceTypes: { bad: [type({ offerings: [] })], good: [small] } },
      'NodePool/bad',
      'none of its instance types can be used',
    ],
    [
      'a type with negative capacity',
      { instanceTypes: { good: [type({ capacity: { cpu: '-2' } }), small] } },
      'InstanceType/good/bad',
      'cpu is negative (-2)',
    ],
    [
      'a type without capacity',
      { instanceTypes: { good: [type({ capacity: undefined }), small] } },
      'InstanceType/good/bad',
      'capacity is missing',
    ],
    [
      'a type with negative overhead',
      { instanceTypes: { good: [type({ overhead: { kubeReserved: { cpu: '-2' } } }), small] } },
      'InstanceType/good/bad',
      'overhead.kubeReserved.cpu must not be negative',
    ],
    [
      'a type with a negative override',
      {
        instanceTypes: {
          good: [type({ offerings: [offering('a', 'on-demand', 1, { capacityOverride: { cpu: '-8' } })] }), small],
        },
      },
      'InstanceType/good/bad',
      'offerings[0].capacityOverride.cpu must not be negative',
    ],
    [
      'a type that costs less than nothing',
      { instanceTypes: { good: [type({ offerings: offers(-1) }), small] } },
      'InstanceType/good/bad',
      'offerings[0].price must not be negative',
    ],
    [
      'a node with negative room',
      { nodes: nodes({ status: { allocatable: { ...has, cpu: '-4' } } }) },
      'Node/bad',
      'its allocatable cannot be used: cpu is negative (-4)',
    ],
    [
      'a node whose room is no quantity',
      { nodes: nodes({ status: { allocatable: { cpu: 'four' } } }) },
      'Node/bad',
      'status.allocatable.cpu: "four" is not a quantity',
    ],
    [
      'a node whose taints are no list',
      { nodes: nodes({ spec: { taints: [null] } }) },
      'Node/bad',
      'spec.taints[0] must be an object',
    ],
    [
      'a claim whose taints are no list',
      { nodeClaims: [claim({ spec: { taints: 'x' } })] },
      'Node/bad',
      'spec.taints must be a list',
    ],
    [
      'a daemonset without a template',
      { daemonSets: daemons({}) },
      'DaemonSet/default/bad',
      'spec.template is missing',
    ],
    [
      'a daemonset that asks for less than nothing',
      { daemonSets: [daemonSet('bad', { cpu: '-1' })] },
      'DaemonSet/default/bad',
      'its requests cannot be used: cpu is negative (-1)',
    ],
    [
      'a daemonset whose affinity is nothing',
      { daemonSets: [daemonSet('bad', {}, required([[broken(null)]]))] },
      'DaemonSet/default/bad',
      'matchExpressions[0] must be an object',
    ],
    [
      'a CSINode whose drivers are no list',
      { csiNodes: [broken({ metadata: { name: 'bad' }, spec: { drivers: 'x' } })] },
      'CSINode/bad',
      'spec.drivers must be a list',
    ],
  ])('%s', (_, more, object, expected) => {
    const nodePools = [...(more.nodePools ?? []), nodePool('good')];
    const instanceTypes = more.instanceTypes ?? { good: [small], bad: [small] };
    const result = answer([pod('p')], { ...more, nodePools, instanceTypes });
    expect(result.objectErrors.find((error) => error.object === object)?.reason).toContain(expected);
    expect(nodeOf(result, 'p')).toBe(0);
    expect(result.newNodeClaims).toMatchObject([{ nodePool: 'good', instanceTypes: ['small'] }]);
  });

  test('a claim whose conditions are no list counts as one that stays', () => {
    const result = answer([pod('p')], { nodeClaims: [claim({ status: { allocatable: has, conditions: 'x' } })] });
    expect(nodeOf(result, 'p')).toBe('bad');
  });
});

describe('what is said of a pod without a place names', () => {
  test('why no NodePool is usable', () => {
    const clash = nodePool('clash', { requirements: [oneOf(zone, 'a'), oneOf(zone, 'b')] });
    expect(place([pod('p')], { nodePools: [clash] }).errors[0]!.detail).toContain(
      'NodePool/clash: its requirements contradict each other',
    );
  });
  test('that nothing can be bought now', () => {
    const gone = instanceType('gone', { cpu: '2', memory: '4Gi', pods: '9' }, [
      offering('a', 'spot', 1, { available: false }),
    ]);
    expect(reasonOf(place([pod('p')], { types: [gone] }), 'p')).toContain('an offering that is available now');
  });
  test('that daemonsets leave no room', () => {
    const daemonSets = [daemonSet('agent', { cpu: '64' })];
    expect(reasonOf(place([pod('p')], { daemonSets, types: [small, large] }), 'p')).toContain('leaves no room');
  });
  test.each([
    ['zone', 'was topology.kubernetes.io/zone meant?'],
    ['kubernetes.io/arhc', 'was kubernetes.io/arch meant?'],
  ])('the label that was probably meant by %s', (key, expected) => {
    const lost = pod('p', { spec: { nodeSelector: { [key]: 'x' } } });
    expect(reasonOf(place([lost], { nodes: [existing('n')] }), 'p')).toContain(expected);
  });
  test('no label that is nothing like it', () => {
    expect(reasonOf(place([pod('p', { spec: { nodeSelector: { q: 'x' } } })]), 'p')).toBe('no node has the label q');
  });
});
