// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, test } from 'vitest';
import { nodeClaimKind } from '../../api/node-claim.ts';
import { kinds } from '../../kube/kinds.ts';
import type { NewNodeClaim } from '../../scheduling/problem.ts';
import { PdbLimits } from '../../state/pdb-limits.ts';
import { readPoolCatalog } from '../../state/pool-catalog.ts';
import { ClaimCreator } from '../provisioning/create-claims.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { type Candidate, findCandidates } from './candidates.ts';
import { DisruptionMarks } from './marks.ts';
import type { Command } from './method.ts';
import { DisruptionQueue } from './queue.ts';
import { contextOf, going, machine, marksOf, openPool, runningPod, unmarked } from './testing/machines.ts';

const minute = 60_000;
const marked = { tainted: true, reason: 'Drifted' };
let world: TestWorld;
let queue: DisruptionQueue;
afterEach(() => world.close());

/** A world with the machines `a` and `b`, and nothing but the queue at work. */
async function start(): Promise<void> {
  world = await testWorld();
  await openPool(world);
  await machine(world, 'a');
  await machine(world, 'b');
  const context = contextOf(world);
  const marks = new DisruptionMarks(context);
  queue = new DisruptionQueue({ context, marks, creator: new ClaimCreator(context) });
  world.run(queue.controller);
}

const replacement: NewNodeClaim = {
  nodePool: 'default',
  requirements: [],
  instanceTypes: ['c-2x'],
  price: 0.2,
  requests: { cpu: '1' },
  pods: [],
};

/** A command about machines; with so many replacements. */
async function command(names: readonly string[], replacements = 0): Promise<Command> {
  const { state, registry, clock, signal } = world;
  const catalog = await readPoolCatalog(registry, state.sources.nodePools.list(), signal);
  const { candidates } = findCandidates({
    machines: state,
    catalog,
    pdbs: new PdbLimits([]),
    now: clock.now(),
    disruptionClass: 'eventual',
    isQueued: () => false,
  });
  const byName = (name: string): Candidate => candidates.find((candidate) => candidate.machine.name === name)!;
  return {
    id: 'test',
    method: { reason: 'Drifted', consolidationType: '' },
    candidates: names.map(byName),
    replacements: Array.from({ length: replacements }, () => replacement),
    destinations: [],
    catalog,
  };
}

async function begin(of: Command): Promise<void> {
  await queue.start(of, world.signal, world.log);
  await world.settle();
}

/** The replacement comes up. */
async function initialize(): Promise<void> {
  const [claim] = await world.launch();
  const lastTransitionTime = '2026-01-01T00:00:00Z';
  const conditions = ['Launched', 'Registered', 'Initialized'].map((type) => ({
    type,
    status: 'True',
    reason: type,
    message: '',
    lastTransitionTime,
  }));
  const resource = { group: 'karpenter.sh', version: 'v1', kind: 'NodeClaim', plural: 'nodeclaims', namespaced: false };
  await world.karpenter.resource(resource).patchStatus(claim!.metadata.name!, { status: { conditions } });
  await world.settle();
}

async function replacements(): Promise<string[]> {
  const claims = await world.claims();
  return claims.map(({ metadata }) => metadata.name!).filter((name) => name !== 'a' && name !== 'b');
}

