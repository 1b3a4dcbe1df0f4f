// SPDX-License-Identifier: Apache-2.0
// KWOK for the conformance suite: its cloud is the API server in which its Nodes appear.
import { allCrds } from '../../../api/crd.ts';
import { kwokNodeClassKind } from '../../../api/kwok-node-class.ts';
import { VirtualClock } from '../../../base/clock.ts';
import { SeededRandom } from '../../../base/random.ts';
import type {
  CloudFault,
  ExistingMachine,
  NodeClassRef,
  NodeClassState,
  ProviderHarness,
} from '../../../cloud/conformance/harness.ts';
import type { CloudProvider } from '../../../cloud/provider.ts';
import { ApiServer } from '../../../embedded/api-server.ts';
import { KubeClient } from '../../../kube/client.ts';
import { kinds } from '../../../kube/kinds.ts';
import { type Fault, FaultyTransport } from '../../../kube/testing/faulty-transport.ts';
import { silentLogger } from '../../../runtime/logging.ts';
import { KwokProvider } from '../provider.ts';

/** Longer than any pause between two tries. */
const settleMs = 60_000;

const faults: Readonly<Partial<Record<CloudFault, Fault>>> = {
  unreachable: 'unreachable',
  'answer lost': 'answer lost',
  throttled: { status: 429, reason: 'TooManyRequests' },
  failing: { status: 500, reason: 'InternalError' },
};

/** An API server of its own, with the NodeClasses `ready` and `not-ready`. */
export class KwokHarness implements ProviderHarness {
  readonly #clock = new VirtualClock();
  readonly #server = new ApiServer({ clock: this.#clock, random: new SeededRandom(1) });
  readonly #past = new KubeClient({ transport: this.#server.transport(), clock: this.#clock });
  #door!: FaultyTransport;
  #provider!: KwokProvider;
  #fault: Fault | undefined;

  private constructor() {
    this.#start();
  }

  static async start(): Promise<KwokHarness> {
    const harness = new KwokHarness();
    const client = harness.#past;
    for (const crd of allCrds()) await client.resource(kinds.CustomResourceDefinition).create(crd as never);
    const nodeClasses = client.resource(kwokNodeClassKind);
    for (const name of ['ready', 'not-ready'])
      await nodeClasses.create({ apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass', metadata: { name } });
    const condition = { type: 'Ready', status: 'False', reason: 'Broken', message: 'broken' } as const;
    const conditions = [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }];
    await nodeClasses.patchStatus('not-ready', { status: { conditions } });
    return harness;
  }

  get provider(): CloudProvider {
    return this.#provider;
  }

  restart(): Promise<CloudProvider> {
    this.#door.cut();
    this.#provider.close();
    this.#start();
    return Promise.resolve(this.#provider);
  }

  #start(): void {
    this.#door = new FaultyTransport(this.#server.transport());
    this.#door.failAll(this.#fault);
    this.#provider = new KwokProvider({
      karpenter: this.#past,
      workload: new KubeClient({ transport: this.#door, clock: this.#clock }),
      clock: this.#clock,
      log: silentLogger,
    });
  }

  nodeClass(state: NodeClassState): Promise<NodeClassRef> {
    const { group, kind } = kwokNodeClassKind;
    return Promise.resolve({ group, kind, name: state.replace(' ', '-') });
  }

  inject(fault: CloudFault): Promise<boolean> {
    this.#fault = faults[fault];
    this.#door.failAll(this.#fault);
    return Promise.resolve(this.#fault !== undefined);
  }

  lift(): Promise<void> {
    this.#fault = undefined;
    this.#door.failAll(undefined);
    return Promise.resolve();
  }

  async machines(): Promise<readonly ExistingMachine[]> {
    const { items } = await this.#past.resource(kinds.Node).list();
    return items.map(({ spec }) => ({ providerID: spec?.providerID ?? '' }));
  }

  async settle(): Promise<void> {
    await this.#clock.step(settleMs);
  }

  async close(): Promise<void> {
    this.#provider.close();
    await this.#server.close();
  }
}
