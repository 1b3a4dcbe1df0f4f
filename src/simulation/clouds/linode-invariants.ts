// SPDX-License-Identifier: Apache-2.0
// What is promised of a Linode account: one Linode for a NodeClaim at any time, nothing of others touched, no pool forgotten.
import type { NodeClaim } from '../../api/node-claim.ts';
import { collections } from '../collections.ts';
import type { Facts, Invariant, Report } from '../contract.ts';
import { isHeldMachine } from '../invariants/reading.ts';
import type { LinodeBooks } from './linode-books.ts';
import { noneShared } from './shared-invariants.ts';

const minute = 60_000;
/** How long a pool may be without its NodeClaim once nothing is broken any more. */
const collectedWithinMs = 10 * minute;

export function linodeInvariants(books: LinodeBooks): Invariant[] {
  return [
    noneShared(),
    neverDone('linode/strangers', 'stranger', books),
    neverDone('linode/no-surplus', 'surplus', books),
    poolsOwned(books),
  ];
}

/** What the books say was done, and never may be. */
function neverDone(name: string, kind: 'stranger' | 'surplus', books: LinodeBooks): Invariant {
  const told = new Set<string>();
  const tell = (report: Report): void => {
    for (const offence of books.offences) {
      if (offence.kind !== kind || told.has(offence.message)) continue;
      told.add(offence.message);
      report.violated(offence.message);
    }
  };
  return {
    name,
    onChange(_change, _facts, report) {
      if (books.offences.length > 0) tell(report);
    },
    onMinute(_facts, report) {
      if (books.alive().some(({ claim }) => claim)) report.checked();
      tell(report);
    },
  };
}

/** A node pool whose NodeClaim is gone is given back, also one that has no Linode; one whose Linode is held, once it no longer is. */
function poolsOwned(books: LinodeBooks): Invariant {
  const since = new Map<number, number>();
  const orphans = (facts: Facts): Map<number, string> => {
    const uids = new Set(facts.list<NodeClaim>(collections.claims).map(({ metadata }) => metadata.uid));
    for (const { claim, providerID } of books.alive()) if (isHeldMachine(facts, providerID)) uids.add(claim?.uid);
    return new Map(
      books
        .pools()
        .filter(({ claim }) => !uids.has(claim.uid))
        .map(({ id, claim }) => [id, claim.name]),
    );
  };
  return {
    name: 'linode/pools-owned',
    onMinute(facts, report) {
      const found = orphans(facts);
      for (const id of since.keys()) if (!found.has(id)) since.delete(id);
      for (const [id, name] of found) {
        report.checked();
        if (!since.has(id)) since.set(id, facts.now);
        const from = Math.max(since.get(id)!, facts.calmSince ?? facts.now);
        if (facts.now - from > collectedWithinMs) report.violated(`pool ${id} of NodeClaim ${name} was not given back`);
      }
    },
  };
}
