// SPDX-License-Identifier: Apache-2.0
// The process dies at each of its writes in turn, before or after the server has carried it out. The next process must
// bring the NodeClaim to the same end: one machine while it lives, none when it is gone.
import { describe, expect, test } from 'vitest';
import { kinds } from '../../../kube/kinds.ts';
import type { Transport, TransportRequest } from '../../../kube/transport.ts';
import { Cluster, Clusters } from '../../../runtime/clusters.ts';
import { silentLogger } from '../../../runtime/logging.ts';
import { Metrics } from '../../../runtime/metrics.ts';
import { ClusterState } from '../../../state/cluster-state.ts';
import type { TestWorld } from '../../testing/world.ts';
import { ControllerContext } from '../context.ts';
import { garbageCollectionController } from '../garbage-collection/controller.ts';
import { nodeClaimHydrationController } from '../hydration/controller.ts';
import { type ClaimWorld, claimType, claimWorld } from '../testing/claim-world.ts';
import { lifecycleController } from './controller.ts';

const minute = 60_000;

type Moment = 'before' | 'after';

/** When a process dies: at its n-th write, before or after the server has carried it out. */
interface Death {
  readonly write: number;
  readonly moment: Moment;
}

/** A controller process on the world's cluster that can be killed, and may die by itself. */
class Process {
  died = false;
  readonly #stop = new AbortController();
  readonly #cluster: Cluster;
  readonly #state: ClusterState;
  #writes = 0;

  constructor(world: TestWorld, death?: Death) {
    const { clock, random, registry, settings } = world;
    const metrics = new Metrics();
    const transport = this.#mortal(world.karpenter.transport, death);
    this.#cluster = new Cluster({ name: 'both', transport, clock, random, log: silentLogger, metrics });
    const parts = { clusters: new Clusters(this.#cluster), registry, clock, metrics, settings, log: silentLogger };
    this.#state = new ClusterState(parts);
    const context = new ControllerContext({ ...parts, state: this.#state });
    const factories = [lifecycleController, nodeClaimHydrationController, garbageCollectionController];
    for (const factory of factories) void factory(context).start(this.#stop.signal);
    this.#cluster.start(this.#stop.signal);
  }

  /** Ends it, as a kill would: nobody waits for what it was doing. */
  end(): void {
    this.died = true;
    this.#stop.abort(new Error('killed'));
    this.#state.close();
    this.#cluster.events.stop();
  }

  #mortal(inner: Transport, death: Death | undefined): Transport {
    return {
      request: async (request) => {
        if (this.died) return new Promise(() => undefined);
        const fatal = isOurs(request) && ++this.#writes === death?.write;
        if (!fatal) return inner.request(request);
        this.died = true;
        if (death.moment === 'after') await inner.request(request);
        throw new Error('the process died');
      },
      watch: (request) => inner.watch(request),
      close: () => Promise.resolve(),
    };
  }
}

function isOurs({ method, path }: TransportRequest): boolean {
  return method !== 'GET' && !path.includes('/events');
}

/** Plays the drain, which lets a deleted Node go, and the cloud's own controller, which removes Nodes without a machine. */
async function clearNodes(world: TestWorld): Promise<void> {
  const nodes = world.workload.resource(kinds.Node);
  for (const { metadata, spec } of await world.nodes()) {
    const name = metadata.name ?? '';
    if (metadata.deletionTimestamp !== undefined) await nodes.patch(name, { metadata: { finalizers: null } });
    else if (!world.cloud.instances.has(spec?.providerID ?? '')) await nodes.delete(name);
  }
  await world.settle();
}

async function live(world: TestWorld, minutes: number): Promise<void> {
  for (let i = 0; i < minutes; i++) {
    await world.advance(minute);
    await clearNodes(world);
  }
}

/** What is wanted of a NodeClaim, and how the world looks when it has been done. */
interface Story {
  want(w: ClaimWorld): Promise<void>;
  check(w: ClaimWorld): Promise<void>;
}

/** One life with a death in it; gives whether it came to that. */
async function survives(death: Death, story: Story): Promise<boolean> {
  const w = await claimWorld();
  const { world } = w;
  const first = new Process(world, death);
  await w.write('a');
  await live(world, 1);
  await story.want(w);
  await live(world, 8);
  const cameToIt = first.died;
  first.end();
  const second = new Process(world);
  await live(world, 8);
  expect(world.cloud.instances.size, 'machines after the restart').toBeLessThanOrEqual(1);
  await story.check(w);
  second.end();
  await world.close();
  return cameToIt;
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

describe.each<Moment>(['before', 'after'])('a process that dies right %s a write', (moment) => {
  test('leaves a NodeClaim that the next one makes a node of', async () => {
    let write = 1;
    while (await survives({ write, moment }, becomesReady)) write++;
    // A finalizer, the launch and its status, the Node and its labels: it came to something.
    expect(write).toBeGreaterThan(5);
  });

  test('leaves a NodeClaim that the next one takes away to the last piece', async () => {
    let write = 1;
    while (await survives({ write, moment }, isGone)) write++;
    expect(write).toBeGreaterThan(8);
  });
});
