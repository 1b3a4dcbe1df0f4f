// SPDX-License-Identifier: Apache-2.0
// The scripted cloud for the conformance suite: a provider author's view of it, without a world around.
import { crdOf } from '../../../api/kind.ts';
import { VirtualClock } from '../../../base/clock.ts';
import { type Random, SeededRandom } from '../../../base/random.ts';
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
import { Cluster, Clusters } from '../../../runtime/clusters.ts';
import { silentLogger } from '../../../runtime/logging.ts';
import { Metrics } from '../../../runtime/metrics.ts';
import type { Coverage, Line } from '../../contract.ts';
import type { Mishap } from '../mishaps.ts';
import { scriptedNodeClassKind } from '../node-class.ts';
import { type ScriptedCloud, scriptedCloud } from '../scripted-cloud.ts';

/** Longer than anything the cloud has under way. */
const settleMs = 120_000;

const mishapOf: Readonly<Partial<Record<CloudFault, readonly Mishap[]>>> = {
  unreachable: ['unreachable'],
  throttled: ['throttled'],
  failing: ['failing'],
  'answer lost': ['lost-create-response', 'lost-delete-response'],
  'launch refused': ['launch-refused'],
};

/** Counts, and nothing else. */
export class Counts implements Coverage {
  readonly #counts = new Map<string, number>();

  count(kind: string, name: string, times = 1): void {
    const key = `${kind}/${name}`;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + times);
  }

  counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }
}

export class ScriptedHarness implements ProviderHarness {
  readonly clock = new VirtualClock();
  readonly random: Random = new SeededRandom(1);
  readonly coverage = new Counts();
  readonly cloud: ScriptedCloud;
  readonly client: KubeClient;
  readonly #server = new ApiServer({ clock: this.clock, random: this.random });
  readonly #cluster: Cluster;
  #isCut = { value: false };
  #lift: (() => void)[] = [];
  #provider: CloudProvider;

  private constructor() {
    const { clock, random, coverage } = this;
    this.client = new KubeClient({ transport: this.#server.transport(), clock });
    this.cloud = scriptedCloud({ clock, random, karpenter: this.client, workload: this.client, coverage });
    this.#cluster = new Cluster({
      name: 'karpenter',
      transport: this.#server.transport(),
      clock,
      random,
      log: silentLogger,
      metrics: new Metrics(),
    });
    this.#provider = this.#start();
  }

  static async start(): Promise<ScriptedHarness> {
    const harness = new ScriptedHarness();
    const { client } = harness;
    await client.resource(kinds.CustomResourceDefinition).create(crdOf(scriptedNodeClassKind) as never);
    const nodeClasses = client.resource(scriptedNodeClassKind);
    const { group, version, kind } = scriptedNodeClassKind;
    for (const name of ['ready', 'not-ready'])
      await nodeClasses.create({ apiVersion: `${group}/${version}`, kind, metadata: { name } });
    const condition = { type: 'Ready', status: 'False', reason: 'Broken', message: 'broken' } as const;
    const conditions = [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }];
    await nodeClasses.patchStatus('not-ready', { status: { conditions } });
    return harness;
  }

  get provider(): CloudProvider {
    return withTimePassing(this.#provider, this.clock);
  }

  restart(): Promise<CloudProvider> {
    this.#isCut.value = true;
    this.#provider = this.#start();
    return Promise.resolve(this.provider);
  }

  #start(): CloudProvider {
    const cut = { value: false };
    this.#isCut = cut;
    const never = <R>(): Promise<R> => new Promise<R>(() => undefined);
    const line: Line = {
      clock: this.clock,
      clusters: new Clusters(this.#cluster),
      random: this.random,
      log: silentLogger,
      metrics: new Metrics(),
      reach: (transport) => transport,
      async call(_what, carryOut) {
        if (cut.value) return never();
        const result = await carryOut();
        return cut.value ? never() : result;
      },
    };
    return this.cloud.connect(line).provider;
  }

  nodeClass(state: NodeClassState): Promise<NodeClassRef> {
    const { group, kind } = scriptedNodeClassKind;
    return Promise.resolve({ group, kind, name: state.replace(' ', '-') });
  }

  inject(fault: CloudFault): Promise<boolean> {
    const { mishaps, market } = this.cloud.backend;
    const always = (mishap: Mishap): (() => void) => mishaps.begin(mishap, 1, this.random);
    this.#lift = fault === 'sold out' ? [market.sellOut({})] : (mishapOf[fault] ?? []).map(always);
    return Promise.resolve(this.#lift.length > 0);
  }

  lift(): Promise<void> {
    for (const end of this.#lift) end();
    this.#lift = [];
    return Promise.resolve();
  }

  machines(): Promise<readonly ExistingMachine[]> {
    const alive = this.cloud.ledger.alive();
    return Promise.resolve(
      alive.map(({ providerID, claim }) => ({ providerID, ...(claim ? { nodeClaimUid: claim.uid } : {}) })),
    );
  }

  async settle(): Promise<void> {
    await this.clock.step(settleMs);
  }

  readonly drift = (providerID: string): Promise<void> => {
    this.cloud.backend.outdate(providerID);
    return Promise.resolve();
  };

  async close(): Promise<void> {
    this.cloud.close();
    await this.#cluster.close();
    await this.#server.close();
  }
}

/** Calls take time, and the suite lets none pass while it waits for one. */
function withTimePassing(provider: CloudProvider, clock: VirtualClock): CloudProvider {
  const whileTimePasses = async <R>(call: () => Promise<R>): Promise<R> => {
    let isOver = false;
    const made = call().finally(() => (isOver = true));
    made.catch(() => undefined);
    for (let i = 0; i < 5 && !isOver; i++) await clock.step(100);
    return made;
  };
  return new Proxy(provider, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== 'function') return value;
      return (...given: unknown[]) =>
        whileTimePasses(() => (value as (...all: unknown[]) => Promise<unknown>).apply(target, given));
    },
  });
}
