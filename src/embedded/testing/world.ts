// SPDX-License-Identifier: Apache-2.0
// An embedded cluster under a virtual clock, with the verbs tests are written in.
import { VirtualClock } from '../../base/clock.ts';
import { SeededRandom } from '../../base/random.ts';
import type { KubeClient } from '../../kube/client.ts';
import { type Deployment, kinds, type Node, type Pod, type PodTemplateSpec } from '../../kube/kinds.ts';
import { RecordingLogger } from '../../runtime/logging.ts';
import { EmbeddedCluster, type EmbeddedClusterOptions } from '../cluster.ts';
import { isPodActive, isPodReady } from '../workloads/pods.ts';
import { aNode, type NodeOptions } from './objects.ts';

export interface WorldOptions extends Partial<Omit<EmbeddedClusterOptions, 'clock' | 'random' | 'log'>> {
  readonly seed?: number;
  /** Starts with the two nodes every embedded cluster has. */
  readonly withBaseNodes?: boolean;
}

export class World {
  readonly clock: VirtualClock;
  readonly log: RecordingLogger;
  readonly cluster: EmbeddedCluster;
  readonly client: KubeClient;

  private constructor(clock: VirtualClock, log: RecordingLogger, cluster: EmbeddedCluster) {
    this.clock = clock;
    this.log = log;
    this.cluster = cluster;
    this.client = cluster.client();
  }

  /** A cluster without nodes, kinds of ours and heartbeats, unless told otherwise. */
  static async start(options: WorldOptions = {}): Promise<World> {
    const clock = new VirtualClock();
    const log = new RecordingLogger();
    const { seed = 1, withBaseNodes = false, ...rest } = options;
    const cluster = await EmbeddedCluster.start({
      clock,
      random: new SeededRandom(seed),
      log,
      ...(withBaseNodes ? {} : { baseNodes: [] }),
      heartbeatMs: 0,
      crds: [],
      podStartMs: 100,
      ...rest,
    });
    return new World(clock, log, cluster);
  }

  /** Lets time pass, and everything happen that falls due. */
  pass(ms = 1000): Promise<void> {
    return this.clock.step(ms);
  }

  /** Adds a fake node and waits until it is ready. */
  async addNode(name: string, options: NodeOptions = {}): Promise<Node> {
    const node = aNode(name, options);
    node.metadata.annotations = { 'kwok.x-k8s.io/node': 'fake' };
    delete node.status!.conditions;
    const created = await this.client.resource(kinds.Node).create(node);
    await this.pass(100);
    return created;
  }

  async deploy(name: string, replicas: number, spec: Partial<Deployment['spec']> = {}): Promise<Deployment> {
    return this.client.resource(kinds.Deployment).create({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace: 'default' },
      spec: { replicas, selector: { matchLabels: { app: name } }, template: template(name), ...spec },
    });
  }

  /** The pods of the default namespace, by their labels. */
  async pods(labelSelector?: string): Promise<Pod[]> {
    return (await this.client.resource(kinds.Pod).list({ namespace: 'default', labelSelector })).items;
  }

  async readyPods(labelSelector?: string): Promise<Pod[]> {
    return (await this.pods(labelSelector)).filter((pod) => isPodActive(pod) && isPodReady(pod));
  }

  async deployment(name: string): Promise<Deployment> {
    return this.client.resource(kinds.Deployment).get(name, { namespace: 'default' });
  }

  /** `Type Reason Message` of every event about objects of this kind. */
  async events(kind: string): Promise<string[]> {
    await this.pass(0);
    const { items } = await this.client.resource(kinds.Event).list({ namespace: 'default' });
    return items
      .filter((event) => event.involvedObject.kind === kind)
      .map((event) => `${event.type} ${event.reason} ${event.message}`);
  }

  async stop(): Promise<void> {
    const closing = this.cluster.close();
    await this.clock.step(20_000);
    await closing;
  }
}

/** A template of one small container. */
export function template(app: string, image = 'app:1'): PodTemplateSpec {
  return {
    metadata: { labels: { app } },
    spec: { containers: [{ name: 'app', image, resources: { requests: { cpu: '100m' } } }] },
  };
}
