// SPDX-License-Identifier: Apache-2.0
// Promises about machines that several clouds share.
import type { NodeClaim } from '../../api/node-claim.ts';
import { collections } from '../collections.ts';
import type { Facts, Invariant, Ledger } from '../contract.ts';

/** No two NodeClaims have the same machine. */
export function noneShared(): Invariant {
  return {
    name: 'machines/not-shared',
    onChange({ collection, event }, facts, report) {
      if (collection !== collections.claims || event.type !== 'MODIFIED') return;
      const { metadata, status } = event.object as NodeClaim;
      const id = status?.providerID;
      if (!id || (event.previous as NodeClaim).status?.providerID === id) return;
      report.checked();
      const other = facts
        .list<NodeClaim>(collections.claims)
        .find((claim) => claim.status?.providerID === id && claim.metadata.uid !== metadata.uid);
      if (other) report.violated(`NodeClaims ${metadata.name} and ${other.metadata.name} have the same machine ${id}`);
    },
  };
}

/** Where no cloud puts a machine in the place of another: each machine is the one that its NodeClaim names. */
export function namedByClaims(ledger: Ledger): Invariant {
  return {
    name: 'machines/named',
    onMinute(facts, report) {
      const claims = claimsByUid(facts);
      for (const { claim, providerID, deletingAt } of ledger.alive()) {
        const named = claims.get(claim?.uid ?? '')?.status?.providerID;
        if (named === undefined || deletingAt !== undefined) continue;
        report.checked();
        if (named !== providerID) report.violated(`NodeClaim ${claim?.name} names ${named}, and has ${providerID}`);
      }
    },
  };
}

/** A machine is not given back while its NodeClaim is meant to stay, whether it names the machine yet or not. */
export function keptForClaims(ledger: Ledger): Invariant {
  return {
    name: 'machines/kept',
    onMinute(facts, report) {
      const claims = claimsByUid(facts);
      for (const { claim, providerID, deletingAt, goneBecause } of ledger.all()) {
        const owner = claims.get(claim?.uid ?? '');
        if (!owner || owner.metadata.deletionTimestamp !== undefined) continue;
        report.checked();
        if (deletingAt !== undefined && goneBecause === undefined)
          report.violated(`machine ${providerID} was given back, and NodeClaim ${claim?.name} is meant to stay`);
      }
    },
  };
}

function claimsByUid(facts: Facts): Map<string, NodeClaim> {
  return new Map(facts.list<NodeClaim>(collections.claims).map((claim) => [claim.metadata.uid ?? '', claim]));
}
