// SPDX-License-Identifier: Apache-2.0
// The process dies at each of its writes in turn, before or after the server has carried it out; or its server fails
// again and again. The end must be the same: one machine while the NodeClaim lives, none when it is gone.
import { describe, expect, test } from 'vitest';
import { SeededRandom } from '../../../base/random.ts';
import type { TransportResponse } from '../../../kube/transport.ts';
import { type ClaimWorld, claimType, claimWorld } from '../testing/claim-world.ts';
import { live, Process } from '../testing/process.ts';

type Moment = 'before' | 'after';

/** When a process dies: at its n-th write, before or after the server has carried it out. */
interface Death {
  readonly write: number;
  readonly moment: Moment;
}

/** What is wanted of a NodeClaim, and how the world looks when it has been done. */
interface Story {
  want(w: ClaimWorld): Promise<void>;
  check(w: ClaimWorld): Promise<void>;
}

const becomesReady: Story = {
  want: () => Promise.resolve(),
  async check(w) {
    expect(await w.condition('a', 'Ready')).toBe('True Ready');
    expect(w.world.cloud.instances.size).toBe(1);
    expect(await w.world.nodes()).toHaveLength(1);
  },
};

const isGone: Story = {
  async want(w) {
    await w.world.karpenter.resource(claimType).delete('a');
  },
  async check(w) {
    expect(await w.claim('a')).toBeUndefined();
    expect(w.world.cloud.instances.size).toBe(0);
    expect(await w.world.nodes()).toEqual([]);
  },
};

/** One life with a death in it; gives whether it came to that. */
async function survives(death: Death, story: Story): Promise<boolean> {
  const w = await claimWorld();
  const { world } = w;
  let writes = 0;
  const first: Process = new Process(world, async (send) => {
    if (++writes !== death.write) return send();
    if (death.moment === 'after') await send();
    first.kill();
    return new Promise(() => undefined);
  });
  await w.write('a', { pool: await world.pool() });
  await live(world, 1);
  await story.want(w);
  await live(world, 5);
  first.kill();
  const second = new Process(world);
  await live(world, 8);
  await story.check(w);
  second.kill();
  await world.close();
  return writes >= death.write;
}

/** Many lives in one test: more than the usual time on a busy machine. */
const manyLives = { timeout: 120_000 };

describe.each<Moment>(['before', 'after'])('a process that dies right %s a write', (moment) => {
  test('leaves a NodeClaim that the next one makes a node of', manyLives, async () => {
    let write = 1;
    while (await survives({ write, moment }, becomesReady)) write++;
    // The finalizer, the launch, the Node, its labels, conditions: it came to something.
    expect(write).toBeGreaterThan(10);
  });

  test('leaves a NodeClaim that the next one takes away to the last piece', manyLives, async () => {
    let write = 1;
    while (await survives({ write, moment }, isGone)) write++;
    expect(write).toBeGreaterThan(10);
  });
});

describe('a server that fails half of the writes', () => {
  const failure = (status: number): TransportResponse => ({ status, body: `answer ${status}` });

  test.each([1, 2, 3, 4, 5, 6])('costs time and nothing else (seed %i)', async (seed) => {
    const w = await claimWorld();
    const { world } = w;
    const random = new SeededRandom(seed);
    let failures = 0;
    const process = new Process(world, async (send) => {
      if (random.next() < 0.5) return send();
      failures++;
      // The answer is lost, or it is a refusal.
      if (random.next() < 0.5) {
        await send();
        throw new Error('connection reset');
      }
      return failure([409, 429, 500, 503][Math.floor(random.next() * 4)]!);
    });
    await w.write('a', { pool: await world.pool() });
    await live(world, 12);
    await becomesReady.check(w);
    await isGone.want(w);
    await live(world, 12);
    await isGone.check(w);
    expect(failures).toBeGreaterThan(5);
    process.kill();
    await world.close();
  });
});
