// SPDX-License-Identifier: Apache-2.0
// Whether a pass would be asked the same again. Pods that wait for a machine on its way, and nodes that are drained, are
// told every ten seconds, each at its own time: most passes are about nothing new, and planning them again costs as much
// as the first time.
import { nodeClaimConditions } from '../../api/conditions.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import { deepEqual } from '../../base/freeze.ts';
import type { ClusterState } from '../../state/cluster-state.ts';
import type { PoolCatalog } from '../../state/pool-catalog.ts';
import { Clockwork } from '../disruption/clockwork.ts';
import { NodesBesideHeartbeats } from '../disruption/heartbeats.ts';
import { UnchangedPods } from '../disruption/unchanged-pods.ts';
import { SettledList } from '../settled-list.ts';

/** Whatever happened, everything is planned anew after this long. */
const longestMs = 60_000;

/** Remembers what the last pass looked at, and what came of it. */
export class UnchangedProblem<T> {
  readonly #nodes = new NodesBesideHeartbeats();
  readonly #pods = new UnchangedPods();
  readonly #claims = new SettledList<NodeClaim>(isPodEvent);
  readonly #clockwork = new Clockwork();
  #last: { readonly seen: readonly unknown[]; readonly answer: T; readonly at: number } | undefined;

  /** What a pass looks at now. Equal in every part: the same problem. */
  look(state: ClusterState, catalog: PoolCatalog, now: number): readonly unknown[] {
    const { nodes, pods, nodeClaims, ...others } = state.sources;
    const settled = this.#pods.settled(pods.list());
    const isTimed = this.#clockwork.runs([], settled);
    return [
      settled,
      this.#nodes.settled(nodes.list()),
      this.#claims.settled(nodeClaims.list()),
      isTimed ? now : 0,
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
  for (const { key, markedForDeletion } of state.nodes()) text += `${key}${markedForDeletion ? ' goes' : ''}\n`;
  for (const { metadata } of state.pendingPods())
    text += `${metadata.uid} ${state.bookkeeping.of(metadata.uid ?? '')?.nodeClaim ?? ''}\n`;
  return text;
}

/** Whether two NodeClaims differ at most in when pods came or left. */
function isPodEvent(before: NodeClaim, after: NodeClaim): boolean {
  return deepEqual(withoutPodEvents(before), withoutPodEvents(after));
}

/** Conditions about consolidation come and go with pods; a plan does not look at them. */
function withoutPodEvents({ metadata, status, ...claim }: NodeClaim): unknown {
  const { resourceVersion: _version, managedFields: _fields, ...kept } = metadata;
  const { lastPodEventTime: _time, conditions, ...rest } = status ?? {};
  const others = conditions?.filter(({ type }) => type !== nodeClaimConditions.consolidatable);
  return { ...claim, metadata: kept, status: { ...rest, conditions: others } };
}
