// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { allowedDisruptions, unlimitedDisruptions } from '../../api/budgets.ts';
import { getCondition } from '../../api/conditions.ts';
import { annotations, labels } from '../../api/labels.ts';
import { type NodeClaim, nodeClaimKind } from '../../api/node-claim.ts';
import { type Budget, type NodePool, nodePoolKind } from '../../api/node-pool.ts';
import { kinds } from '../../kube/kinds.ts';
import type { ResourceType } from '../../kube/object.ts';
import { formatTime } from '../../kube/time.ts';
import { StaticNodes } from '../static/index.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { Drift } from './drift.ts';
import { disruptionControllers } from './index.ts';
import type { MethodView } from './method.ts';
import {
  budget,
  claimOf,
  contextOf,
  going,
  initialize,
  type MachineParts,
  machine,
  marksOf,
  openPool,
  runningPod,
} from './testing/machines.ts';

let world: TestWorld;
afterEach(() => world.close());

const claimType = nodeClaimKind as ResourceType<NodeClaim>;
const poolType = nodePoolKind as ResourceType<NodePool>;
const cpu = (amount: string) => ({
  containers: [{ name: 'main', image: 'app', resources: { requests: { cpu: amount } } }],
});

async function start(pool: Parameters<TestWorld['pool']>[0] = {}): Promise<void> {
  world = await testWorld();
  await openPool(world, pool);
}

/** A machine that has drifted, or whose cloud wants it replaced for a reason of its own. */
async function drifting(name: string, parts: MachineParts = {}, type = 'Drifted'): Promise<void> {
  await machine(world, name, { consolidatable: false, ...parts });
  const claim = (await claimOf(world, name))!;
  const lastTransitionTime = formatTime(world.clock.now());
  const drifted = { type, status: 'True', reason: 'NodePoolDrifted', message: '', lastTransitionTime };
  const conditions = [...claim.status!.conditions!, drifted];
  await world.karpenter.resource(claimType).patchStatus(name, { status: { conditions } });
  await world.settle();
}

function run(): StaticNodes {
  const context = contextOf(world);
  const staticNodes = new StaticNodes(context);
  world.run(...disruptionControllers(context, { random: world.random, settings: world.settings, staticNodes }));
  return staticNodes;
}

/** The machines that were bought and are not in service. */
async function replacements(): Promise<NodeClaim[]> {
  return (await world.claims()).filter((claim) => getCondition(claim, 'Initialized')?.status !== 'True');
}

/** Two nodes have drifted, with a pod each, of which so many may go at once; the first replacement has a machine. */
async function replaceTwo(nodes: string): Promise<void> {
  await start({ spec: { disruption: { budgets: [{ nodes }] } } });
  for (const name of ['a', 'b']) {
    await drifting(name);
    await runningPod(world, `pod-of-${name}`, name, { spec: cpu('3') });
  }
  run();
  await world.settle();
  await world.launch();
}