describe('a command without replacements', () => {
  test('marks its machines and deletes them', async () => {
    await start();
    await runningPod(world, 'web', 'a');
    await begin(await command(['a', 'b']));
    expect(await going(world)).toEqual(['a', 'b']);
    expect(await marksOf(world, 'a')).toEqual(marked);
    expect(queue.has('fake://a')).toBe(false);
    expect(world.state.isMarkedForDeletion('fake://a')).toBe(true);
    expect(await world.metrics.value('karpenter_pods_disruption_initiated_total', { reason: 'drifted' })).toBe(1);
  });

  test('goes on with the machines that could be marked, and leaves the rest alone', async () => {
    await start();
    world.doors.workload.fail('PATCH /nodes/a', { status: 403, reason: 'Forbidden' });
    await begin(await command(['a', 'b']));
    expect(await going(world)).toEqual(['b']);
    expect(await marksOf(world, 'a')).toEqual(unmarked);
    expect(queue.has('fake://a')).toBe(false);
  });

  test('is given up when no machine could be marked', async () => {
    await start();
    world.doors.workload.fail('PATCH /nodes/', { status: 403, reason: 'Forbidden' }, 2);
    await expect(begin(await command(['a', 'b']))).rejects.toThrow('marking disrupted');
    expect(await going(world)).toEqual([]);
    expect(queue.has('fake://a')).toBe(false);
  });

  test('wins over others who write to the same objects', async () => {
    await start();
    world.doors.workload.fail('PATCH /nodes/a', { status: 409, reason: 'Conflict' }, 3);
    world.doors.karpenter.fail('PATCH /nodeclaims/a/status', { status: 409, reason: 'Conflict' }, 3);
    await begin(await command(['a']));
    expect(await going(world)).toEqual(['a']);
    expect(await marksOf(world, 'a')).toEqual(marked);
  });

  test('asks again when a deletion fails, and counts it once', async () => {
    await start();
    world.doors.karpenter.fail('DELETE /nodeclaims/a', { status: 403, reason: 'Forbidden' }, 2);
    await begin(await command(['a', 'b']));
    expect(await going(world)).toEqual(['b']);
    await world.advance(2000);
    expect(await going(world)).toEqual(['a', 'b']);
    expect(await world.metrics.value('karpenter_nodeclaims_disrupted_total', { reason: 'drifted' })).toBe(2);
    expect(await world.events('DisruptionTerminating')).toHaveLength(4);
  });

  test('is given up for machines that cannot be deleted in ten minutes; the others go', async () => {
    await start();
    world.doors.karpenter.fail('DELETE /nodeclaims/a', { status: 403, reason: 'Forbidden' }, 1000);
    await begin(await command(['a', 'b']));
    await world.advance(11 * minute);
    expect(await going(world)).toEqual(['b']);
    expect(await marksOf(world, 'a')).toEqual(unmarked);
    expect(await marksOf(world, 'b')).toEqual(marked);
    expect(queue.has('fake://a') || queue.has('fake://b')).toBe(false);
  });

  test('does not begin while another is about one of its machines', async () => {
    await start();
    const first = await command(['a'], 1);
    const second = await command(['a', 'b']);
    await begin(first);
    await expect(begin(second)).rejects.toThrow('candidate is being disrupted');
    expect(await marksOf(world, 'b')).toEqual(unmarked);
    expect(queue.has('fake://b')).toBe(false);
  });
});

