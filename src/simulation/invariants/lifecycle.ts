// SPDX-License-Identifier: Apache-2.0
// From the order of a machine to its end: what is promised about reservations, ages and deadlines, and about pods that are
// on a node when it goes.
import type { NodeClaim } from '../../api/node-claim.ts';
import type { Node, Pod } from '../../kube/kinds.ts';
import { parseDuration, parseTime } from '../../kube/time.ts';
import { collections } from '../collections.ts';
import type { Change, Facts, Invariant, LedgerInstance } from '../contract.ts';

const minute = 60_000;
/** How long the autoscaler may take for what is due, once nothing is broken any more. */
const patienceMs = 10 * minute;
/** How long it may take to notice that a machine is gone: it is looked for every two minutes. */
const noticedMs = 5 * minute;
/** By how much the clock of a process may be ahead while that fault is on. */
const wrongClockMs = 3 * minute;
/** How long a machine may take to join. */
const joinMs = 15 * minute;

const capacityTypeLabel = 'karpenter.sh/capacity-type';
const reservationLabel = 'cloud.simulation/reservation';
const deadlineAnnotation = 'karpenter.sh/nodeclaim-termination-timestamp';
const disruptedTaint = 'karpenter.sh/disrupted';

export function lifecycleInvariants(): Invariant[] {
  return [drained(), reservations(), aged(), inTime(), joined(), lost()];
}

function claimsOf(facts: Facts): readonly NodeClaim[] {
  return facts.list<NodeClaim>(collections.claims);
}

function machineOf(facts: Facts, providerID: string): LedgerInstance | undefined {
  for (const { ledger } of facts.clouds) {
    const found = ledger.all().findLast((machine) => machine.providerID === providerID);
    if (found) return found;
  }
  return undefined;
}

function isByAutoscaler({ by }: Change): boolean {
  return by.startsWith('karpenter');
}

function hasCondition(claim: NodeClaim, wanted: string): boolean {
  return claim.status?.conditions?.some(({ type, status }) => type === wanted && status === 'True') ?? false;
}

/** For how long something has been due, not counting the time in which anything was broken. */
function overdueMs(facts: Facts, dueAt: number): number {
  return facts.calmSince === undefined ? 0 : facts.now - Math.max(dueAt, facts.calmSince);
}

/** A Node is let go only when the pods on it have left, unless its machine died or its time was over. */
function drained(): Invariant {
  return {
    name: 'nodes/drained',
    onChange(change, facts, report) {
      if (change.collection !== collections.nodes || change.event.type !== 'DELETED' || !isByAutoscaler(change)) return;
      const { metadata, spec } = change.event.object as Node;
      const machine = machineOf(facts, spec?.providerID ?? '');
      if (!machine || machine.goneBecause !== undefined || (machine.hiddenUntil ?? 0) > facts.now) return;
      report.checked();
      const claim = claimsOf(facts).find(({ status }) => status?.providerID === machine.providerID);
      const deadline = claim?.metadata.annotations?.[deadlineAnnotation];
      // Also by a clock that is ahead: where nodes are repaired, time is over as soon as it is set.
      const toleranceMs = facts.calmSince === undefined ? wrongClockMs : 0;
      if (deadline !== undefined && parseTime(deadline) <= facts.now + toleranceMs) return;
      const left = facts
        .list<Pod>(collections.pods)
        .filter((pod) => pod.spec.nodeName === metadata.name && mustLeave(pod));
      if (left.length > 0)
        report.violated(`Node ${metadata.name} was let go with ${left.length} pods on it: ${left[0]!.metadata.name}`);
    },
  };
}

function mustLeave({ metadata, spec, status }: Pod): boolean {
  if (metadata.deletionTimestamp !== undefined || status?.phase !== 'Running') return false;
  if (metadata.ownerReferences?.some(({ kind }) => kind === 'DaemonSet' || kind === 'Node')) return false;
  return !spec.tolerations?.some(({ key, operator }) => key === disruptedTaint || (!key && operator === 'Exists'));
}

