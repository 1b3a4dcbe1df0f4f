// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, test } from 'vitest';
import { disruptedTaint } from '../../api/taints.ts';
import { nodeClaim } from '../../api/testing/objects.ts';
import { kinds } from '../../kube/kinds.ts';
import { boundPod } from '../../state/testing/objects.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { Emptiness } from './emptiness.ts';
import { defaultMethods, disruptionControllers } from './index.ts';
import type { Method, MethodView, Proposal } from './method.ts';
import {
  contextOf,
  going,
  machine,
  marksOf,
  openPool,
  runningPod,
  runUntilKilled,
  unmarked,
} from './testing/machines.ts';

let world: TestWorld;
afterEach(() => world.close());

async function start(): Promise<void> {
  world = await testWorld();
  await openPool(world);
}

/** Runs the loop with these methods; gives the way to kill it. */
function run(methods: readonly Method[] = defaultMethods()): () => void {
  return runUntilKilled(world, disruptionControllers(contextOf(world), { random: world.random, methods }));
}

/** A method that disrupts one machine at once; `asked` counts how often it is asked. */
function method(name: string, of: string | undefined): Method & { asked: number } {
  return {
    name,
    reason: 'Drifted',
    disruptionClass: 'eventual',
    consolidationType: '',
    validateAfterMs: 0,
    asked: 0,
    concerns: ({ machine: candidate }) => of === undefined || candidate.name === of,
    propose(view) {
      this.asked++;
      return of === undefined ? [] : [{ candidates: view.candidates, replacements: [], destinations: [] }];
    },
  };
}

/** Replaces every candidate by a machine of its own. */
function replaceAll({ candidates }: MethodView): Proposal[] {
  const plan = { nodePool: 'default', requirements: [], instanceTypes: ['c-2x'], price: 0, requests: {}, pods: [] };
  return candidates.map((candidate) => ({ candidates: [candidate], replacements: [plan], destinations: [] }));
}

/** What a program that died in the middle of a command leaves behind. */
async function leftBehind(name: string): Promise<void> {
  await machine(world, name, { taints: [{ key: 'example.com/own', effect: 'NoSchedule' }, { ...disruptedTaint }] });
  const claim = (await world.claims()).find(({ metadata }) => metadata.name === name)!;
  const lastTransitionTime = '2026-01-01T00:00:00Z';
  const condition = { type: 'DisruptionReason', status: 'True', reason: 'Empty', message: '', lastTransitionTime };
  const conditions = [...claim.status!.conditions!, condition].filter(({ type }) => type !== 'Consolidatable');
  const resource = { group: 'karpenter.sh', version: 'v1', kind: 'NodeClaim', plural: 'nodeclaims', namespaced: false };
  await world.karpenter.resource(resource).patchStatus(name, { status: { conditions } });
  await world.settle();
}

