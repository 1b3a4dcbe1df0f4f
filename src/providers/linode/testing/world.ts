// SPDX-License-Identifier: Apache-2.0
// A Linode account, a cluster with NodeClaims and Nodes, and the provider between them, in virtual time. What goes to the
// Linode API can be refused, dropped and counted.
import { allCrds } from '../../../api/crd.ts';
import { labels } from '../../../api/labels.ts';
import { type LinodeNodeClassSpec, linodeNodeClassKind } from '../../../api/linode-node-class.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import type { NodePool } from '../../../api/node-pool.ts';
import { VirtualClock } from '../../../base/clock.ts';
import { SeededRandom } from '../../../base/random.ts';
import { ApiServer } from '../../../embedded/api-server.ts';
import { makeCertificate } from '../../../embedded/certificates.ts';
import { LinodeApi, type LinodeApiOptions } from '../../../embedded/clouds/linode/api.ts';
import { KubeClient } from '../../../kube/client.ts';
import { kinds } from '../../../kube/kinds.ts';
import type { Transport } from '../../../kube/transport.ts';
import { Cluster } from '../../../runtime/clusters.ts';
import { RecordingLogger } from '../../../runtime/logging.ts';
import { Metrics } from '../../../runtime/metrics.ts';
import type { LinodeInstance, LkePool } from '../api-types.ts';
import { assembleLinode, type LinodeParts } from '../assemble.ts';
import type { LinodeDoor, LinodeRequest, LinodeResponse } from '../door.ts';
import type { LinodeConfiguration } from '../settings.ts';

export const token = 'linode-token';
export const clusterName = 'test-cluster';

/** What happens to a request instead of its usual fate; undefined lets it through. */
export type DoorFault = (request: LinodeRequest) => LinodeResponse | 'unreachable' | 'answer lost' | undefined;

export interface WorldOptions {
  readonly mode?: 'lke' | 'instance';
  readonly tier?: 'standard' | 'enterprise';
  readonly region?: string;
  readonly api?: Partial<LinodeApiOptions>;
  readonly configuration?: Partial<LinodeConfiguration>;
  /** An account that other worlds use too. */
  readonly sharing?: LinodeWorld;
  readonly clusterName?: string;
  readonly nodeClass?: LinodeNodeClassSpec;
  /** LinodeNodeClasses are checked by their controller, not declared ready. */
  readonly withControllers?: boolean;
  /** What the provider's requests to the cluster go through. */
  readonly through?: (transport: Transport) => Transport;
  /** No cluster in the account. */
  readonly withoutCluster?: boolean;
}

const ready = (generation: number) =>
  ['AccountReady', 'ValidationSucceeded', 'Ready'].map((type) => ({
    type,
    status: 'True' as const,
    reason: type,
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
    observedGeneration: generation,
  }));

export class LinodeWorld {
  readonly clock: VirtualClock;
  readonly api: LinodeApi;
  readonly log = new RecordingLogger();
  readonly metrics = new Metrics();
  readonly signal = new AbortController().signal;
  readonly client: KubeClient;
  readonly clusterName: string;
  readonly region: string;
  clusterId = 0;
  /** The pool that the cluster came with: a stranger to Karpenter. */
  basePool = 0;
  fault: DoorFault = () => undefined;
  parts!: LinodeParts;
  readonly #options: WorldOptions;
  readonly #server: ApiServer;
  readonly #random: SeededRandom;
  #running = new AbortController();

