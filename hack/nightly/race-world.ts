// SPDX-License-Identifier: Apache-2.0
// What a race sees of its cluster, and what it counts: pods, nodes, their price, evictions, node-hours. The same eyes
// for both controllers, and for clusters real and embedded.
import { labels } from '../../src/api/labels.ts';
import { type Clock, RealClock } from '../../src/base/clock.ts';
import type { InstanceType } from '../../src/cloud/provider.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { machineIo } from '../../src/kube/credential-io.ts';
import { HttpTransport } from '../../src/kube/http-transport.ts';
import { Informer } from '../../src/kube/informer.ts';
import { kinds, type Node, type Pod } from '../../src/kube/kinds.ts';
import { findConnection } from '../../src/kube/kubeconfig.ts';
import { defaultInstanceTypes } from '../../src/providers/kwok/instance-types.ts';
import { apply } from '../../test/real/kubectl.ts';

/** By type, capacity type and zone. */
type Prices = ReadonlyMap<string, number>;

function pricesOf(types: readonly InstanceType[]): Prices {
  return new Map(
    types.flatMap(({ name, offerings }) =>
      offerings.map(({ requirements, price }): [string, number] => {
        const value = (key: string) => requirements.find((requirement) => requirement.key === key)?.values?.[0];
        return [`${name}/${value(labels.capacityType)}/${value(labels.zone)}`, price];
      }),
    ),
  );
}

export interface RaceWorldOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly apply: (objects: readonly object[]) => Promise<void>;
  /** What nodes are of; the pretended cloud's own types unless told. */
  readonly types?: readonly InstanceType[];
}

/** The cluster of a kubeconfig. */
export function realWorld(kubeconfig: string, types?: readonly InstanceType[]): RaceWorld {
  const io = machineIo({}, false);
  const clock = new RealClock();
  const connection = findConnection({ path: kubeconfig, env: {}, homeDirectory: '/', io, clock });
  const client = new KubeClient({ transport: new HttpTransport({ ...connection, userAgent: 'karpenter-race' }) });
  return new RaceWorld({ client, clock, apply: (objects) => apply(kubeconfig, objects), ...(types ? { types } : {}) });
}

export class RaceWorld {
  readonly #options: RaceWorldOptions;
  readonly #pods: Informer<Pod>;
  readonly #nodes: Informer<Node>;
  readonly #stop = new AbortController();
  readonly #prices: Prices;
  #evictions = 0;

  constructor(options: RaceWorldOptions) {
    this.#options = options;
    const { client, clock, types = defaultInstanceTypes() } = options;
    this.#prices = pricesOf(types);
    this.#pods = new Informer({ client, clock, type: kinds.Pod, namespace: 'default' });
    // Those that somebody bought: an embedded cluster has one of its own.
    this.#nodes = new Informer({ client, clock, type: kinds.Node, labelSelector: labels.nodePool });
    this.#pods.addHandler({
      updated: (pod, old) => {
        if (isEvicted(pod) && !isEvicted(old)) this.#evictions++;
      },
    });
  }

  async start(): Promise<void> {
    for (const informer of [this.#pods, this.#nodes]) informer.start(this.#stop.signal);
    await Promise.all([this.#pods.waitForSync(), this.#nodes.waitForSync()]);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all([this.#pods.stopped(), this.#nodes.stopped()]);
    await this.#options.client.close();
  }

  apply(objects: readonly object[]): Promise<void> {
    return this.#options.apply(objects);
  }

  get pods(): number {
    return this.#pods.size;
  }

  get readyPods(): number {
    return this.#pods.list().filter((pod) => hasCondition(pod, 'Ready')).length;
  }

  get nodes(): number {
    return this.#nodes.size;
  }

  /** Of all nodes together, in dollars an hour. Throws for a node that no offering explains. */
  get price(): number {
    return this.#nodes.list().reduce((sum, node) => sum + priceOf(node, this.#prices), 0);
  }

  /** Pods that the eviction API removed so far. */
  get evictions(): number {
    return this.#evictions;
  }
}

const hasCondition = (pod: Pod, type: string): boolean =>
  pod.status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false;

const isEvicted = (pod: Pod): boolean => hasCondition(pod, 'DisruptionTarget');

function priceOf(node: Node, prices: Prices): number {
  const value = (key: string): string | undefined => node.metadata.labels?.[key];
  const offering = `${value(labels.instanceType)}/${value(labels.capacityType)}/${value(labels.zone)}`;
  const price = prices.get(offering);
  if (price === undefined)
    throw new Error(`node ${node.metadata.name} is of an offering that nobody sells: ${offering}`);
  return price;
}
