// SPDX-License-Identifier: Apache-2.0
// Nodes that are taken away: for a reason there is, within the budgets of their pool, and never under protected pods.
import type { NodeClaim } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import type { Node, Pod } from '../../kube/kinds.ts';
import { parseDuration, parseTime } from '../../kube/time.ts';
import type { FeatureGates } from '../../runtime/settings.ts';
import { collections } from '../collections.ts';
import type { Change, Facts, Invariant } from '../contract.ts';
import type { Fleet } from '../process/fleet.ts';
import {
  beginsDeletion,
  conditionTrue,
  disruptionReason,
  hasEnded,
  isDaemon,
  isGoing,
  isOurs,
  isProtected,
  minute,
  nameOf,
  nodeOfClaim,
  podsOn,
  poolLabel,
  second,
  voluntary,
} from './reading.ts';
import { repairsAfter, unreadySince } from './repairs.ts';

/** What a decision may not have seen yet: it is made on watches, which may be late, and is 15 s old when it is carried out. */
const unseenMs = minute;

/** What a process that came back had begun before it could know what changed meanwhile: it is over after this. */
const surpriseMs = 10 * second;

export function disruptionInvariants(parts: DisruptionParts): Invariant[] {
  return [justified(parts), withinBudget(parts), protectedStay()];
}

interface DisruptionParts {
  readonly fleet: Fleet;
  readonly gates: FeatureGates;
}

/** A NodeClaim that the autoscaler deletes is disrupted for a reason, is broken or too many, or is of no use any more. */
function justified({ gates }: DisruptionParts): Invariant {
  const broken = new Breakages();
  const sizes = new Sizes();
  return {
    name: 'claims/deleted-for-a-reason',
    onChange(change, facts, report) {
      if (gates.NodeRepair) broken.note(change);
      if (gates.StaticCapacity) sizes.note(change);
      if (change.collection !== collections.claims || !isOurs(change) || !beginsDeletion(change)) return;
      report.checked();
      const claim = (change.event.previous ?? change.event.object) as NodeClaim;
      if (disruptionReason(claim) !== undefined || !conditionTrue(claim, 'Registered')) return;
      const node = nodeOfClaim(facts, claim);
      const pool = facts.get<NodePool>(collections.pools, '', claim.metadata.labels?.[poolLabel] ?? '');
      const alive = facts.clouds.some(({ ledger }) =>
        ledger
          .alive()
          .some((m) => m.providerID === claim.status?.providerID && (m.deletingAt ?? m.leavingAt) === undefined),
      );
      if (!node || isGoing(node) || !pool || isGoing(pool) || !alive || isAged(claim, facts.now)) return;
      if (broken.isOver(node, claim, facts) || sizes.isOneTooMany(pool, claim, facts)) return;
      report.violated(`NodeClaim ${nameOf(claim)} was deleted without a reason (${change.request})`);
    },
  };
}

/** How long what is over may still be believed while requests fail and watches break. */
const longUnseenMs = 12 * minute;

interface Breakage {
  readonly from: number;
  until?: number;
}

/** When nodes were not ready. */
class Breakages {
  /** By name, the latest last. */
  readonly #past = new Map<string, Breakage[]>();

  note({ collection, event, at }: Change): void {
    if (collection !== collections.nodes) return;
    const name = nameOf(event.object);
    if (event.type === 'DELETED') return void this.#past.delete(name);
    const since = unreadySince(event.object as Node);
    const past = this.#past.get(name) ?? [];
    const last = past.at(-1);
    if (last?.from === since) return;
    if (last) last.until ??= at;
    if (since !== undefined) this.#past.set(name, [...past.slice(-5), { from: since }]);
  }

  /** It is broken for longer than its cloud has patience, as far as could be seen. */
  isOver(node: Node, claim: NodeClaim, facts: Facts): boolean {
    const patienceMs = repairsAfter(facts, claim);
    if (patienceMs === undefined) return false;
    const isCalm = facts.calmSince !== undefined && facts.now - facts.calmSince > unseenMs;
    const [unseen, clockError] = isCalm ? [surpriseMs, second] : [longUnseenMs, clockErrorMs];
    return (this.#past.get(nameOf(node)) ?? []).some(({ from, until = facts.now }) => {
      return facts.now - until <= unseen && facts.now - from >= patienceMs - clockError;
    });
  }
}

/** How many nodes static pools were told to have. */
class Sizes {
  readonly #past = new Map<string, { readonly until: number; readonly replicas: number }[]>();

  note({ collection, event, at }: Change): void {
    if (collection !== collections.pools || event.type !== 'MODIFIED') return;
    const { metadata, spec } = event.previous as NodePool;
    const past = this.#past.get(metadata.name ?? '') ?? [];
    if (spec.replicas !== undefined)
      this.#past.set(metadata.name ?? '', [...past.slice(-5), { until: at, replicas: spec.replicas }]);
  }