/** No more NodeClaims count on a reservation than it has machines. */
function reservations(): Invariant {
  return {
    name: 'claims/reservations',
    onChange(change, facts, report) {
      if (change.collection !== collections.claims || change.event.type !== 'ADDED') return;
      const wanted = reservationOf(change.event.object as NodeClaim);
      const size = wanted === undefined ? undefined : sizeOf(facts, wanted);
      if (wanted === undefined || size === undefined) return;
      report.checked();
      const holders = claimsOf(facts).filter(
        (claim) =>
          claim.metadata.deletionTimestamp === undefined && reservationOf(claim) === wanted && mayHold(facts, claim),
      );
      if (holders.length > size)
        report.violated(`${holders.length} NodeClaims count on the ${size} machines of ${wanted}`);
    },
  };
}

/** The reservation that a NodeClaim counts on, when it can be launched into nothing else. */
function reservationOf({ spec }: NodeClaim): string | undefined {
  const only = (key: string): string | undefined => {
    const { operator, values } = spec.requirements.find((wanted) => wanted.key === key) ?? {};
    return operator === 'In' && values?.length === 1 ? values[0] : undefined;
  };
  return only(capacityTypeLabel) === 'reserved' ? only(reservationLabel) : undefined;
}

function sizeOf(facts: Facts, reservation: string): number | undefined {
  for (const cloud of facts.clouds) {
    const size = cloud.reservations?.get(reservation);
    if (size !== undefined) return size;
  }
  return undefined;
}

/** Not one whose machine has gone already. */
function mayHold(facts: Facts, { status }: NodeClaim): boolean {
  if (!status?.providerID) return true;
  const machine = machineOf(facts, status.providerID);
  return machine !== undefined && machine.deletingAt === undefined;
}

/** A NodeClaim that has reached its age is deleted. */
function aged(): Invariant {
  return {
    name: 'claims/expired',
    onMinute(facts, report) {
      for (const { metadata, spec } of claimsOf(facts)) {
        if (!spec.expireAfter || spec.expireAfter === 'Never' || metadata.deletionTimestamp !== undefined) continue;
        const dueAt = parseTime(metadata.creationTimestamp ?? '') + parseDuration(spec.expireAfter);
        if (facts.now >= dueAt) report.checked();
        if (overdueMs(facts, dueAt) > patienceMs) report.violated(`NodeClaim ${metadata.name} has outlived its age`);
      }
    },
  };
}

/** A NodeClaim with a terminationGracePeriod is gone when it is over. */
function inTime(): Invariant {
  return {
    name: 'claims/deadline',
    onMinute(facts, report) {
      for (const { metadata, spec } of claimsOf(facts)) {
        if (metadata.deletionTimestamp === undefined || !spec.terminationGracePeriod) continue;
        report.checked();
        const dueAt = parseTime(metadata.deletionTimestamp) + parseDuration(spec.terminationGracePeriod);
        if (overdueMs(facts, dueAt) > patienceMs)
          report.violated(`NodeClaim ${metadata.name} is still there long after its terminationGracePeriod`);
      }
    },
  };
}

/** When a NodeClaim that did not become a node is given up: launch and join have their time. */
function givenUpAt({ metadata }: NodeClaim): number {
  return parseTime(metadata.creationTimestamp ?? '') + joinMs + 5 * minute;
}

/** A machine that does not join in time is given up. */
function joined(): Invariant {
  return {
    name: 'claims/joined',
    onMinute(facts, report) {
      for (const claim of claimsOf(facts)) {
        const { name, deletionTimestamp } = claim.metadata;
        if (deletionTimestamp !== undefined || hasCondition(claim, 'Registered')) continue;
        report.checked();
        if (overdueMs(facts, givenUpAt(claim)) > patienceMs) report.violated(`NodeClaim ${name} never became a node`);
      }
    },
  };
}

/** A NodeClaim whose machine is gone goes as well: one that has not become a node when its time to join is over. */
function lost(): Invariant {
  return {
    name: 'claims/lost',
    onMinute(facts, report) {
      const gone = new Map<string, number>();
      for (const { ledger } of facts.clouds)
        for (const { providerID, goneAt } of ledger.all()) if (goneAt !== undefined) gone.set(providerID, goneAt);
      for (const claim of claimsOf(facts)) {
        const { metadata, status } = claim;
        const goneAt = gone.get(status?.providerID ?? '');
        if (goneAt === undefined) continue;
        report.checked();
        const dueAt = hasCondition(claim, 'Registered') ? goneAt : Math.max(goneAt, givenUpAt(claim));
        if (metadata.deletionTimestamp === undefined && overdueMs(facts, dueAt) > noticedMs)
          report.violated(`NodeClaim ${metadata.name} stays although its machine is gone`);
      }
    },
  };
}