  private constructor(options: WorldOptions) {
    this.#options = options;
    this.clusterName = options.clusterName ?? clusterName;
    this.region = options.region ?? (options.tier === 'enterprise' ? 'us-lax' : 'us-east');
    this.clock = options.sharing?.clock ?? new VirtualClock();
    this.#random = new SeededRandom(options.sharing ? 2 : 1);
    const { clock } = this;
    this.api =
      options.sharing?.api ??
      new LinodeApi({ clock, random: this.#random, ...options.api, delays: { ...options.api?.delays } });
    this.#server = new ApiServer({ clock, random: this.#random });
    this.client = new KubeClient({ transport: this.#server.transport(), clock, fieldManager: 'test' });
  }

  static async start(options: WorldOptions = {}): Promise<LinodeWorld> {
    const world = new LinodeWorld(options);
    for (const crd of allCrds()) await world.client.resource(kinds.CustomResourceDefinition).create(crd as never);
    const { mode = 'lke', tier = 'standard', withoutCluster = false } = options;
    if (mode === 'lke' && !withoutCluster) {
      const version = tier === 'enterprise' ? 'v1.31.8+lke1' : '1.34';
      const made = await world.person<{ id: number }>('POST', '/lke/clusters', {
        label: world.clusterName,
        region: world.region,
        k8s_version: version,
        tier,
        node_pools: [{ type: 'g6-standard-1', count: 1 }],
      });
      world.clusterId = made.id;
      world.basePool = world.api.ledger.pools(made.id)[0]!.id;
    }
    if (mode === 'instance') await world.#publish();
    await world.nodeClass('default', options.nodeClass);
    world.restart();
    // The base pool gets its Linode.
    await world.pass(120_000);
    return world;
  }

  /** What machines need to know of a cluster that they join. */
  async #publish(): Promise<void> {
    const { authority } = makeCertificate(this.clock, this.#random, ['kubernetes'], ['10.0.0.1']);
    await this.client.resource(kinds.ConfigMap).create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'kube-root-ca.crt', namespace: 'kube-system' },
      data: { 'ca.crt': authority },
    });
  }

  get provider() {
    return this.parts.provider;
  }

  /** The process dies and another one starts: what it was doing never comes to an end. */
  restart(): void {
    this.#running.abort(new Error('crashed'));
    this.#running = new AbortController();
    const { signal } = this.#running;
    const { clock, log, metrics } = this;
    const { through = (transport: Transport) => transport } = this.#options;
    const cluster = new Cluster({
      name: 'karpenter',
      transport: through(this.#server.transport()),
      clock,
      random: this.#random,
      log,
      metrics,
    });
    const door: LinodeDoor = {
      handle: (request, inner) =>
        signal.aborted ? new Promise(() => undefined) : this.#handle(request, inner, signal),
    };
    this.parts = assembleLinode({
      door,
      configuration: {
        token,
        url: 'https://api.linode.com',
        apiVersion: 'v4beta',
        ca: '',
        timeoutMs: 10_000,
        debug: false,
        region: this.#options.mode === 'instance' ? this.region : '',
        mode: this.#options.mode ?? 'lke',
        clusterName: this.clusterName,
        clusterEndpoint: 'https://10.0.0.1:6443',
        createDeadlineMs: 10_000,
        retryDelayMs: 2000,
        sharePools: false,
        memoryOverhead: 0.075,
        lookUp: true,
        ...this.#options.configuration,
      },
      karpenter: cluster,
      workload: cluster,
      clock,
      random: this.#random,
      log,
      metrics,
    });
    clock.after(1, () => {
      cluster.start(signal);
      if (!this.#options.withControllers) return;
      for (const runnable of this.parts.runnables) void runnable.start(signal);
    });
  }

  async #handle(
    request: LinodeRequest,
    signal: AbortSignal | undefined,
    process: AbortSignal,
  ): Promise<LinodeResponse> {
    const fault = this.fault(request);
    if (fault === 'unreachable') throw new Error('connection refused');
    if (typeof fault === 'object') return fault;
    const answer = await this.api.handle(request, signal);
    if (process.aborted) return new Promise(() => undefined);
    if (fault === 'answer lost') throw new Error('connection reset');
    return answer;
  }

  /** A request as a person makes it, past every fault. Throws for anything but success. */
  async person<T>(method: string, path: string, body?: object): Promise<T> {
    const answer = await this.api.handle({
      method,
      path: `/v4beta${path}`,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`);
    return JSON.parse(answer.body) as T;
  }

  async pools(clusterId = this.clusterId): Promise<readonly LkePool[]> {
    return (await this.person<{ data: LkePool[] }>('GET', `/lke/clusters/${clusterId}/pools?page_size=500`)).data;
  }

  async linodes(): Promise<readonly LinodeInstance[]> {
    const all: LinodeInstance[] = [];
    for (let page = 1, pages = 1; page <= pages; page++) {
      const path = `/linode/instances?page_size=500&page=${page}`;
      const answer = await this.person<{ data: LinodeInstance[]; pages: number }>('GET', path);
      all.push(...answer.data);
      pages = answer.pages;
    }
    return all;
  }

  /** The Linodes of this cluster that are not of the pool it came with. */
  async machines(): Promise<readonly LinodeInstance[]> {
    const linodes = await this.linodes();
    if (this.clusterId === 0) return linodes;
    const base = (await this.pools()).find(({ id }) => id === this.basePool);
    const strangers = new Set(base?.nodes.map(({ instance_id: id }) => id));
    return linodes.filter(({ id, lke_cluster_id: of }) => of === this.clusterId && !strangers.has(id));
  }

  async nodeClass(name: string, spec: LinodeNodeClassSpec = {}): Promise<void> {
    const made = await this.client.resource(linodeNodeClassKind).create({
      apiVersion: 'karpenter.k8s.linode/v1',
      kind: 'LinodeNodeClass',
      metadata: { name },
      spec,
    });
    if (this.#options.withControllers) return;
    const conditions = ready(made.metadata.generation ?? 1);
    await this.client.resource(linodeNodeClassKind).patchStatus(name, { status: { conditions } });
  }

  /** A NodeClaim as the provisioner writes it; only handed to the provider, not stored. */
  claim(
    name: string,
    more: { spec?: Partial<NodeClaim['spec']>; metadata?: Partial<NodeClaim['metadata']> } = {},
  ): NodeClaim {
    return {
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodeClaim',
      metadata: {
        name,
        uid: this.#random.uuid(),
        labels: {
          [labels.nodePool]: 'default',
          'karpenter.k8s.linode/linodenodeclass': 'default',
        },
        ...more.metadata,
      },
      spec: {
        nodeClassRef: { group: 'karpenter.k8s.linode', kind: 'LinodeNodeClass', name: 'default' },
        requirements: [],
        resources: { requests: { cpu: '1' } },
        ...more.spec,
      },
    };
  }

  nodePool(nodeClass = 'default'): NodePool {
    return {
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodePool',
      metadata: { name: 'default' },
      spec: {
        template: {
          spec: {
            nodeClassRef: { group: 'karpenter.k8s.linode', kind: 'LinodeNodeClass', name: nodeClass },
            requirements: [],
          },
        },
      },
    };
  }

  create(claim: NodeClaim) {
    return this.finish(this.provider.create(claim, this.signal));
  }

  /** As the lifecycle controller does it: again after each failure that is not final. */
  async delete(claim: NodeClaim, providerID?: string) {
    const known = providerID === undefined ? claim : { ...claim, status: { ...claim.status, providerID } };
    return this.finish(this.provider.delete(known, this.signal));
  }

  pass(ms = 1000): Promise<void> {
    return this.clock.step(ms);
  }

  /** Waits for a promise while time passes. */
  finish<T>(promise: Promise<T>, limitMs = 180_000): Promise<T> {
    return this.clock.finish(promise, limitMs);
  }

  /** What a call fails with. */
  async failure(promise: Promise<unknown>): Promise<unknown> {
    try {
      await this.finish(promise);
    } catch (error) {
      return error;
    }
    throw new Error('it was meant to fail');
  }

  async stop(): Promise<void> {
    this.#running.abort(new Error('the test is over'));
    await this.#server.close();
    if (!this.#options.sharing) await this.api.close();
  }
}