describe('a drifted node', () => {
  test('without pods goes at once, without a replacement', async () => {
    await start();
    await drifting('a');
    run();
    await world.settle();
    expect(await going(world)).toEqual(['a']);
    expect(await marksOf(world, 'a')).toEqual({ tainted: true, reason: 'Drifted' });
    expect(
      await world.metrics.value('karpenter_voluntary_disruption_decisions_total', {
        decision: 'delete',
        reason: 'drifted',
        consolidation_type: '',
      }),
    ).toBe(1);
  });

  test('stays until a machine for its pods is in service', async () => {
    await start();
    await drifting('a');
    await runningPod(world, 'p', 'a', { spec: cpu('3') });
    run();
    await world.settle();
    const [replacement, another] = await replacements();
    expect(another).toBeUndefined();
    expect(replacement?.metadata.labels?.[labels.nodePool]).toBe('default');
    await world.advance(60_000);
    expect(await going(world)).toEqual([]);
    await world.launch();
    await initialize(world, replacement!.metadata.name!);
    await world.advance(5000);
    expect(await going(world)).toEqual(['a']);
  });

  test('gets as many replacements as its pods need', async () => {
    await start();
    world.cloud.types = world.cloud.types.filter(({ name }) => name === 'c-2x');
    await drifting('a', { type: 'c-2x' });
    await runningPod(world, 'p', 'a', { spec: cpu('1500m') });
    await runningPod(world, 'q', 'a', { spec: cpu('1500m') });
    run();
    await world.settle();
    expect(await replacements()).toHaveLength(2);
  });

  test('waits for a machine that was bought before and that nobody else needs, instead of buying one more', async () => {
    await replaceTwo('1');
    const [replacement] = await replacements();
    // It registers, and never gets into service: the command is given up, and the next one finds it waiting.
    await world.advance(12 * 60_000);
    expect(await replacements()).toHaveLength(1);
    expect(await going(world)).toEqual([]);
    await initialize(world, replacement!.metadata.name!);
    const { items } = await world.workload.resource(kinds.Node).list();
    const own = items.find(({ metadata }) => metadata.name!.startsWith(replacement!.metadata.name!))!;
    const inService = { [labels.nodePool]: 'default', [labels.registered]: 'true', [labels.initialized]: 'true' };
    await world.workload
      .resource(kinds.Node)
      .patch(own.metadata.name!, { metadata: { labels: inService }, spec: { taints: [] } });
    await world.advance(60_000);
    expect(await going(world)).toHaveLength(1);
  });

  test('that waits for a machine on its way is asked about again after a while, or once nothing is on its way', async () => {
    await start();
    await drifting('a');
    await runningPod(world, 'p', 'a', { spec: cpu('3') });
    await machine(world, 'spare', { consolidatable: false, initialized: false });
    let now = 0;
    const drift = new Drift({ clock: () => now });
    let view: MethodView | undefined;
    const propose = drift.proposeInSteps.bind(drift);
    vi.spyOn(drift, 'proposeInSteps').mockImplementation((given) => {
      view ??= given;
      return propose(given);
    });
    const methods = [drift];
    world.run(...disruptionControllers(contextOf(world), { random: world.random, settings: world.settings, methods }));
    await world.settle();
    expect(await replacements()).toEqual([]);
    const { snapshot, ...others } = view!;
    const askedAt = (at: number, machines = snapshot.machines): boolean => {
      const problem = vi.fn((of: Parameters<typeof snapshot.problem>[0]) => snapshot.problem(of));
      now = at;
      drift.propose({ ...others, snapshot: { ...snapshot, machines, problem } });
      return problem.mock.calls.length > 0;
    };
    expect(drift.restsUntil).toBe(10_000);
    expect([askedAt(1), askedAt(9999), askedAt(10_000), askedAt(19_999)]).toEqual([false, false, true, false]);
    const inService = [...snapshot.machines.nodes()].filter(({ initialized }) => initialized);
    const machines = {
      nodes: () => inService,
      nodesOfPool: () => inService,
      awaitedClaims: () => new Set<string>(),
      isNominated: () => false,
    };
    expect(askedAt(19_999, machines)).toBe(true);
  });

  test('does not wait for a machine that another one is replaced by', async () => {
    await replaceTwo('2');
    await world.advance(15_000);
    expect(await replacements()).toHaveLength(2);
  });

  test('moves its pods to nodes that have room', async () => {
    await start();
    await drifting('a');
    await machine(world, 'b', { consolidatable: false });
    await runningPod(world, 'p', 'a', { spec: cpu('1') });
    run();
    await world.settle();
    expect(await replacements()).toEqual([]);
    expect(await going(world)).toEqual(['a']);
    expect(world.state.isNominated('fake://b')).toBe(true);
  });

  test('waits its turn: empty ones first, then the longest drifted, within the budget', async () => {
    await start({ spec: { disruption: { budgets: [{ nodes: '1' }] } } });
    await drifting('old');
    await runningPod(world, 'p', 'old', { spec: cpu('3') });
    await world.advance(60_000);
    await drifting('new');
    run();
    await world.settle();
    expect(await going(world)).toEqual(['new']);
    await world.advance(60_000);
    expect(await going(world)).toEqual(['new']);
    expect(await replacements()).toEqual([]);
  });

  test('stays when nothing can be bought for its pods, and says so', async () => {
    await start();
    await drifting('a');
    await runningPod(world, 'p', 'a', { spec: cpu('3') });
    world.cloud.types = world.cloud.types.filter(({ name }) => name === 'c-2x' || name === 'c-1x');
    run();
    await world.advance(60_000);
    expect(await going(world)).toEqual([]);
    expect((await world.events('DisruptionBlocked')).join()).toContain('Pod default/p would not schedule');
  });

  test('gets its turn however many before it cannot go, and none of the looks takes long', async () => {
    await start();
    for (const name of ['a', 'b', 'c', 'd']) await drifting(name);
    for (const on of ['a', 'b', 'c']) await runningPod(world, `${on}-large`, on, { spec: cpu('3') });
    await runningPod(world, 'small', 'd', { spec: cpu('1500m') });
    world.cloud.types = world.cloud.types.filter(({ name }) => name === 'c-2x' || name === 'c-1x');
    // Each node takes a second.
    let now = 0;
    const drift = new Drift({ clock: () => (now += 1000), timeoutMs: 1500 });
    const looks = vi.spyOn(drift, 'proposeInSteps');
    const methods = [drift];
    world.run(...disruptionControllers(contextOf(world), { random: world.random, settings: world.settings, methods }));
    await world.advance(25_000);
    expect((await marksOf(world, 'd')).tainted).toBe(false);
    await world.advance(5000);
    expect(await marksOf(world, 'd')).toEqual({ tainted: true, reason: 'Drifted' });
    expect(looks).toHaveBeenCalledTimes(4);
  });

  test('whose pool is over its limit is left as it is, and holds up no other', async () => {
    await start({ spec: { limits: { cpu: '10' } } });
    await openPool(world, { name: 'other' });
    await drifting('a');
    const only = (pool: string) => ({ nodeSelector: { [labels.nodePool]: pool } });
    await runningPod(world, 'a-pod', 'a', { spec: { ...cpu('1500m'), ...only('default') } });
    for (const full of ['b', 'c']) {
      await machine(world, full, { consolidatable: false });
      await runningPod(world, `${full}-pod`, full, { spec: cpu('3') });
    }
    await world.advance(1000);
    await drifting('d', { pool: 'other' });
    await runningPod(world, 'd-pod', 'd', { spec: { ...cpu('3'), ...only('other') } });
    const before = await world.find(kinds.Node, 'a');
    run();
    await world.advance(30_000);
    expect(await marksOf(world, 'd')).toEqual({ tainted: true, reason: 'Drifted' });
    expect(await world.find(kinds.Node, 'a')).toEqual(before);
  });

  test('goes although a pod asks to stay, when a terminationGracePeriod ends the wait', async () => {
    await start();
    await drifting('a');
    await drifting('b', { spec: { terminationGracePeriod: '1h' } });
    for (const on of ['a', 'b']) {
      await runningPod(world, `${on}-held`, on, { annotations: { [annotations.doNotDisrupt]: 'true' } });
      await runningPod(world, `${on}-pdb`, on, { labels: { app: 'db' } });
    }
    await budget(world, 'db', 0);
    run();
    await world.settle();
    expect(await marksOf(world, 'b')).toEqual({ tainted: true, reason: 'Drifted' });
    expect((await marksOf(world, 'a')).tainted).toBe(false);
  });
});