  /** Whether its pool has more nodes than it is told to have, or was told to a moment ago. */
  isOneTooMany({ metadata, spec }: NodePool, claim: NodeClaim, facts: Facts): boolean {
    const { calmSince, now } = facts;
    if (spec.replicas === undefined) return false;
    const lately = (this.#past.get(metadata.name ?? '') ?? []).filter(
      ({ until }) => now - until < (calmSince === undefined ? longUnseenMs : unseenMs),
    );
    const least = Math.min(spec.replicas, ...lately.map(({ replicas }) => replicas));
    const others = facts.list<NodeClaim>(collections.claims).filter((other) => {
      const isOfPool = other.metadata.labels?.[poolLabel] === metadata.name;
      return isOfPool && !isGoing(other) && other.metadata.uid !== claim.metadata.uid;
    });
    return others.length >= least;
  }
}

/** It has reached its age, as far as a clock that is wrong by minutes can tell. */
function isAged({ metadata, spec }: NodeClaim, now: number): boolean {
  if (!spec.expireAfter || spec.expireAfter === 'Never') return false;
  return now - parseTime(metadata.creationTimestamp ?? '') >= parseDuration(spec.expireAfter) - 3 * minute;
}

/** Its machine has ceased to be, whether the autoscaler was told so or not: it does not go any more. */
function isGone(facts: Facts, { status }: NodeClaim): boolean {
  return facts.clouds.some(({ ledger }) =>
    ledger.all().some(({ providerID, goneAt }) => providerID === status?.providerID && goneAt !== undefined),
  );
}

interface Past<T> {
  readonly at: number;
  readonly value: T;
}

/** The largest of what held lately. */
class Lately {
  readonly #past = new Map<string, Past<number>[]>();

