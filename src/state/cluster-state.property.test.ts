// SPDX-License-Identifier: Apache-2.0
// Whatever happens in whatever order, the sums kept by differences are those of counting anew.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { labels } from '../api/labels.ts';
import { type TestWorld, testWorld } from '../controllers/testing/world.ts';
import { ignoreNotFound } from '../kube/api-error.ts';
import { kinds, type Pod } from '../kube/kinds.ts';
import type { KubeObject } from '../kube/object.ts';
import { type Amounts, addTo, formatAmounts } from './amounts.ts';
import type { ClusterState } from './cluster-state.ts';
import { isProvisionable, isTerminal } from './pod-predicates.ts';
import { PodUsages } from './pod-usage.ts';
import { boundPod, launchedClaim, node, ownedBy, pendingPod } from './testing/objects.ts';

// Few names: the same things must come, go and come back.
const nodeNames = ['a', 'b'];
const podNames = ['p', 'q', 'r'];

const registered = { [labels.nodePool]: 'default', [labels.registered]: 'true', [labels.instanceType]: 'c-10x' };

type Step = { readonly what: string; readonly which: number; readonly where: number; readonly size: number };

const step: fc.Arbitrary<Step> = fc.record({
  what: fc.constantFrom(
    'node',
    'no node',
    'claim',
    'no claim',
    'pod',
    'daemon',
    'waiting',
    'over',
    'no pod',
    'mark',
    'unmark',
  ),
  which: fc.nat({ max: 2 }),
  where: fc.nat({ max: 1 }),
  size: fc.integer({ min: 1, max: 4 }),
});

async function take(world: TestWorld, { what, which, where, size }: Step): Promise<void> {
  const [name, at] = [podNames[which]!, nodeNames[where]!];
  const containers = [
    { name: 'main', image: 'app', resources: { requests: { cpu: String(size) }, limits: { cpu: '4' } } },
  ];
  const providerID = `fake://${at}`;
  const removePod = async (): Promise<void> => {
    const where = { namespace: 'default', gracePeriodSeconds: 0 };
    await ignoreNotFound(world.workload.resource(kinds.Pod).delete(name, where));
  };
  // A pod never changes its node: it is another pod of the same name.
  const replacePod = async (pod: Pod): Promise<void> => {
    await removePod();
    await world.apply(pod);
  };
  switch (what) {
    case 'node':
      await world.apply(node(at, { labels: { ...registered, ...(size > 2 ? { [labels.initialized]: 'true' } : {}) } }));
      break;
    case 'no node':
      await world.delete(node(at));
      break;
    case 'claim':
      await world.apply(launchedClaim(`claim-${at}`, { providerID: size > 3 ? '' : providerID, nodeName: at }));
      break;
    case 'no claim':
      await world.delete(launchedClaim(`claim-${at}`));
      break;
    case 'pod':
      await replacePod(boundPod(name, at, { containers }));
      break;
    case 'daemon':
      await replacePod(ownedBy(boundPod(name, at, { containers }), 'apps/v1', 'DaemonSet'));
      break;
    case 'waiting':
      await replacePod(pendingPod(name, { containers }));
      break;
    case 'over':
      await replacePod({ ...boundPod(name, at, { containers }), status: { phase: 'Succeeded' } });
      break;
    case 'no pod':
      await removePod();
      break;
    case 'mark':
      world.state.markForDeletion([providerID]);
      break;
    default:
      world.state.unmarkForDeletion([providerID]);
  }
  await world.settle();
}

function expectConsistent(state: ClusterState): void {
  const pods = state.sources.pods.list();
  const usages = new PodUsages();
  for (const machine of state.nodes()) {
    const sum: Amounts = new Map();
    for (const pod of pods)
      if (pod.spec.nodeName && pod.spec.nodeName === machine.nodeName && !isTerminal(pod))
        addTo(sum, usages.of(pod).requests);
    expect(formatAmounts(machine.requests)).toEqual(formatAmounts(sum));
  }
  const total: Amounts = new Map();
  for (const machine of state.nodes())
    if (machine.nodePool === 'default' && !machine.markedForDeletion) addTo(total, machine.capacity);
  expect(formatAmounts(state.poolUsage('default'))).toEqual(formatAmounts(total));
  const names = (of: Iterable<KubeObject>): Set<string | undefined> =>
    new Set([...of].map(({ metadata }) => metadata.name));
  expect(names(state.pendingPods())).toEqual(names(pods.filter(isProvisionable)));
  const unlaunched = state.sources.nodeClaims.list().filter(({ status }) => !status?.providerID);
  expect(new Set(state.unlaunchedClaims)).toEqual(names(unlaunched));
  const known = new Set([...state.nodes()].map(({ key }) => key));
  const expected = [
    ...state.sources.nodes.list().map(({ spec }) => spec?.providerID),
    ...state.sources.nodeClaims.list().flatMap(({ status }) => (status?.providerID ? [status.providerID] : [])),
  ];
  expect(known).toEqual(new Set(expected));
}

test('sums kept by differences are those of counting anew', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      const world = await testWorld();
      for (const each of steps) {
        await take(world, each);
        expectConsistent(world.state);
      }
      await world.close();
    }),
    { numRuns: 30, seed: 7 },
  );
}, 60_000);
