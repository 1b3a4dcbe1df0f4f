// SPDX-License-Identifier: Apache-2.0
// Nodes that are broken: since when, and how long their cloud has patience.
import type { NodeClaim } from '../../api/node-claim.ts';
import type { Node } from '../../kube/kinds.ts';
import { parseTime } from '../../kube/time.ts';
import type { Facts } from '../contract.ts';

/** Since when a node is not ready; undefined when it is. */
export function unreadySince({ status }: Node): number | undefined {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (!ready || ready.status === 'True' || !ready.lastTransitionTime) return undefined;
  return parseTime(ready.lastTransitionTime);
}

/** How long the machine of a NodeClaim may be broken; undefined when it is gone, or where nobody says. */
export function repairsAfter(facts: Facts, { status }: NodeClaim): number | undefined {
  const id = status?.providerID;
  return facts.clouds.find(({ ledger }) =>
    ledger.alive().some(({ providerID, deletingAt }) => providerID === id && deletingAt === undefined),
  )?.repairsAfterMs;
}
