// SPDX-License-Identifier: Apache-2.0
// Promises about machines that several clouds share.
import type { NodeClaim } from '../../api/node-claim.ts';
import { collections } from '../collections.ts';
import type { Invariant } from '../contract.ts';

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
