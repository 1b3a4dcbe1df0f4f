// SPDX-License-Identifier: Apache-2.0
// A controller process of its own on a test world's API server: it can be killed, and its way to the server can fail.
import { kinds } from '../../../kube/kinds.ts';
import type { Transport, TransportRequest, TransportResponse } from '../../../kube/transport.ts';
import { Cluster, Clusters } from '../../../runtime/clusters.ts';
import { silentLogger } from '../../../runtime/logging.ts';
import { Metrics } from '../../../runtime/metrics.ts';
import { ClusterState } from '../../../state/cluster-state.ts';
import { nodeHydrationController } from '../../node/hydration/controller.ts';
import { nodePoolControllers } from '../../nodepool/index.ts';
import type { TestWorld } from '../../testing/world.ts';
import { ControllerContext } from '../context.ts';
import { nodeClaimControllers } from '../index.ts';

/** Carries out a write, or does not, or does and loses the answer. */
export type WriteHandler = (
  send: () => Promise<TransportResponse>,
  request: TransportRequest,
) => Promise<TransportResponse>;

/** All controllers of NodeClaims and NodePools, behind a transport whose writes go through a handler. */
export class Process {
  readonly #stop = new AbortController();
  readonly #cluster: Cluster;
  readonly #state: ClusterState;
  #ended = false;

  constructor(world: TestWorld, onWrite: WriteHandler = (send) => send()) {
    const { clock, random, registry, settings } = world;
    const metrics = new Metrics();
    const transport = this.#behind(world.karpenter.transport, onWrite);
    this.#cluster = new Cluster({ name: 'both', transport, clock, random, log: silentLogger, metrics });
    const parts = { clusters: new Clusters(this.#cluster), registry, clock, metrics, settings, log: silentLogger };
    this.#state = new ClusterState(parts);
    const context = new ControllerContext({ ...parts, state: this.#state });
    const controllers = [
      ...nodeClaimControllers(context),
      ...nodePoolControllers(context),
      nodeHydrationController(context),
    ];
    for (const controller of controllers) void controller.start(this.#stop.signal);
    this.#cluster.start(this.#stop.signal);
  }

  /** From now on nothing of it reaches the server, and nobody waits for what it was doing. */
  kill(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stop.abort(new Error('killed'));
    this.#state.close();
    this.#cluster.events.stop();
  }

  #behind(inner: Transport, onWrite: WriteHandler): Transport {
    return {
      request: (request) => {
        if (this.#ended) return new Promise(() => undefined);
        const isWrite = request.method !== 'GET' && !request.path.includes('/events');
        return isWrite ? onWrite(() => inner.request(request), request) : inner.request(request);
      },
      watch: (request) => inner.watch(request),
      close: () => Promise.resolve(),
    };
  }
}

/** Lets minutes pass in which drains end, and the cloud's own controller removes Nodes that have no machine. */
export async function live(world: TestWorld, minutes: number): Promise<void> {
  const nodes = world.workload.resource(kinds.Node);
  for (let i = 0; i < minutes; i++) {
    await world.advance(60_000);
    for (const { metadata, spec } of await world.nodes()) {
      const name = metadata.name ?? '';
      if (metadata.deletionTimestamp !== undefined) await nodes.patch(name, { metadata: { finalizers: null } });
      else if (!world.cloud.instances.has(spec?.providerID ?? '')) await nodes.delete(name);
    }
    await world.settle();
  }
}
