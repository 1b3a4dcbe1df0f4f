// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { SeededRandom } from '../base/random.ts';
import { exchange } from './exchange.ts';
import { Finalizer } from './finalize.ts';
import type { Pod, PodSpec } from './objects.ts';
import { type Packed, Packer } from './pack.ts';
import type { InstanceTypeSpec, Problem } from './problem.ts';
import { instanceType, nodePool, pod } from './testing/builders.ts';
import { anti, offers, place, spread, times, zone } from './testing/place.ts';
import { compile, type World } from './world.ts';

/** Three families on two architectures: much CPU, much memory, and in between; the large ones are dearer by the CPU. */
const types: InstanceTypeSpec[] = ['amd64', 'arm64'].flatMap((arch) =>
  [2, 4, 8].flatMap((ratio) =>
    [1, 2, 4, 8, 16].map((cpu) =>
      instanceType(
        `${arch}-${ratio}-${cpu}`,
        { cpu: `${cpu}`, memory: `${ratio * cpu}Gi`, pods: `${8 + 4 * cpu}` },
        offers((arch === 'arm64' ? 0.8 : 1) * (0.02 * cpu + 0.004 * ratio * cpu) * (1 + 0.02 * Math.log2(cpu))),
        { arch },
      ),
    ),
  ),
);

/** Pods of 24 shapes; some want a zone, some an architecture. */
function mixture(count: number, seed: number): Pod[] {
  const random = new SeededRandom(seed);
  const pick = <T>(of: readonly T[]): T => of[random.int(of.length)]!;
  return Array.from({ length: count }, (_, i) => {
    const cpu = pick([100, 250, 500, 1000, 2000, 4000]);
    const wishes: Record<string, string>[] = [
      {},
      {},
      { 'kubernetes.io/arch': pick(['amd64', 'arm64']) },
      { [zone]: pick(['a', 'b', 'c']) },
    ];
    const spec: Partial<PodSpec> = { nodeSelector: pick(wishes) };
    return pod(`pod-${i}`, { requests: { cpu: `${cpu}m`, memory: `${cpu * pick([1, 2, 4, 8])}Mi` }, spec });
  });
}

const problemOf = (pods: readonly Pod[], more: Partial<Problem> = {}): Problem => ({
  nodePools: [nodePool('default')],
  instanceTypes: { default: types },
  pods,
  ...more,
});

function priceOf(world: World, { nodes }: Packed): number {
  const finalizer = new Finalizer(world);
  return nodes.reduce((sum, node) => sum + finalizer.priceOf(node), 0);
}

/** Packs one pod after the other, and lets nodes exchange them. */
function packed(problem: Problem, effort: number): { world: World; before: Packed; after: Packed | undefined } {
  const world = compile(problem);
  const before = new Packer(world, {}).run();
  return { world, before, after: exchange(world, before, new Finalizer(world), effort) };
}

describe('nodes that exchange their pods', () => {
  test.each([1, 2, 3, 4, 5])('cost less, and every pod has a place, seed %i', (seed) => {
    const problem = problemOf(mixture(80, seed));
    const { world, before, after } = packed(problem, 20);
    expect(priceOf(world, after!)).toBeLessThan(priceOf(world, before) * 0.9);
    const podsOf = ({ nodes }: Packed) => nodes.flatMap(({ pods }) => pods).sort((a, b) => a - b);
    expect(podsOf(after!)).toEqual(podsOf(before));
    for (const { pod: index, node } of after!.steps) expect(node?.pods).toContain(index);
  });

  test('are the same each time', () => {
    const problem = problemOf(mixture(60, 7));
    const [first, second] = [packed(problem, 5), packed(problem, 5)];
    expect(first.after!.nodes.map(({ pods }) => pods)).toEqual(second.after!.nodes.map(({ pods }) => pods));
  });

  // The judge looks at what a whole solve makes of it.
  test.each([1, 2, 3, 4, 5, 6])('keep to what their pods ask for, seed %i', (seed) => {
    const result = place(mixture(70, seed), { types });
    expect(result.errors).toEqual([]);
  });

  test('are left alone where they cost little for what they hold', () => {
    const { world, before } = packed(problemOf(mixture(80, 1)), 0);
    expect(exchange(world, before, new Finalizer(world), 20, 10)).toBeUndefined();
  });
});

describe('pods that are tied to others or to where they are', () => {
  const others = mixture(30, 3);
  test.each<[string, Pod[], Partial<Problem>]>([
    ['spread over zones', times(30, 'web', { labels: { app: 'web' }, spec: spread('web', zone) }), {}],
    ['not on one node', times(12, 'web', { labels: { app: 'web' }, spec: anti('web', 'kubernetes.io/hostname') }), {}],
    ['in a pool with limits', others, { nodePools: [nodePool('default', { limits: { cpu: '1000' } })] }],
  ])('%s: stay', (_, pods, more) => {
    const { world, before, after } = packed(problemOf(pods, more), 20);
    expect(before.nodes.length).toBeGreaterThan(0);
    expect(after).toBeUndefined();
    expect(priceOf(world, before)).toBeGreaterThan(0);
  });

  test('take no part in what their neighbours do', () => {
    const web = times(12, 'web', { labels: { app: 'web' }, spec: spread('web', zone) });
    expect(place([...web, ...others], { types }).errors).toEqual([]);
  });
});
