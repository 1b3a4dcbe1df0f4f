// SPDX-License-Identifier: Apache-2.0
// The Pod that stands for the controller inside an embedded cluster: `kubectl get pods` and `kubectl logs` find it where it
// would be elsewhere. The controller runs in this process whatever happens to the Pod, so whoever deletes it gets it back.
import { labels } from '../api/labels.ts';
import type { Clock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { SeededRandom } from '../base/random.ts';
import type { LogSource } from '../embedded/logs/log-buffer.ts';
import type { LogSources } from '../embedded/logs/pod-log.ts';
import { isAlreadyExists } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import { Informer } from '../kube/informer.ts';
import { kinds, type Pod } from '../kube/kinds.ts';
import type { Log } from '../kube/log.ts';

const podName = 'karpenter';
const container = 'controller';
const namespace = 'kube-system';
/** Between two tries, while there is no node for it. */
const retryMs = 1000;

/** The log of the controller's Pod, for the cluster that it is in. It outlives the Pod. */
export function controllerLogs(source: LogSource): LogSources {
  return ({ metadata }, name) =>
    metadata.name === podName && metadata.namespace === namespace && name === container ? source : undefined;
}

export interface ControllerPodOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Log;
  /** The node that it is on; without it, any other that the autoscaler does not own. */
  readonly node: string;
}

/** Creates the Pod, and again whenever it is gone. The result ends that and leaves the Pod. */
export async function keepControllerPod({
  client,
  clock,
  log,
  node,
}: ControllerPodOptions): Promise<() => Promise<void>> {
  const pods = client.resource(kinds.Pod);
  await pods.create(controllerPod(node));
  const stop = new AbortController();
  const { signal } = stop;
  const bringBack = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        const place = await placeFor(client, node);
        if (place !== undefined) {
          await pods.create(controllerPod(place));
          return;
        }
      } catch (error) {
        if (isAlreadyExists(error) || signal.aborted) return;
        log.warn('the pod of the controller cannot be brought back yet', { error: messageOf(error) });
      }
      await clock.sleep(retryMs, signal).catch(() => undefined);
    }
  };
  // Chance of its own: with or without somebody who watches this Pod, a run from a seed is the same.
  const random = new SeededRandom(1);
  const fieldSelector = `metadata.name=${podName}`;
  const informer = new Informer({ client, type: kinds.Pod, namespace, fieldSelector, clock, random, log });
  let returning = Promise.resolve();
  informer.addHandler({ deleted: () => void (returning = returning.then(bringBack)) });
  informer.start(signal);
  return async () => {
    stop.abort(new Error('the cluster stops'));
    await informer.stopped();
    await returning;
  };
}

/** Its own node, or another that no NodePool made. */
async function placeFor(client: KubeClient, node: string): Promise<string | undefined> {
  const { items } = await client.resource(kinds.Node).list({ labelSelector: `!${labels.nodePool}` });
  const names = items.map(({ metadata }) => metadata.name!).sort();
  return names.includes(node) ? node : names[0];
}

const controllerPod = (nodeName: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: podName,
    namespace,
    labels: { 'app.kubernetes.io/name': 'karpenter' },
    // It belongs to its node as a static pod does: draining the node leaves it alone.
    annotations: { 'kubernetes.io/config.mirror': 'karpenter' },
  },
  spec: {
    priorityClassName: 'system-cluster-critical',
    containers: [{ name: container, image: 'karpenter' }],
    // On a node of the cluster's own, never on a machine that it may remove, and before anybody else takes the place.
    nodeName,
    tolerations: [{ operator: 'Exists' }],
  },
});