describe('the loop of disruption', () => {
  test('takes back what a program that died left behind, and nothing else', async () => {
    await start();
    await leftBehind('a');
    run();
    await world.settle();
    expect(await marksOf(world, 'a')).toEqual(unmarked);
    const node = await world.find(kinds.Node, 'a');
    expect(node?.spec?.taints).toEqual([{ key: 'example.com/own', effect: 'NoSchedule' }]);
  });

  test('tries that again when it fails, and does not stop for it', async () => {
    await start();
    await leftBehind('a');
    await machine(world, 'b');
    world.doors.workload.fail('PATCH /nodes/a', { status: 403, reason: 'Forbidden' });
    run();
    await world.advance(15_000);
    expect(await going(world)).toEqual(['b']);
    expect(await marksOf(world, 'a')).toEqual(unmarked);
  });

  test('leaves the marks of machines that are being deleted', async () => {
    await start();
    await leftBehind('a');
    await leftBehind('b');
    await world.delete((await world.claims()).find(({ metadata }) => metadata.name === 'a')!);
    await world.workload.resource(kinds.Node).delete('b');
    run();
    await world.advance(20_000);
    expect((await marksOf(world, 'a')).tainted).toBe(true);
    expect((await marksOf(world, 'b')).tainted).toBe(true);
  });

  test('leaves the marks of a command that is under way', async () => {
    await start();
    await machine(world, 'a');
    run([{ ...method('drift', 'a'), propose: replaceAll }]);
    await world.advance(60_000);
    await world.launch();
    await world.advance(60_000);
    expect(await marksOf(world, 'a')).toEqual({ tainted: true, reason: 'Drifted' });
    expect(await going(world)).toEqual([]);
  });

  test('never touches nodes that are not ours', async () => {
    await start();
    const spec = { providerID: 'other://a', taints: [{ ...disruptedTaint }] };
    await world.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' }, spec });
    run();
    await world.advance(20_000);
    expect((await marksOf(world, 'a')).tainted).toBe(true);
    expect(await world.events()).toEqual([]);
  });

  test('begins anew after a restart: a proposal that was not carried out is made again', async () => {
    await start();
    await machine(world, 'a');
    const kill = run();
    await world.advance(14_000);
    kill();
    run();
    await world.advance(14_000);
    expect(await going(world)).toEqual([]);
    await world.advance(1000);
    expect(await going(world)).toEqual(['a']);
  });

  test('waits until every NodeClaim has its machine', async () => {
    await start();
    await machine(world, 'a');
    await world.apply(nodeClaim({ name: 'young' }));
    await world.settle();
    run();
    await world.advance(60_000);
    expect(await going(world)).toEqual([]);
    await world.launch();
    await world.advance(20_000);
    expect(await going(world)).toEqual(['a']);
  });

  test('ends a pass with the first method that begins something', async () => {
    await start();
    await machine(world, 'a');
    await machine(world, 'b');
    const [first, second] = [method('first', 'a'), method('second', 'b')];
    run([first, second]);
    await world.settle();
    expect(await going(world)).toEqual(['a']);
    expect(second.asked).toBe(0);
    await world.advance(1);
    expect(await going(world)).toEqual(['a', 'b']);
    expect(first.asked).toBe(1);
  });

  test('drops what a long search found about a node that was promised to a pod, or got one, meanwhile', async () => {
    await start();
    for (const name of ['a', 'b', 'c']) await machine(world, name);
    const slow: Method = {
      ...method('slow', undefined),
      concerns: ({ reschedulablePods }) => reschedulablePods.length === 0,
      *proposeInSteps({ candidates }) {
        yield;
        // Others have their turn in such a pause.
        world.state.nominate(candidates.find(({ machine: of }) => of.name === 'a')!.machine.key);
        world.state.nodeByProviderID('fake://b')!.pods = () => [late].values();
        return candidates.map((candidate) => ({ candidates: [candidate], replacements: [], destinations: [] }));
      },
    };
    const late = boundPod('late', 'b');
    run([slow]);
    await world.advance(1000);
    expect(await going(world)).toEqual(['c']);
  });

  test('lets methods that need no second look go on while a proposal waits', async () => {
    await start();
    await machine(world, 'a');
    await machine(world, 'b', { consolidatable: false });
    run([new Emptiness(), method('drift', 'b')]);
    await world.settle();
    expect(await going(world)).toEqual(['b']);
    await world.advance(15_000);
    expect(await going(world)).toEqual(['a', 'b']);
  });

  test('decides about machines that join a proposal when they, too, have stood the test of time', async () => {
    await start();
    await machine(world, 'a');
    run([new Emptiness()]);
    await world.advance(4000);
    await machine(world, 'b');
    await world.advance(11_000);
    expect(await going(world)).toEqual(['a']);
    await world.advance(5000);
    expect(await going(world)).toEqual(['a', 'b']);
  });

  test('looks again when a machine is no longer promised to pods', async () => {
    await start();
    await machine(world, 'a');
    world.state.nominate('fake://a');
    run([new Emptiness()]);
    await world.advance(20_000);
    expect(await going(world)).toEqual([]);
    await world.advance(15_000);
    expect(await going(world)).toEqual(['a']);
  });

  test('leaves a machine alone for ten seconds after its command was given up', async () => {
    await start();
    await machine(world, 'a');
    const drift = { ...method('drift', 'a'), propose: replaceAll };
    run([drift]);
    await world.settle();
    const [replacement] = (await world.claims()).filter(({ metadata }) => metadata.name !== 'a');
    await world.delete(replacement!);
    await world.advance(2000);
    expect(await marksOf(world, 'a')).toEqual(unmarked);
    await world.advance(7000);
    expect(await marksOf(world, 'a')).toEqual(unmarked);
    await world.advance(4000);
    expect(await marksOf(world, 'a')).toEqual({ tainted: true, reason: 'Drifted' });
  });

  test('rests while nothing changes, looks ten seconds after a change, and every five minutes all the same', async () => {
    await start();
    await machine(world, 'a', { consolidatable: false });
    const idle = method('idle', undefined);
    run([idle]);
    await world.advance(45_000);
    expect(idle.asked).toBe(1);
    await runningPod(world, 'p', 'a');
    await world.advance(5000);
    expect(idle.asked).toBe(2);
    await world.advance(60_000);
    expect(idle.asked).toBe(2);
    await world.advance(240_000);
    expect(idle.asked).toBe(3);
  });

  test('looks every minute while a pod protects itself for a time', async () => {
    await start();
    await machine(world, 'a', { consolidatable: false });
    await machine(world, 'b', { consolidatable: false });
    await runningPod(world, 'p', 'b', { annotations: { 'karpenter.sh/do-not-disrupt': '2h' } });
    const idle = method('idle', undefined);
    run([idle]);
    await world.advance(45_000);
    const { asked } = idle;
    await world.advance(60_000);
    expect(idle.asked).toBe(asked + 1);
  });

  test('shows how many machines could go', async () => {
    await start();
    await machine(world, 'a');
    await machine(world, 'b', { consolidatable: false });
    await world.advance(60_000);
    run();
    await world.settle();
    expect(await world.metrics.value('karpenter_voluntary_disruption_eligible_nodes', { reason: 'empty' })).toBe(1);
    // No time passes while a test thinks.
    expect(await world.metrics.render()).toMatch(/decision_evaluation_duration_seconds_sum\{.*"empty".*\} 0\n/);
  });

  test('goes on when a command cannot begin', async () => {
    await start();
    await machine(world, 'a');
    world.doors.workload.fail('PATCH /nodes/a', { status: 403, reason: 'Forbidden' });
    run([method('drift', 'a')]);
    await world.settle();
    expect(world.log.messages('error')).toContain('failed disrupting candidates');
    await world.advance(10_000);
    expect(await going(world)).toEqual(['a']);
  });
});
