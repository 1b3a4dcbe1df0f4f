// SPDX-License-Identifier: Apache-2.0
// What a fault test sees of its cluster: pods, machines and NodeClaims as they come and go, over every outage.
import { type NodeClaim, nodeClaimKind } from '../../src/api/node-claim.ts';
import { RealClock } from '../../src/base/clock.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { machineIo } from '../../src/kube/credential-io.ts';
import { HttpTransport } from '../../src/kube/http-transport.ts';
import { Informer } from '../../src/kube/informer.ts';
import { kinds, type Node, type Pod } from '../../src/kube/kinds.ts';
import { findConnection } from '../../src/kube/kubeconfig.ts';

const clock = new RealClock();

export class FaultWorld {
  readonly client: KubeClient;
  readonly #pods: Informer<Pod>;
  readonly #nodes: Informer<Node>;
  readonly #claims: Informer<NodeClaim>;
  readonly #stop = new AbortController();
  /** Machines by name, each with all the Nodes that ever had this name: a machine's name follows from its NodeClaim. */
  readonly #machines = new Map<string, Set<string>>();
  /** NodeClaims by UID, each with all the machines it ever had. */
  readonly #launches = new Map<string, Set<string>>();
  #problems: string[] = [];

  constructor(kubeconfig: string) {
    const io = machineIo({}, false);
    const connection = findConnection({ path: kubeconfig, env: {}, homeDirectory: '/', io, clock });
    this.client = new KubeClient({ transport: new HttpTransport({ ...connection, userAgent: 'fault-test' }) });
    this.#pods = new Informer({ client: this.client, type: kinds.Pod, namespace: 'default' });
    this.#nodes = new Informer({ client: this.client, type: kinds.Node });
    this.#claims = new Informer({ client: this.client, type: nodeClaimKind });
    const seeNode = ({ metadata }: Node): void => this.#see(this.#machines, metadata.name!, metadata.uid!, 'machine');
    const seeClaim = ({ metadata, status }: NodeClaim): void => {
      if (status?.providerID) this.#see(this.#launches, metadata.uid!, status.providerID, 'NodeClaim');
    };
    this.#nodes.addHandler({ added: seeNode, updated: seeNode });
    this.#claims.addHandler({ added: seeClaim, updated: seeClaim });
  }

  #see(seen: Map<string, Set<string>>, key: string, value: string, what: string): void {
    const all = seen.get(key) ?? new Set();
    seen.set(key, all.add(value));
    if (all.size > 1) this.#problems.push(`${what} ${key} was launched ${all.size} times: ${[...all].join(', ')}`);
  }

  async start(): Promise<void> {
    const all = [this.#pods, this.#nodes, this.#claims];
    for (const informer of all) informer.start(this.#stop.signal);
    await Promise.all(all.map((informer) => informer.waitForSync()));
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all([this.#pods, this.#nodes, this.#claims].map((informer) => informer.stopped()));
    await this.client.close();
  }

  /** Machines that were launched twice, in words; each is told once. */
  doubleLaunches(): string[] {
    const told = this.#problems;
    this.#problems = [];
    return told;
  }

  /** NodeClaims that ever had a machine. */
  get launched(): number {
    return this.#launches.size;
  }

  get claims(): number {
    return this.#claims.size;
  }

  get nodes(): number {
    return this.#nodes.size;
  }

  /** Pods that are there to stay. */
  get pods(): number {
    return this.#pods.list().filter(({ metadata }) => !metadata.deletionTimestamp).length;
  }

  get runningPods(): number {
    return this.#pods
      .list()
      .filter(({ metadata, status }) => !metadata.deletionTimestamp && status?.phase === 'Running').length;
  }

  /** Nodes without a NodeClaim, and NodeClaims whose machine has no Node. */
  leaks(): string[] {
    const machines = new Set(this.#claims.list().map(({ status }) => status?.providerID));
    const nodes = new Set(this.#nodes.list().map(({ spec }) => spec?.providerID));
    return [
      ...this.#nodes
        .list()
        .filter(({ spec }) => !machines.has(spec?.providerID))
        .map(({ metadata }) => `node ${metadata.name} has no NodeClaim`),
      ...this.#claims
        .list()
        .filter(({ status }) => !nodes.has(status?.providerID ?? ''))
        .map(({ metadata }) => `NodeClaim ${metadata.name} has no node`),
    ];
  }

  /** Nodes that no pod is on: bought twice for the same pods, as long as nobody took pods away. */
  idleNodes(): string[] {
    const used = new Set(this.#pods.list().map(({ spec }) => spec.nodeName));
    return this.#nodes
      .list()
      .map(({ metadata }) => metadata.name!)
      .filter((name) => !used.has(name));
  }

  /** Resolves when the cluster is as wanted; throws with what it is like instead. */
  async until(what: string, wanted: () => boolean, seconds: number): Promise<void> {
    const deadline = clock.monotonic() + seconds * 1000;
    while (!wanted()) {
      if (clock.monotonic() > deadline) {
        throw new Error(
          `${what}: not within ${seconds} s; ${this.runningPods} of ${this.pods} pods run, ${this.nodes} nodes, ` +
            `${this.claims} NodeClaims; ${[...this.leaks(), ...this.#problems].slice(0, 10).join('; ')}`,
        );
      }
      await clock.sleep(100);
    }
  }

  pause(ms: number): Promise<void> {
    return clock.sleep(ms);
  }
}
