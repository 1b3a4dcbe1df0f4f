// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, test } from 'vitest';
import { annotations } from '../../api/labels.ts';
import { kinds } from '../../kube/kinds.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { Emptiness } from './emptiness.ts';
import { disruptionControllers } from './index.ts';
import {
  budget,
  contextOf,
  going,
  letPodsGo,
  type MachineParts,
  machine,
  marksOf,
  openPool,
  runningPod,
  unmarked,
} from './testing/machines.ts';

const minute = 60_000;
let world: TestWorld;
afterEach(() => world.close());

type PoolOptions = Parameters<TestWorld['pool']>[0];

/** A world with a pool in which nothing is disrupted yet; `run` begins. */
async function start(pool: PoolOptions = {}): Promise<void> {
  world = await testWorld();
  await openPool(world, pool);
}

async function machines(names: readonly string[], parts: MachineParts = {}): Promise<void> {
  for (const name of names) await machine(world, name, parts);
}

function run(): void {
  world.run(...disruptionControllers(contextOf(world), { random: world.random, methods: [new Emptiness()] }));
}

/** Runs the loop for as long as a proposal takes to become a command. */
async function disrupt(): Promise<void> {
  run();
  await world.advance(15_000);
}

describe('an empty node', () => {
  test('is deleted after it was empty for another fifteen seconds', async () => {
    await start();
    await machines(['a']);
    run();
    await world.advance(14_999);
    expect(await going(world)).toEqual([]);
    expect(await marksOf(world, 'a')).toEqual(unmarked);
    await world.advance(1);
    expect(await going(world)).toEqual(['a']);
    expect(await marksOf(world, 'a')).toEqual({ tainted: true, reason: 'Empty' });
    expect(world.state.isMarkedForDeletion('fake://a')).toBe(true);
  });

  test('tells users, the log and the metrics', async () => {
    await start();
    await machines(['a']);
    await disrupt();
    expect(await world.events('DisruptionTerminating')).toEqual([
      'DisruptionTerminating Node/a: Disrupting Node: Empty',
      'DisruptionTerminating NodeClaim/a: Disrupting NodeClaim: Empty',
    ]);
    const line = world.log.lines.find(({ message }) => message === 'disrupting node(s)');
    expect(line?.fields).toMatchObject({
      command: expect.stringMatching(
        /^Empty\/[-0-9a-f]{36}: delete: nodepools=\[default\]: \[a\] \(savings: \$0\.40\)$/,
      ),
      decision: 'delete',
      'disrupted-node-count': 1,
      'replacement-node-count': 0,
      'pod-count': 0,
      'disrupted-nodes': [
        { Node: { name: 'a' }, NodeClaim: { name: 'a' }, 'capacity-type': 'on-demand', 'instance-type': 'c-4x' },
      ],
    });
    const labels = { decision: 'delete', reason: 'empty', consolidation_type: 'empty' };
    expect(await world.metrics.value('karpenter_voluntary_disruption_decisions_total', labels)).toBe(1);
    const ofPool = { ...labels, nodepool: 'default' };
    expect(await world.metrics.value('karpenter_voluntary_disruption_decisions_by_nodepool_total', ofPool)).toBe(1);
    expect(
      await world.metrics.value('karpenter_nodeclaims_disrupted_total', {
        reason: 'empty',
        nodepool: 'default',
        capacity_type: 'on-demand',
        consolidation_policy: 'WhenEmptyOrUnderutilized',
        termination_mode: 'graceful',
      }),
    ).toBe(1);
    expect(
      await world.metrics.value('karpenter_voluntary_disruption_decision_evaluation_duration_seconds'),
    ).toBeGreaterThan(0);
  });

  test('goes with all others in one command', async () => {
    await start();
    await machines(['a', 'b', 'c']);
    await disrupt();
    expect(await going(world)).toEqual(['a', 'b', 'c']);
    expect(world.log.messages().filter((message) => message === 'disrupting node(s)')).toHaveLength(1);
  });

  test.each(['WhenEmpty', 'WhenEmptyOrUnderutilized', 'Balanced'] as const)('goes under %s', async (policy) => {
    await start({ spec: { disruption: { consolidationPolicy: policy } } });
    await machines(['a']);
    await disrupt();
    expect(await going(world)).toEqual(['a']);
  });

  test('is one with nothing but daemons, pods that are going, and pods that cost nothing to move', async () => {
    await start();
    await machines(['a']);
    await runningPod(world, 'daemon', 'a', { owner: 'DaemonSet' });
    await runningPod(world, 'cheap', 'a', { annotations: { [annotations.podDeletionCost]: '-2147483647' } });
    await runningPod(world, 'leaving', 'a');
    await world.workload.resource(kinds.Pod).delete('leaving', { namespace: 'default' });
    await disrupt();
    expect(await going(world)).toEqual(['a']);
  });

  test('is not one to which a StatefulSet pod will come back', async () => {
    await start();
    await machines(['a']);
    await runningPod(world, 'db-0', 'a', { owner: 'StatefulSet' });
    await world.workload.resource(kinds.Pod).delete('db-0', { namespace: 'default' });
    await disrupt();
    expect(await going(world)).toEqual([]);
    await letPodsGo(world);
    await world.advance(25_000);
    expect(await going(world)).toEqual(['a']);
  });
});

