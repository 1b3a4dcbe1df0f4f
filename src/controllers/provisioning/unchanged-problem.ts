// SPDX-License-Identifier: Apache-2.0
// Whether a pass would be asked the same again. Pods that wait for a machine on its way, and nodes that are drained, are
// told every ten seconds, each at its own time: most passes are about nothing new, and planning them again costs as much
// as the first time.
import type { NodeClaim } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import type { DaemonSet, Node, Pod, PodDisruptionBudget } from '../../kube/kinds.ts';
import type { ClusterState } from '../../state/cluster-state.ts';
import { doNotDisrupt, podId } from '../../state/pod-predicates.ts';
import type { PoolCatalog } from '../../state/pool-catalog.ts';
import { SettledList } from '../settled-list.ts';
import { isSameToPlanClaim, isSameToPlanNode, isSameToPlanPod, isSameToPlanSpec } from './plan-relevance.ts';

/** Whatever happened, everything is planned anew after this long. */
const longestMs = 5 * 60_000;

/** Remembers what the last pass looked at, and what came of it. */
export class UnchangedProblem<T> {
  readonly #nodes = new SettledList<Node>(isSameToPlanNode);
  readonly #pods = new SettledList<Pod>(isSameToPlanPod);
  readonly #claims = new SettledList<NodeClaim>(isSameToPlanClaim);
  readonly #pools = new SettledList<NodePool>(isSameToPlanSpec);
  readonly #daemonSets = new SettledList<DaemonSet>(isSameToPlanSpec);
  readonly #budgets = new SettledList<PodDisruptionBudget>(isSameToPlanSpec);
  readonly #protections = new TimedProtections();
  #last: { readonly seen: readonly unknown[]; readonly answer: T; readonly at: number } | undefined;

  /** What a pass looks at now. Equal in every part: the same problem. */
  look(state: ClusterState, catalog: PoolCatalog, now: number): readonly unknown[] {
    const { nodes, pods, nodeClaims, nodePools, daemonSets, podDisruptionBudgets, ...others } = state.sources;
    const settled = this.#pods.settled(pods.list());
    return [
      settled,
      this.#nodes.settled(nodes.list()),
      this.#claims.settled(nodeClaims.list()),
      this.#pools.settled(nodePools.list()),
      this.#daemonSets.settled(daemonSets.list()),
      this.#budgets.settled(podDisruptionBudgets.list()),
      this.#protections.at(settled, now),
      memoryOf(state),
      ...(Object.values(others) as { list(): unknown }[]).map((source) => source.list()),
      catalog.pools.map(({ metadata }) => metadata.uid).join(),
      ...Object.values(catalog.instanceTypes),
    ];
  }

  /** What came of the same problem, if that is the one that was remembered. Monotonic time. */
  answerTo(seen: readonly unknown[], at: number): T | undefined {
    const last = this.#last;
    if (!last || at - last.at >= longestMs || last.seen.length !== seen.length) return undefined;
    return seen.every((part, i) => part === last.seen[i]) ? last.answer : undefined;
  }

  /** Remembers an answer. Only those that lead to nothing new may be given again. */
  remember(seen: readonly unknown[], answer: T, at: number): void {
    this.#last = { seen, answer, at };
  }
}

/** What only memory knows of: the machines, which of them are to go, and which pods are promised to which. */
function memoryOf(state: ClusterState): string {
  let text = '';
  const place = ({ metadata: { uid = '' } }: Pod): void => {
    text += `${uid} ${state.bookkeeping.of(uid)?.nodeClaim ?? ''}\n`;
  };
  for (const { key, markedForDeletion } of state.nodes()) text += `${key}${markedForDeletion ? ' goes' : ''}\n`;
  for (const pod of state.leavingPods()) place(pod);
  for (const pod of state.pendingPods()) place(pod);
  return text;
}

/** Which of the pods that protect themselves for a time do so at a moment. Mostly there are none. */
class TimedProtections {
  #pods: readonly Pod[] | undefined;
  #timed: readonly Pod[] = [];

  at(pods: readonly Pod[], now: number): string {
    if (pods !== this.#pods) {
      this.#pods = pods;
      this.#timed = pods.filter((pod) => {
        const { state } = doNotDisrupt(pod, Number.NEGATIVE_INFINITY);
        return state === 'active' && doNotDisrupt(pod, Number.POSITIVE_INFINITY).state === 'elapsed';
      });
    }
    // A problem's time is in whole seconds.
    const second = Math.floor(now / 1000) * 1000;
    let text = '';
    for (const pod of this.#timed) if (doNotDisrupt(pod, second).state === 'active') text += `${podId(pod)}\n`;
    return text;
  }
}
