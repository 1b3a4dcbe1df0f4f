// SPDX-License-Identifier: Apache-2.0
// Cluster API for the conformance suite: its cloud is the management cluster, with the model of the managers in it.
import { clusterApiNodeClassKind } from '../../../api/cluster-api-node-class.ts';
import type {
  CloudFault,
  ExistingMachine,
  NodeClassRef,
  NodeClassState,
  ProviderHarness,
} from '../../../cloud/conformance/harness.ts';
import { forwarding } from '../../../cloud/forwarding.ts';
import type { CloudProvider } from '../../../cloud/provider.ts';
import type { Behavior } from '../../../embedded/clouds/cluster-api/objects.ts';
import { type Fault, FaultyTransport } from '../../../kube/testing/faulty-transport.ts';
import { CapiWorld } from './world.ts';

const settleMs = 60_000;
/** Within the time that one launch waits. */
const quick: Behavior = { provisionMs: 1000, bootMs: 1000, deleteMs: 1000 };
const faults: Readonly<Partial<Record<CloudFault, Fault>>> = {
  unreachable: 'unreachable',
  'answer lost': 'answer lost',
  throttled: { status: 429, reason: 'TooManyRequests' },
  failing: { status: 500, reason: 'InternalError' },
};

/** A management cluster with two MachineDeployments, and NodeClasses `ready` and `not-ready`. */
export class ClusterApiHarness implements ProviderHarness {
  #world!: CapiWorld;
  #door: FaultyTransport | undefined;
  #fault: Fault | undefined;
  #behavior: Behavior = quick;

  static async start(): Promise<ClusterApiHarness> {
    const harness = new ClusterApiHarness();
    const world = await CapiWorld.start({
      behavior: () => harness.#behavior,
      door: (transport) => {
        harness.#door = new FaultyTransport(transport);
        harness.#door.failAll(harness.#fault);
        return harness.#door;
      },
    });
    harness.#world = world;
    for (const [name, zone] of [
      ['one', 'zone-a'],
      ['two', 'zone-b'],
    ] as const) {
      await world.member(name, {
        spec: { strategy: { type: 'OnDelete' } },
        nodeLabels: { 'node.kubernetes.io/instance-type': 'm5.large', 'topology.kubernetes.io/zone': zone },
      });
    }
    await world.nodeClass('ready');
    await world.nodeClass('not-ready');
    const condition = { type: 'Ready', status: 'False', reason: 'Broken', message: 'broken', observedGeneration: 1 };
    const conditions = [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }];
    await world.karpenter.resource(clusterApiNodeClassKind).patchStatus('not-ready', { status: { conditions } });
    await world.pass(1000);
    return harness;
  }

  get provider(): CloudProvider {
    return this.#inTime(this.#world.provider);
  }

  restart(): Promise<CloudProvider> {
    this.#door?.cut();
    this.#world.begin();
    return Promise.resolve(this.provider);
  }

  nodeClass(state: NodeClassState): Promise<NodeClassRef> {
    const { group, kind } = clusterApiNodeClassKind;
    return Promise.resolve({ group, kind, name: state.replace(' ', '-') });
  }

  inject(fault: CloudFault): Promise<boolean> {
    if (fault === 'sold out') this.#behavior = { ...quick, fails: 'NoHosts' };
    this.#fault = faults[fault];
    this.#door?.failAll(this.#fault);
    return Promise.resolve(this.#fault !== undefined || fault === 'sold out');
  }

  lift(): Promise<void> {
    this.#behavior = quick;
    this.#fault = undefined;
    this.#door?.failAll(undefined);
    return Promise.resolve();
  }

  async machines(): Promise<readonly ExistingMachine[]> {
    return (await this.#world.machines()).map(({ spec, metadata }) => ({
      providerID: spec?.providerID ?? `without an id: ${metadata.name}`,
    }));
  }

  settle(): Promise<void> {
    return this.#world.pass(settleMs);
  }

  readonly drift = async (): Promise<void> => {
    for (const name of ['one', 'two']) {
      await this.#world.hub
        .resource(this.#world.kinds.machineDeployment)
        .patch(name, { spec: { template: { spec: { version: 'v2' } } } }, { namespace: 'default' });
    }
    await this.#world.pass();
  };

  close(): Promise<void> {
    return this.#world.stop();
  }

  /** Machines take their time: it passes while a call waits. */
  #inTime(provider: CloudProvider): CloudProvider {
    const world = this.#world;
    return forwarding(provider, {
      create: (claim, signal) => world.finish(provider.create(claim, signal)),
      delete: (claim, signal) => world.finish(provider.delete(claim, signal)),
      get: (id, signal) => world.finish(provider.get(id, signal)),
      list: (signal) => world.finish(provider.list(signal)),
      instanceTypes: (pool, signal) => world.finish(provider.instanceTypes(pool, signal)),
      driftReason: (claim, signal) => world.finish(provider.driftReason(claim, signal)),
    });
  }
}