describe('a drifted node of a static pool', () => {
  const pool = { spec: { replicas: 2, disruption: { budgets: [{ nodes: '1' }] } } };

  test('is replaced one for one, within the budget', async () => {
    await start(pool);
    await drifting('a');
    await drifting('b');
    const nodes = run();
    await world.settle();
    const bought = await replacements();
    expect(bought).toHaveLength(1);
    expect(bought[0]!.spec.requirements.some(({ key }) => key === labels.instanceType)).toBe(false);
    expect(nodes.count('default')).toMatchObject({ pendingDisruption: 1, deleting: 0 });
    await world.launch();
    await initialize(world, bought[0]!.metadata.name!);
    await world.advance(5000);
    expect(await going(world)).toHaveLength(1);
    expect(nodes.count('default')).toMatchObject({ pendingDisruption: 0, deleting: 1 });
  });

  test('is not replaced beyond the limit of nodes', async () => {
    await start({ spec: { ...pool.spec, limits: { nodes: '2' } } });
    await drifting('a');
    await drifting('b');
    run();
    await world.advance(60_000);
    expect(await replacements()).toEqual([]);
    expect(await going(world)).toEqual([]);
  });

  test('of which no machine could be made holds up no other pool, and keeps no place reserved', async () => {
    await start(pool);
    await openPool(world, { name: 'other' });
    await drifting('a');
    await drifting('b');
    await drifting('c', { pool: 'other' });
    const contradiction = {
      metadata: { labels: { team: 'x' } },
      spec: { requirements: [{ key: 'team', operator: 'In', values: ['y'] }] },
    };
    await world.karpenter.resource(poolType).patch('default', { spec: { template: contradiction } });
    await world.settle();
    const nodes = run();
    await world.advance(60_000);
    expect(await replacements()).toEqual([]);
    expect(await going(world)).toEqual(['c']);
    expect((await world.events('DisruptionBlocked')).join()).toContain('contradict');
    const { spec, ...rest } = world.state.nodePool('default')!;
    expect(nodes.reserve({ ...rest, spec: { ...spec, limits: { nodes: '3' } } }, 9)).toBe(1);
  });

  test('is left to the scale-down while the pool has too many', async () => {
    await start({ spec: { ...pool.spec, replicas: 1 } });
    await drifting('a');
    await drifting('b');
    run();
    await world.advance(60_000);
    expect(await replacements()).toEqual([]);
  });
});