describe('a node stays', () => {
  test('that has a pod', async () => {
    await start();
    await machines(['a', 'b']);
    await runningPod(world, 'web', 'a');
    await disrupt();
    expect(await going(world)).toEqual(['b']);
  });

  test('that has not been quiet for long enough', async () => {
    await start();
    await machines(['a'], { consolidatable: false });
    await disrupt();
    expect(await going(world)).toEqual([]);
  });

  test('whose pool never consolidates, and says so', async () => {
    await start({ spec: { disruption: { consolidateAfter: 'Never' } } });
    await machines(['a']);
    await disrupt();
    expect(await going(world)).toEqual([]);
    expect(await world.events('Unconsolidatable')).toEqual([
      'Unconsolidatable Node/a: NodePool "default" has consolidation disabled',
      'Unconsolidatable NodeClaim/a: NodePool "default" has consolidation disabled',
    ]);
  });

  test('whose pool has a fixed size', async () => {
    await start({ spec: { replicas: 1 } });
    await machines(['a']);
    await disrupt();
    expect(await going(world)).toEqual([]);
  });

  test('that is promised to a pod', async () => {
    await start();
    await machines(['a']);
    world.state.nominate('fake://a', minute);
    await disrupt();
    expect(await going(world)).toEqual([]);
    expect(await world.events('DisruptionBlocked')).toContain(
      'DisruptionBlocked Node/a: Node is nominated for a pending pod',
    );
    await world.advance(minute + 25_000);
    expect(await going(world)).toEqual(['a']);
  });

  test.each([
    ['whose annotation forbids it', { [annotations.doNotDisrupt]: 'true' }, []],
    ['not when the annotation is no "true"', { [annotations.doNotDisrupt]: 'yes' }, ['a']],
  ])('%s', async (_, own, expected) => {
    await start();
    await machines(['a'], { annotations: own });
    await disrupt();
    expect(await going(world)).toEqual(expected);
    const told = (await world.events('DisruptionBlocked')).includes(
      'DisruptionBlocked Node/a: Disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation',
    );
    expect(told).toBe(expected.length === 0);
  });

  test('on which a pod must not be disrupted, a daemon included', async () => {
    await start();
    await machines(['a']);
    await runningPod(world, 'agent', 'a', { owner: 'DaemonSet', annotations: { [annotations.doNotDisrupt]: 'true' } });
    await disrupt();
    expect(await going(world)).toEqual([]);
    expect(await world.events('DisruptionBlocked')).toContain(
      'DisruptionBlocked NodeClaim/a: Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/agent)',
    );
  });

  test('as long as a pod on it protects itself', async () => {
    await start();
    await machines(['a']);
    await runningPod(world, 'agent', 'a', { owner: 'DaemonSet', annotations: { [annotations.doNotDisrupt]: '5m' } });
    await disrupt();
    expect(await going(world)).toEqual([]);
    await world.advance(5 * minute + 15_000);
    expect(await going(world)).toEqual(['a']);
  });

  test('also when a pod cannot say how long; but then only as if it had said nothing', async () => {
    await start();
    await machines(['a']);
    await runningPod(world, 'agent', 'a', { owner: 'DaemonSet', annotations: { [annotations.doNotDisrupt]: '-5m' } });
    await disrupt();
    expect(await going(world)).toEqual(['a']);
    expect(await world.events('InvalidDoNotDisruptAnnotation')).toEqual([
      'InvalidDoNotDisruptAnnotation Pod/agent: Invalid karpenter.sh/do-not-disrupt annotation: duration "-5m" must be positive, ignoring annotation',
    ]);
  });

  test('whose daemon has a budget that allows nothing, or two of them', async () => {
    await start();
    await machines(['a', 'b']);
    await runningPod(world, 'one', 'a', { owner: 'DaemonSet', labels: { app: 'one' } });
    await runningPod(world, 'two', 'b', { owner: 'DaemonSet', labels: { app: 'two' } });
    await budget(world, 'one', 0);
    await budget(world, 'two', 1);
    await budget(world, 'two', 1, 'another');
    await disrupt();
    expect(await going(world)).toEqual([]);
    const told = await world.events('DisruptionBlocked');
    expect(told).toContain('DisruptionBlocked Node/a: Pdb prevents pod evictions (PodDisruptionBudget=[default/one])');
    expect(told.find((line) => line.includes('Node/b'))).toContain('Eviction does not support multiple PDBs');
  });

  test('whose pool is gone, or sells nothing', async () => {
    await start();
    await openPool(world, { name: 'sold-out' });
    world.cloud.typesOfPool.set('sold-out', []);
    await machines(['a'], { pool: 'gone' });
    await machines(['b'], { pool: 'sold-out' });
    await disrupt();
    expect(await going(world)).toEqual([]);
    const told = await world.events('DisruptionBlocked');
    expect(told).toContain('DisruptionBlocked Node/a: NodePool not found (NodePool=gone)');
    expect(told).toContain('DisruptionBlocked Node/b: NodePool not found (NodePool=sold-out)');
  });

  test('when the cloud of its pool fails, while those of other pools go', async () => {
    await start();
    await openPool(world, { name: 'other' });
    await machines(['a']);
    await machines(['b'], { pool: 'other' });
    // The pool `other` is asked first.
    world.cloud.fail('instanceTypes', new Error('the cloud is on fire'));
    await disrupt();
    expect(await going(world)).toEqual(['a']);
    expect(world.log.messages('error')).toContain('failed listing instance types');
    await world.advance(16_000);
    expect(await going(world)).toEqual(['a', 'b']);
  });
});