describe('a command with a replacement', () => {
  test('deletes only when the replacement is in service', async () => {
    await start();
    await begin(await command(['a'], 1));
    const [name] = await replacements();
    expect(await marksOf(world, 'a')).toEqual(marked);
    expect(world.state.isMarkedForDeletion('fake://a')).toBe(true);
    await world.advance(minute);
    expect(await going(world)).toEqual([]);
    expect(queue.has('fake://a')).toBe(true);
    expect(await world.events('DisruptionLaunching')).toEqual([
      `DisruptionLaunching NodeClaim/${name}: Launching NodeClaim: Drifted`,
    ]);
    expect(await world.events('DisruptionWaitingReadiness')).toEqual([
      `DisruptionWaitingReadiness NodeClaim/${name}: Waiting on readiness to continue disruption`,
    ]);
    await initialize();
    await world.advance(1000);
    expect(await going(world)).toEqual(['a']);
    expect(queue.has('fake://a')).toBe(false);
    expect(await world.metrics.value('karpenter_nodeclaims_created_total', { reason: 'drifted' })).toBe(1);
  });

  test('marks nothing for deletion before the replacement is known', async () => {
    await start();
    let markedAtCreation: boolean | undefined;
    world.doors.karpenter.beforeWrite(({ method, path }) => {
      if (method === 'POST' && path.endsWith('/nodeclaims')) {
        markedAtCreation = world.state.isMarkedForDeletion('fake://a');
      }
    });
    await begin(await command(['a'], 1));
    expect(markedAtCreation).toBe(false);
  });

  test('is taken back when the replacement cannot be asked for', async () => {
    await start();
    world.doors.karpenter.fail('POST /nodeclaims', { status: 403, reason: 'Forbidden' });
    await expect(begin(await command(['a'], 1))).rejects.toThrow('launching replacement nodeclaim');
    await world.settle();
    expect(await marksOf(world, 'a')).toEqual(unmarked);
    expect(world.state.isMarkedForDeletion('fake://a')).toBe(false);
    expect(queue.has('fake://a')).toBe(false);
  });

  test('is not begun when one of its machines cannot be marked', async () => {
    await start();
    world.doors.workload.fail('PATCH /nodes/a', { status: 403, reason: 'Forbidden' });
    await expect(begin(await command(['a', 'b'], 1))).rejects.toThrow('marking disrupted');
    await world.settle();
    expect(await replacements()).toEqual([]);
    expect(await marksOf(world, 'b')).toEqual(unmarked);
  });

  test('is taken back when the replacement is deleted', async () => {
    await start();
    await begin(await command(['a'], 1));
    for (const claim of await world.claims())
      if (claim.metadata.name?.startsWith('default-')) await world.delete(claim);
    await world.advance(1000);
    expect(await marksOf(world, 'a')).toEqual(unmarked);
    expect(world.state.isMarkedForDeletion('fake://a')).toBe(false);
    expect(world.log.messages('error')).toContain('failed terminating nodes while executing a disruption command');
    const labels = { decision: 'replace', reason: 'drifted', consolidation_type: '' };
    expect(await world.metrics.value('karpenter_voluntary_disruption_queue_failures_total', labels)).toBe(1);
  });

  test('is taken back after ten minutes without it', async () => {
    await start();
    await begin(await command(['a'], 1));
    await world.advance(10 * minute);
    expect(queue.has('fake://a')).toBe(true);
    await world.advance(1000);
    expect(queue.has('fake://a')).toBe(false);
    expect(await marksOf(world, 'a')).toEqual(unmarked);
    expect(await replacements()).toHaveLength(1);
  });

  test('is taken back after ten minutes without it, whatever became of its other machines', async () => {
    await start();
    await begin(await command(['a', 'b'], 1));
    for (const claim of await world.claims()) {
      if (claim.metadata.name !== 'b') continue;
      await world.karpenter.resource(nodeClaimKind).patch('b', { metadata: { finalizers: null } });
      await world.delete(claim);
    }
    await world.workload.resource(kinds.Node).patch('b', { metadata: { finalizers: null } });
    await world.workload.resource(kinds.Node).delete('b');
    await world.advance(10 * minute + 1000);
    expect(await marksOf(world, 'a')).toEqual(unmarked);
    expect(queue.has('fake://a')).toBe(false);
  });

  test('leaves its machines alone for ten seconds when it was taken back, and tells how much is left', async () => {
    await start();
    await begin(await command(['a'], 1));
    expect(queue.pausesEndInMs()).toBe(Number.POSITIVE_INFINITY);
    await world.advance(10 * minute + 1000);
    expect(queue.isPaused('fake://a')).toBe(true);
    const left = queue.pausesEndInMs();
    expect(left).toBeLessThanOrEqual(10_000);
    await world.advance(4000);
    expect(queue.pausesEndInMs()).toBe(left - 4000);
    await world.advance(left - 4000);
    expect(queue.isPaused('fake://a')).toBe(false);
    expect(queue.paused).toBe(0);
  });

  test('promises the machines its pods go to', async () => {
    await start();
    await begin({ ...(await command(['a'], 1)), destinations: ['fake://b'] });
    expect(world.state.isNominated('fake://b')).toBe(true);
  });
});