describe('a reason that a cloud declares', () => {
  test('is a condition of NodeClaims by which nodes are replaced, and shown while they are', async () => {
    await start({
      spec: { disruption: { budgets: [{ nodes: '0', reasons: ['Drifted', 'Underutilized', 'Empty'] }] } },
    });
    world.cloud.disruptionReasons = ['Retiring'];
    await drifting('a', {}, 'Retiring');
    await drifting('b');
    await runningPod(world, 'web', 'a', { spec: cpu('1') });
    run();
    await world.settle();
    expect(await marksOf(world, 'a')).toEqual({ tainted: true, reason: 'Retiring' });
    expect(await marksOf(world, 'b')).toEqual({ tainted: false, reason: undefined });
    const shown = { nodepool: 'default', reason: 'Retiring' };
    expect(await world.metrics.value('karpenter_nodepools_allowed_disruptions', shown)).toBe(unlimitedDisruptions);
  });

  test('may be named by budgets of NodePools once the CRD knows it, by the words of the documentation', async () => {
    const guide = readFileSync('docs/disruption.md', 'utf8');
    const [, crd = '', patch = ''] = /^kubectl patch crd (\S+) --type=json -p='(.*)'$/m.exec(guide) ?? [];
    const budgets = [{ nodes: '0', reasons: ['Retiring'] }] as unknown as Budget[];
    await start();
    const [pool] = await world.list(poolType);
    const named = { ...pool!, spec: { ...pool!.spec, disruption: { ...pool!.spec.disruption, budgets } } };
    await expect(world.apply(named)).rejects.toThrow(/Unsupported value: "Retiring"/);
    const crds = world.karpenter.resource(kinds.CustomResourceDefinition);
    await crds.patch(crd, JSON.parse(patch), { type: 'json' });
    await world.settle();
    await world.apply(named);
    world.cloud.disruptionReasons = ['Retiring'];
    await drifting('a', {}, 'Retiring');
    await drifting('b');
    for (const name of ['a', 'b']) await runningPod(world, `web-${name}`, name, { spec: cpu('1') });
    run();
    await world.settle();
    expect((await marksOf(world, 'a')).tainted).toBe(false);
    expect(await marksOf(world, 'b')).toEqual({ tainted: true, reason: 'Drifted' });
  });

  test('that nobody declared moves nothing', async () => {
    await start();
    await drifting('a', {}, 'Retiring');
    await runningPod(world, 'web', 'a', { spec: cpu('1') });
    run();
    await world.advance(60_000);
    expect((await marksOf(world, 'a')).tainted).toBe(false);
  });

  test('may be named by budgets', () => {
    const budgets = [{ nodes: '0', reasons: ['Retiring'] }, { nodes: '3' }] as unknown as Budget[];
    const allowed = (reason: string): number =>
      allowedDisruptions(budgets, { nodeCount: 10, reason, isActive: () => true });
    expect([allowed('Retiring'), allowed('Drifted')]).toEqual([0, 3]);
  });
});