describe('before an empty node is deleted', () => {
  async function proposed(names: readonly string[], pool: PoolOptions = {}): Promise<void> {
    await start(pool);
    await machines(names);
    run();
    await world.advance(10_000);
  }

  const failures = (): Promise<number | undefined> =>
    world.metrics.value('karpenter_voluntary_disruption_failed_validations_total', { consolidation_type: 'empty' });

  test('it is looked at again: one that got a pod is spared, the others go', async () => {
    await proposed(['a', 'b']);
    await runningPod(world, 'late', 'a');
    await world.advance(5000);
    expect(await going(world)).toEqual(['b']);
    expect(await failures()).toBe(1);
  });

  test('one that was promised to a pod is spared', async () => {
    await proposed(['a']);
    world.state.nominate('fake://a', minute);
    await world.advance(5000);
    expect(await going(world)).toEqual([]);
    expect(await failures()).toBe(1);
    expect(world.log.messages('debug')).toContain(
      'abandoning emptiness attempt due to pod churn, command is no longer valid',
    );
  });

  test('budgets are asked again', async () => {
    await proposed(['a', 'b']);
    await openPool(world, { spec: { disruption: { budgets: [{ nodes: '1' }] } } });
    await world.advance(5000);
    expect(await going(world)).toEqual(['a']);
  });

  test('a machine that became empty meanwhile waits its own fifteen seconds', async () => {
    await proposed(['a']);
    await machines(['b']);
    await world.advance(5000);
    expect(await going(world)).toEqual(['a']);
    await world.advance(14_999);
    expect(await going(world)).toEqual(['a']);
    await world.advance(1000);
    expect(await going(world)).toEqual(['a', 'b']);
  });
});
