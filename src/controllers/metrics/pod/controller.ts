// SPDX-License-Identifier: Apache-2.0
// metrics.pod: where every pod is, and how long pods wait for a node and to be ready. Reads Pods and Nodes of the cluster
// `workload`.
import { labels } from '../../../api/labels.ts';
import type { Node, Pod } from '../../../kube/kinds.ts';
import { type CollectedSample, labelText } from '../../../runtime/collected-gauge.ts';
import type { Runnable } from '../../../runtime/manager.ts';
import type { PodTimes } from '../../../state/pod-bookkeeping.ts';
import type { ControllerContext } from '../../nodeclaim/context.ts';
import { observer } from '../observer.ts';
import { seconds, timeOf } from '../times.ts';
import { podMetrics, waitingPodMetrics } from './metrics.ts';
import { trueCondition, uidOf, type WaitingPod, WaitingPods } from './waiting-pods.ts';

/** Since when a pod waits for something; undefined when it does not. */
type Since = (waiting: WaitingPod, times: Readonly<PodTimes> | undefined, now: number) => number | undefined;

const waits: Readonly<Record<keyof typeof waitingPodMetrics, Since>> = {
  unstarted: ({ pod }, _times, now) => timeOf(pod.metadata.creationTimestamp, now),
  unbound: ({ pod, bound }, _times, now) => (bound ? undefined : timeOf(pod.metadata.creationTimestamp, now)),
  provisioningUnstarted: (_waiting, times) => times?.schedulable,
  provisioningUnbound: ({ bound }, times) => (bound ? undefined : times?.schedulable),
  undecided: ({ bound }, times) => (bound || times?.attempted !== undefined ? undefined : times?.acknowledged),
};

/** The observer `metrics.pod`. */
export function podMetricsObserver(context: ControllerContext): Runnable {
  const { clock, metrics, nodes, state } = context;
  const { bookkeeping } = state;
  const { pods } = state.sources;

  function* waiting(all: WaitingPods, since: Since): Generator<CollectedSample, void, undefined> {
    const now = clock.now();
    for (const one of all.all()) {
      const from = since(one, bookkeeping.of(uidOf(one.pod)), now);
      if (from !== undefined) yield { labels: nameOf(one.pod), value: seconds(now - from) };
    }
  }

  function* states(): Generator<CollectedSample, void, undefined> {
    for (const pod of pods.list()) {
      const node = pod.spec.nodeName ? nodes.informer.get(pod.spec.nodeName) : undefined;
      yield { labels: `${nameOf(pod)},${stateOf(pod)},${nodeText(node)}`, value: 1 };
    }
  }

  return observer('metrics.pod', () => {
    const all = new WaitingPods({ bookkeeping, metrics, now: () => clock.now() });
    const names = Object.keys(waits) as (keyof typeof waits)[];
    return [
      pods.addHandler({
        added: (pod) => all.put(pod),
        updated: (pod) => all.put(pod),
        deleted: (pod) => all.remove(pod),
      }),
      metrics.collect(podMetrics.state, states),
      ...names.map((name) => metrics.collect(waitingPodMetrics[name], () => waiting(all, waits[name]))),
    ];
  });
}

function nameOf({ metadata }: Pod): string {
  return labelText({ name: metadata.name ?? '', namespace: metadata.namespace ?? '' });
}

function stateOf(pod: Pod): string {
  const { nodeName = '' } = pod.spec;
  return labelText({
    owner: ownerOf(pod),
    node: nodeName,
    scheduled: String(nodeName !== ''),
    phase: pod.status?.phase ?? '',
    ready: String(trueCondition(pod, 'Ready') !== undefined),
  });
}

/** The path of the first owner, as objects used to carry it. */
function ownerOf({ metadata }: Pod): string {
  const owner = metadata.ownerReferences?.[0];
  if (!owner) return '';
  return `/apis/${owner.apiVersion}/namespaces/${metadata.namespace}/${owner.kind.toLowerCase()}s/${owner.name}`;
}

/** What pods on a node say about it: the same text for all of them. */
const nodeTexts = new WeakMap<Node, string>();
const noNode = textOfNode({});

function nodeText(node: Node | undefined): string {
  if (!node) return noNode;
  let text = nodeTexts.get(node);
  if (text === undefined) {
    text = textOfNode(node.metadata.labels ?? {});
    nodeTexts.set(node, text);
  }
  return text;
}

function textOfNode(own: Readonly<Record<string, string>>): string {
  const nodepool = own[labels.nodePool] ?? '';
  return labelText({
    nodepool,
    zone: own[labels.zone] ?? '',
    arch: own[labels.arch] ?? '',
    capacity_type: own[labels.capacityType] ?? '',
    instance_type: own[labels.instanceType] ?? '',
    managed: String(nodepool !== ''),
  });
}
