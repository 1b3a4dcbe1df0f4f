// SPDX-License-Identifier: Apache-2.0
// Nodes that are replaced because they cost too much are replaced by what costs less.
import type { NodeClaim } from '../../api/node-claim.ts';
import type { Event } from '../../kube/kinds.ts';
import { collections } from '../collections.ts';
import type { Change, Facts, Invariant } from '../contract.ts';
import { beginsDeletion, disruptionReason, isOurs, minute, nameOf } from './reading.ts';

const reason = 'Underutilized';
/** What the autoscaler says of a NodeClaim that it makes to replace others. */
const launching = `Launching NodeClaim: ${reason}`;
/** Marks that are closer than this may be of one pass, whose commands begin together. */
const passMs = minute;
/** By how much a price that moves may have risen since a machine was launched. */
const mostRise = 4;

/** What a process decided at once, as far as others can tell. */
interface Pass {
  lastMarkAt: number;
  /** UIDs of NodeClaims that it marked. Those that were spared in the end count as well. */
  readonly going: Map<string, NodeClaim>;
  /** UIDs of NodeClaims that were made to replace them. */
  readonly coming: Set<string>;
  /** By UID of those that were spared: how many it had marked by then. */
  readonly spared: Map<string, number>;
}

/**
 * What a pass buys in place of nodes costs less than these nodes together. Only where prices stay as they are: what others
 * cost when they were chosen nobody wrote down.
 */
export function movesSave(): Invariant {
  const latest = new Map<string, Pass>();
  const passOf = new Map<string, Pass>();
  const born = new Map<string, { readonly by: string; readonly at: number }>();
  const marked = ({ event, by, at }: Change): void => {
    const claim = event.object as NodeClaim;
    const { uid = '' } = claim.metadata;
    let pass = latest.get(by);
    if (!pass || at - pass.lastMarkAt > passMs) latest.set(by, (pass = newPass(at)));
    // Its first command is over, and what that bought does not replace it. Those marked since then may be of either pass.
    else if (pass.going.has(uid)) latest.set(by, (pass = newPass(at, [...pass.going].slice(pass.spared.get(uid)))));
    pass.lastMarkAt = at;
    pass.going.set(uid, claim);
    passOf.set(uid, pass);
  };
  const spared = (uid: string): void => {
    const pass = passOf.get(uid);
    pass?.spared.set(uid, pass.going.size);
  };
  const told = ({ event }: Change): void => {
    const { message, involvedObject } = event.object as Event;
    const { uid = '' } = involvedObject;
    if (message !== launching) return;
    const birth = born.get(uid);
    const pass = birth && latest.get(birth.by);
    if (pass && birth.at >= pass.lastMarkAt && birth.at - pass.lastMarkAt < passMs) pass.coming.add(uid);
  };
  return {
    name: 'moves/save',
    onChange(change, facts, report) {
      const { collection, event } = change;
      if (!isOurs(change)) return;
      if (collection === collections.events) return told(change);
      if (collection !== collections.claims) return;
      const claim = event.object as NodeClaim;
      const { uid = '' } = claim.metadata;
      if (event.type === 'ADDED') born.set(uid, { by: change.by, at: change.at });
      else if (event.type === 'MODIFIED' && isNewlyMarked(change)) marked(change);
      else if (event.type === 'MODIFIED' && isSpared(change)) spared(uid);
      else if (beginsDeletion(change) && disruptionReason(claim) === reason) {
        const pass = passOf.get(uid);
        const prices = pass && pricesOf(facts, pass);
        if (!prices) return;
        report.checked();
        if (prices.coming < prices.going) return;
        const names = [...pass.going.values()].map(nameOf).join(', ');
        report.violated(
          `${names} at ${prices.going.toFixed(4)} $/h made way for machines at ${prices.coming.toFixed(4)} $/h`,
        );
      }
    },
  };
}

function newPass(at: number, going: Iterable<[string, NodeClaim]> = []): Pass {
  return { lastMarkAt: at, going: new Map(going), coming: new Set(), spared: new Map() };
}

function isNewlyMarked({ event }: Change): boolean {
  return (
    disruptionReason(event.object as NodeClaim) === reason &&
    disruptionReason(event.previous as NodeClaim) === undefined
  );
}

function isSpared({ event }: Change): boolean {
  return (
    disruptionReason(event.object as NodeClaim) === undefined &&
    disruptionReason(event.previous as NodeClaim) === reason
  );
}

/** What goes and what comes costs; undefined when nothing comes, or at a price that may have moved. */
function pricesOf(facts: Facts, { going, coming }: Pass): { going: number; coming: number } | undefined {
  if (coming.size === 0) return undefined;
  const sum = { going: 0, coming: 0 };
  const found = new Set<string>();
  for (const { ledger, steadyPrices = [] } of facts.clouds) {
    for (const { claim, price, capacityType } of ledger.all()) {
      const uid = claim?.uid ?? '';
      const isSteady = steadyPrices.includes(capacityType);
      if (coming.has(uid)) {
        if (!isSteady) return undefined;
        sum.coming += price;
      } else if (going.has(uid)) {
        found.add(uid);
        sum.going += price * (isSteady ? 1 : mostRise);
      }
    }
  }
  return found.size === going.size ? sum : undefined;
}
