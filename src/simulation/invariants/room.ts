// SPDX-License-Identifier: Apache-2.0
// A machine has room for everything that it was bought for: the pods that were told to wait for it, and the daemons.
import type { NodeClaim } from '../../api/node-claim.ts';
import type { DaemonSet, Event, Pod } from '../../kube/kinds.ts';
import { Quantity } from '../../kube/quantity.ts';
import { parseTime } from '../../kube/time.ts';
import { collections } from '../collections.ts';
import type { Change, Facts, Invariant } from '../contract.ts';
import { requested } from './placement.ts';
import { claimTold, isOurs, minute, nameOf, second } from './reading.ts';

/** Pods that a NodeClaim is made for are told so at once; what comes later was planned onto what was left of it. */
const atOnceMs = second;
/** A DaemonSet that is younger than this may not have been seen, */
const unseenMs = minute;
/** or than this, when something was broken ever since: a watch that ended comes back once the API does. */
const longUnseenMs = 15 * minute;

export function roomForAll(): Invariant {
  const plans = new Map<string, { readonly bornAt: number; readonly pods: Map<string, Pod> }>();
  const told = ({ event, at }: Change, facts: Facts): void => {
    const { namespace = '', name = '', uid = '' } = (event.object as Event).involvedObject;
    const plan = plans.get(claimTold(event.object as Event) ?? '');
    if (!plan || at - plan.bornAt >= atOnceMs) return;
    const pod = facts.get<Pod>(collections.pods, namespace, name);
    if (pod?.metadata.uid === uid && pod) plan.pods.set(uid, pod);
  };
  /** By uid: DaemonSets that were there while nothing was broken. */
  const seen = new Set<string>();
  return {
    name: 'claims/room-for-all',
    onMinute(facts) {
      if (facts.calmSince === undefined || facts.now - facts.calmSince < unseenMs) return;
      for (const { metadata } of daemonSetsBefore(facts, facts.now - unseenMs)) seen.add(metadata.uid ?? '');
    },
    onChange(change, facts, report) {
      const { collection, event, at } = change;
      if (!isOurs(change)) return;
      if (collection === collections.events && event.type === 'ADDED') return told(change, facts);
      if (collection !== collections.claims) return;
      const claim = event.object as NodeClaim;
      const { name = '' } = claim.metadata;
      if (event.type === 'ADDED') plans.set(name, { bornAt: at, pods: new Map() });
      const { allocatable } = claim.status ?? {};
      const plan = plans.get(name);
      if (!plan || !allocatable || plan.pods.size === 0) return;
      plans.delete(name);
      report.checked();
      const sum = requested([...plan.pods.values(), ...daemonsOf(facts, plan.bornAt, seen)]);
      for (const resource of ['cpu', 'memory'] as const) {
        const there = Quantity.parse(allocatable[resource] ?? 0).toNumber();
        if (sum[resource]! > there + 1e-9)
          report.violated(
            `NodeClaim ${nameOf(claim)} got ${there} ${resource}, and its ${plan.pods.size} pods and daemons ask for ${sum[resource]}`,
          );
      }
    },
  };
}

/** One pod of each DaemonSet that must have been known: in these worlds they run everywhere. */
function daemonsOf(facts: Facts, bornAt: number, seen: ReadonlySet<string>): Pod[] {
  return daemonSetsBefore(facts, bornAt - unseenMs)
    .filter(({ metadata }) => seen.has(metadata.uid ?? '') || createdAt(metadata) < bornAt - longUnseenMs)
    .map(({ spec }) => spec!.template as unknown as Pod);
}

function daemonSetsBefore(facts: Facts, at: number): DaemonSet[] {
  return facts.list<DaemonSet>(collections.daemonSets).filter(({ metadata }) => createdAt(metadata) < at);
}

function createdAt({ creationTimestamp }: DaemonSet['metadata']): number {
  return parseTime(creationTimestamp ?? '');
}
