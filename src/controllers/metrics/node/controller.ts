// SPDX-License-Identifier: Apache-2.0
// metrics.node: what every node has, gives to pods and takes for itself, and how full the cluster is. Reads Nodes and Pods
// of the cluster `workload` and the state.
import { commonLabelSet } from '../../../api/labels.ts';
import type { Node } from '../../../kube/kinds.ts';
import { type CollectedSample, labelText } from '../../../runtime/collected-gauge.ts';
import type { Runnable } from '../../../runtime/manager.ts';
import type { MetricDeclaration } from '../../../runtime/metrics.ts';
import { type Amounts, addTo, type ReadonlyAmounts, readAmounts } from '../../../state/amounts.ts';
import type { StateNode } from '../../../state/state-node.ts';
import type { ControllerContext } from '../../nodeclaim/context.ts';
import { observer } from '../observer.ts';
import { resourceValue, type ShownResource, shownResources } from '../resources.ts';
import { seconds, timeOf } from '../times.ts';
import { nodeLabelNames, nodeMetrics, nodeResourceMetrics, type ShownLabels, shownLabels } from './metrics.ts';

type Source = (node: StateNode & { readonly node: Node }, facts: NodeFacts) => Iterable<ShownResource>;

const sources: Readonly<Record<keyof typeof nodeResourceMetrics, Source>> = {
  allocatable: (_node, facts) => facts.allocatable,
  systemOverhead: (_node, facts) => facts.overhead,
  podRequests: (node) => shownResources(node.requests),
  podLimits: (node) => shownResources(withPods(node.limits, node.requests)),
  daemonRequests: (node) => shownResources(node.daemonRequests),
  daemonLimits: (node) => shownResources(withPods(node.daemonLimits, node.daemonRequests)),
};

/** The observer `metrics.node`. */
export function nodeMetricsObserver(context: ControllerContext): Runnable {
  const { clock, metrics, registry, state } = context;
  const wellKnown = [commonLabelSet, ...registry.providers.map(({ labels }) => labels)].flatMap((set) => [
    ...set.wellKnown,
  ]);
  const facts = new FactsOfNodes(shownLabels(wellKnown));
  const nodes = () => [...state.nodes()].filter((node) => node.node !== undefined) as (StateNode & { node: Node })[];

  function* resources(source: Source): Generator<CollectedSample, void, undefined> {
    for (const node of nodes()) {
      const known = facts.of(node);
      for (const { label, value } of source(node, known)) yield { labels: `${known.labels},${label}`, value };
    }
  }

  function* lifetimes(): Generator<CollectedSample, void, undefined> {
    const now = clock.now();
    for (const node of nodes()) {
      const { labels } = facts.of(node);
      yield { labels, value: seconds(now - timeOf(node.node.metadata.creationTimestamp, now)) };
    }
  }

  return observer('metrics.node', () => {
    const all = facts.labelNames;
    const named = <L extends string>(metric: MetricDeclaration<'gauge', L>, ...more: string[]) => ({
      ...metric,
      labels: [...all, ...more],
    });
    const names = Object.keys(nodeResourceMetrics) as (keyof typeof nodeResourceMetrics)[];
    return [
      ...names.map((name) =>
        metrics.collect(named(nodeResourceMetrics[name], 'resource_type'), () => resources(sources[name])),
      ),
      metrics.collect(named(nodeMetrics.lifetime), lifetimes),
      metrics.collect(nodeMetrics.utilization, () => utilization(nodes())),
    ];
  });
}

/** What does not change while the Node does not. */
interface NodeFacts {
  readonly managed: boolean;
  readonly labels: string;
  readonly allocatable: readonly ShownResource[];
  readonly overhead: readonly ShownResource[];
}

/** Facts by Node: nodes change seldom, and are read for every scrape. */
class FactsOfNodes {
  readonly #shown: ShownLabels;
  readonly #facts = new WeakMap<Node, NodeFacts>();

  constructor(shown: ShownLabels) {
    this.#shown = shown;
  }

  get labelNames(): string[] {
    return nodeLabelNames(this.#shown);
  }

  of({ node, managed }: StateNode & { readonly node: Node }): NodeFacts {
    const known = this.#facts.get(node);
    if (known?.managed === managed) return known;
    const { status } = node;
    const allocatable = readAmounts(status?.allocatable);
    const facts = {
      managed,
      labels: labelText(this.#labelsOf(node, managed)),
      allocatable: [...shownResources(allocatable)],
      overhead: [...shownResources(lessThan(readAmounts(status?.capacity), allocatable))],
    };
    this.#facts.set(node, facts);
    return facts;
  }

  #labelsOf({ metadata, status }: Node, managed: boolean): Record<string, string> {
    const shown: Record<string, string> = {};
    for (const [word, keys] of this.#shown) {
      const key = keys.find((one) => metadata.labels?.[one] !== undefined);
      shown[word] = key === undefined ? '' : metadata.labels![key]!;
    }
    const phase = (status as { phase?: string } | undefined)?.phase ?? '';
    return { ...shown, node_name: metadata.name ?? '', phase, managed: String(managed) };
  }
}

function lessThan(capacity: ReadonlyAmounts, allocatable: ReadonlyAmounts): Amounts {
  const left: Amounts = new Map();
  for (const [name, nano] of capacity) left.set(name, nano - (allocatable.get(name) ?? 0n));
  return left;
}

/** Limits count their pods as well, as upstream's do. */
function withPods(limits: ReadonlyAmounts, requests: ReadonlyAmounts): ReadonlyAmounts {
  const pods = requests.get('pods');
  return pods === undefined ? limits : new Map([...limits, ['pods', pods]]);
}

/** Requests as a share of what there is for pods, over all nodes, by resource. */
function* utilization(nodes: Iterable<StateNode>): Generator<CollectedSample, void, undefined> {
  const allocatable: Amounts = new Map();
  const requested: Amounts = new Map();
  for (const node of nodes) {
    addTo(allocatable, node.allocatable);
    addTo(requested, node.requests);
  }
  for (const [resource, nano] of allocatable) {
    const there = resourceValue(resource, nano);
    const [shown] = shownResources(new Map([[resource, requested.get(resource) ?? 0n]]));
    if (there > 0 && shown) yield { labels: shown.label, value: (100 * shown.value) / there };
  }
}