  note(key: string, now: number, value: number): number {
    const past = (this.#past.get(key) ?? []).filter(({ at }) => now - at <= 2 * minute);
    past.push({ at: now, value });
    this.#past.set(key, past);
    return Math.max(...past.map((one) => one.value));
  }
}

/** No more nodes of a pool go at once than its budgets allow for the reason. */
function withinBudget({ fleet }: { readonly fleet: Fleet }): Invariant {
  const lately = new Lately();
  /** By pool. */
  const nodesOfPools = (facts: Facts): ReadonlyMap<string | undefined, number> => {
    const nodes = new Map<string | undefined, number>();
    for (const claim of facts.list<NodeClaim>(collections.claims)) {
      if (!conditionTrue(claim, 'Initialized')) continue;
      const pool = claim.metadata.labels?.[poolLabel];
      nodes.set(pool, (nodes.get(pool) ?? 0) + 1);
    }
    return nodes;
  };
  const nodesOf = (facts: Facts, { metadata }: NodePool): number => nodesOfPools(facts).get(metadata.name) ?? 0;
  const allowedNow = (facts: Facts, pool: NodePool, reason: string, nodes = nodesOf(facts, pool)): number => {
    const bounds = (pool.spec.disruption?.budgets ?? [{ nodes: '10%' }])
      .filter(({ reasons }) => reasons === undefined || reasons.includes(reason as never))
      .filter((budget) => budget.schedule === undefined || holdsByAnyClock(budget.duration ?? '', facts.now))
      .map(({ nodes: bound }) => {
        return bound.endsWith('%') ? Math.ceil((nodes * Number(bound.slice(0, -1))) / 100) : Number(bound);
      });
    return Math.min(Number.POSITIVE_INFINITY, ...bounds);
  };
  const reasons = [...voluntary];
  /** Which process marked a NodeClaim. */
  const markedBy = new Map<string, Mark>();
  return {
    name: 'budgets/kept',
    onMinute(facts) {
      const counts = nodesOfPools(facts);
      for (const pool of facts.list<NodePool>(collections.pools)) {
        const nodes = counts.get(pool.metadata.name) ?? 0;
        for (const reason of reasons)
          lately.note(`${pool.metadata.name}/${reason}`, facts.now, allowedNow(facts, pool, reason, nodes));
      }
    },
    onChange(change, facts, report) {
      if (change.collection === collections.pools) {
        const pool = change.event.object as NodePool;
        // What was allowed until now still counts for decisions under way.
        const before = (change.event.previous ?? pool) as NodePool;
        const nodes = nodesOf(facts, before);
        for (const reason of reasons) {
          lately.note(`${pool.metadata.name}/${reason}`, facts.now, allowedNow(facts, before, reason, nodes));
        }
        return;
      }
      if (change.collection !== collections.claims || change.event.type === 'ADDED') return;
      const claim = change.event.object as NodeClaim;
      const uid = claim.metadata.uid ?? '';
      const reason = disruptionReason(claim);
      if (change.event.type === 'DELETED' || reason === undefined) {
        markedBy.delete(uid);
        return;
      }
      // A command begins when its nodes are marked: then it must fit, whatever begins before it is carried out.
      if (!isOurs(change) || disruptionReason(change.event.previous as NodeClaim) !== undefined) return;
      markedBy.set(uid, { by: change.by, at: facts.now });
      if (!voluntary.has(reason)) return;
      const pool = facts.get<NodePool>(collections.pools, '', claim.metadata.labels?.[poolLabel] ?? '');
      if (!pool || hasJustResumed(fleet, change)) return;
      report.checked();
      const allowed = lately.note(`${pool.metadata.name}/${reason}`, facts.now, allowedNow(facts, pool, reason));
      const going = facts.list<NodeClaim>(collections.claims).filter((other) => {
        return (
          other.metadata.labels?.[poolLabel] === pool.metadata.name &&
          (isGoing(other) || standsFor(markedBy.get(other.metadata.uid ?? ''), change, facts)) &&
          conditionTrue(other, 'Initialized') &&
          !conditionTrue(other, 'InstanceTerminating') &&
          !isGone(facts, other) &&
          voluntary.has(disruptionReason(other) ?? '')
        );
      });
      if (going.length > allowed) {
        report.violated(
          `${going.length} nodes of NodePool ${pool.metadata.name} go at once, and its budgets allow ${allowed} for ${reason}: ${going.map(nameOf).join(', ')}`,
        );
      }
    },
  };
}

/** Whether whoever made a change hung a moment ago: budgets may have become smaller while it could not see. */
function hasJustResumed(fleet: Fleet, { at, by }: Change): boolean {
  return fleet.alive.some(({ name, resumedAt }) => name === by && at - resumedAt < surpriseMs);
}

/** Commands of one pass are marked within this time; the next pass comes later, and takes off what others could not. */
const begunMs = 3 * second;

interface Mark {
  readonly by: string;
  readonly at: number;
}

/**
 * Whether a mark is part of a command. Those of a process that is gone are not, nor may be older ones while requests fail:
 * a command that was given up cannot always take its mark off.
 */
function standsFor(mark: Mark | undefined, change: Change, facts: Facts): boolean {
  if (mark?.by !== change.by) return false;
  return facts.now - mark.at < begunMs || (facts.calmSince !== undefined && mark.at > facts.calmSince);
}

/** By how much the clock of a process may be wrong. */
const clockErrorMs = 2 * minute;

/** Budgets of these worlds with a schedule begin each hour. Near the edges a wrong clock is on the other side. */
function holdsByAnyClock(duration: string, now: number): boolean {
  return [now - clockErrorMs, now, now + clockErrorMs].every((at) => at % (60 * minute) < parseDuration(duration));
}

/** Nothing is disrupted voluntarily under a protected pod, and no node that is protected itself. */
function protectedStay(): Invariant {
  return {
    name: 'protected/stay',
    onChange(change, facts, report) {
      if (change.collection !== collections.claims || !isOurs(change) || !beginsDeletion(change)) return;
      const claim = (change.event.previous ?? change.event.object) as NodeClaim;
      const reason = disruptionReason(claim);
      if (reason === undefined || !voluntary.has(reason)) return;
      const node = nodeOfClaim(facts, claim);
      if (!node) return;
      report.checked();
      const late = facts.calmSince === undefined || facts.now - facts.calmSince < unseenMs;
      // While watches may be late, or the command has begun, a protection that came meanwhile could not be seen.
      if (late) return;
      const driftsAnyway = reason === 'Drifted' && claim.spec.terminationGracePeriod !== undefined;
      for (const pod of podsOn(facts, node)) {
        if (!wasSeen(pod, claim, facts.now)) continue;
        if (isProtected(pod, facts.now) && isProtectedSince(pod) && !driftsAnyway) {
          report.violated(`NodeClaim ${nameOf(claim)} goes (${reason}) under the protected pod ${nameOf(pod)}`);
        }
        if (reason === 'Empty' && !isDaemon(pod) && pod.metadata.ownerReferences !== undefined) {
          report.violated(`NodeClaim ${nameOf(claim)} goes as empty, and ${nameOf(pod)} runs on it`);
        }
      }
    },
  };
}

/** Whether a pod that has to move ran long enough before the command began. */
function wasSeen(pod: Pod, { status }: NodeClaim, now: number): boolean {
  const marked = status?.conditions?.find(({ type }) => type === 'DisruptionReason')?.lastTransitionTime;
  const { startTime } = pod.status ?? {};
  if (isGoing(pod) || hasEnded(pod) || !startTime) return false;
  return parseTime(startTime) < (marked === undefined ? now : parseTime(marked)) - unseenMs;
}

/** Protections that a template brought have been there from the start; those put on by hand may have come a moment ago. */
function isProtectedSince(pod: {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
}): boolean {
  return pod.metadata.annotations?.['example.com/protected-by-hand'] === undefined;
}
