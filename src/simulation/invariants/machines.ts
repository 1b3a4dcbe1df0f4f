// SPDX-License-Identifier: Apache-2.0
// Machines and NodeClaims belong together: none is forgotten, none is bought twice.
import type { NodeClaim } from '../../api/node-claim.ts';
import { collections } from '../collections.ts';
import type { Facts, Invariant, LedgerInstance } from '../contract.ts';

const minute = 60_000;
/** How long a machine may be without its NodeClaim once nothing is broken any more. */
const collectedWithinMs = 10 * minute;

export function machineInvariants(): Invariant[] {
  return [owned(), single()];
}

function uids(facts: Facts): Set<string> {
  return new Set(facts.list<NodeClaim>(collections.claims).map(({ metadata }) => metadata.uid ?? ''));
}

/** Every machine has a NodeClaim, or is given back within a bound. */
function owned(): Invariant {
  /** Since when each machine is without one. */
  const since = new Map<string, number>();
  const look = (facts: Facts): LedgerInstance[] => {
    const claims = uids(facts);
    const orphans: LedgerInstance[] = [];
    const seen = new Set<string>();
    for (const { ledger } of facts.clouds) {
      for (const instance of ledger.alive()) {
        if (!instance.claim || claims.has(instance.claim.uid)) continue;
        orphans.push(instance);
        seen.add(instance.providerID);
        if (!since.has(instance.providerID)) since.set(instance.providerID, facts.now);
      }
    }
    for (const id of since.keys()) if (!seen.has(id)) since.delete(id);
    return orphans;
  };
  return {
    name: 'machines/owned',
    onMinute(facts, report) {
      report.checked();
      const calm = facts.calmSince;
      for (const { providerID, claim } of look(facts)) {
        const from = Math.max(since.get(providerID) ?? facts.now, calm ?? facts.now);
        if (facts.now - from > collectedWithinMs) {
          report.violated(`machine ${providerID} of NodeClaim ${claim?.name} was not given back`);
        }
      }
    },
  };
}

/** A NodeClaim never has two machines. */
function single(): Invariant {
  return {
    name: 'machines/single',
    onMinute(facts, report) {
      report.checked();
      const byClaim = new Map<string, string>();
      for (const { ledger } of facts.clouds) {
        for (const { claim, providerID, deletingAt } of ledger.alive()) {
          if (!claim || deletingAt !== undefined) continue;
          const other = byClaim.get(claim.uid);
          if (other) report.violated(`NodeClaim ${claim.name} has two machines: ${other} and ${providerID}`);
          byClaim.set(claim.uid, providerID);
        }
      }
    },
  };
}
