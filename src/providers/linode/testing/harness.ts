// SPDX-License-Identifier: Apache-2.0
// Linode for the conformance suite: its cloud is the emulated Linode API, in LKE mode or in Instance mode.
import { linodeNodeClassKind } from '../../../api/linode-node-class.ts';
import type {
  CloudFault,
  ExistingMachine,
  NodeClassRef,
  NodeClassState,
  ProviderHarness,
} from '../../../cloud/conformance/harness.ts';
import type { CloudProvider } from '../../../cloud/provider.ts';
import type { LinodeRequest, LinodeResponse } from '../door.ts';
import { sharedBy } from '../shared-pool.ts';
import { type DoorFault, LinodeWorld, type WorldOptions } from './world.ts';

const settleMs = 60_000;

const refusal = (status: number, reason: string, headers: Record<string, string> = {}): LinodeResponse => ({
  status,
  headers,
  body: JSON.stringify({ errors: [{ reason }] }),
});
/** Also one more node for a pool that is shared. */
const isLaunch = ({ method, path, body }: LinodeRequest): boolean =>
  (method === 'POST' && /\/(?:pools|instances)$/.test(path.split('?', 1)[0]!)) ||
  (method === 'PUT' && /\/pools\/\d+$/.test(path) && (body ?? '').includes('"count"'));
const soldOut =
  'The Linode plan you chose is not currently available in the selected region. Please select another region or plan type, or contact Support for assistance.';

const faults: Readonly<Record<CloudFault, DoorFault>> = {
  unreachable: () => 'unreachable',
  throttled: () => refusal(429, 'Too many requests', { 'retry-after': '5' }),
  failing: () => refusal(500, 'Internal server error'),
  'answer lost': ({ method }) => (method === 'GET' ? undefined : 'answer lost'),
  'sold out': (request) => (isLaunch(request) ? refusal(400, soldOut) : undefined),
  'launch refused': (request) => (isLaunch(request) ? refusal(400, 'Firewall is not allowed here') : undefined),
};

/** An account with one cluster, and NodeClasses `ready` and `not-ready`. */
export class LinodeHarness implements ProviderHarness {
  readonly #world: LinodeWorld;

  private constructor(world: LinodeWorld) {
    this.#world = world;
  }

  static async start(options: WorldOptions = {}): Promise<LinodeHarness> {
    const world = await LinodeWorld.start({ ...options, api: { limits: 'none', ...options.api } });
    await world.nodeClass('ready', options.nodeClass);
    await world.nodeClass('not-ready');
    const condition = { type: 'Ready', status: 'False', reason: 'Broken', message: 'broken', observedGeneration: 1 };
    const conditions = [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }];
    await world.client.resource(linodeNodeClassKind).patchStatus('not-ready', { status: { conditions } });
    await world.pass(1000);
    return new LinodeHarness(world);
  }

  get provider(): CloudProvider {
    return this.#inTime(this.#world.provider);
  }

  restart(): Promise<CloudProvider> {
    this.#world.restart();
    return Promise.resolve(this.provider);
  }

  nodeClass(state: NodeClassState): Promise<NodeClassRef> {
    const { group, kind } = linodeNodeClassKind;
    return Promise.resolve({ group, kind, name: state.replace(' ', '-') });
  }

  inject(fault: CloudFault): Promise<boolean> {
    this.#world.fault = faults[fault];
    return Promise.resolve(true);
  }

  lift(): Promise<void> {
    this.#world.fault = () => undefined;
    return Promise.resolve();
  }

  async machines(): Promise<readonly ExistingMachine[]> {
    return (await this.#world.machines()).map(({ id }) => ({ providerID: `linode://${id}` }));
  }

  settle(): Promise<void> {
    return this.#world.pass(settleMs);
  }

  readonly drift = async (providerID: string): Promise<void> => {
    const id = Number(providerID.slice('linode://'.length));
    if (this.#world.clusterId === 0) {
      await this.#world.person('POST', `/linode/instances/${id}/rebuild`, {
        image: 'linode/debian12',
        root_pass: 'aComplexP@ssword1',
      });
    } else {
      const pools = await this.#world.pools();
      const pool = pools.find(({ nodes }) => nodes.some(({ instance_id }) => instance_id === id))!;
      const change = sharedBy(pool) === undefined ? { count: 2 } : { labels: { 'by-hand': 'yes' } };
      await this.#world.person('PUT', `/lke/clusters/${this.#world.clusterId}/pools/${pool.id}`, change);
    }
    await this.#world.pass(settleMs);
  };

  close(): Promise<void> {
    return this.#world.stop();
  }

  /** Machines take their time: it passes while a call waits. */
  #inTime(provider: CloudProvider): CloudProvider {
    const world = this.#world;
    return {
      ...provider,
      name: provider.name,
      create: (claim, signal) => world.finish(provider.create(claim, signal)),
      delete: (claim, signal) => world.finish(provider.delete(claim, signal)),
      get: (id, signal) => world.finish(provider.get(id, signal)),
      list: (signal) => world.finish(provider.list(signal)),
      instanceTypes: (pool, signal) => world.finish(provider.instanceTypes(pool, signal)),
      driftReason: (claim, signal) => world.finish(provider.driftReason(claim, signal)),
    };
  }
}
