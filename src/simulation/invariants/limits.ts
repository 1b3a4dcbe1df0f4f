// SPDX-License-Identifier: Apache-2.0
// Provisioning stays within the limits of a pool. Replacements may exceed them while what they replace still stands.
import type { NodeClaim } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import { Quantity } from '../../kube/quantity.ts';
import { collections } from '../collections.ts';
import type { Facts, Invariant } from '../contract.ts';
import { disruptionReason, isGoing, isOurs, nameOf, poolLabel } from './reading.ts';

export function limitsKept(): Invariant {
  /** The CPU limit when each NodeClaim was made: a limit lowered later binds those that come later. */
  const limitAtBirth = new Map<string, number>();
  const limitOf = (facts: Facts, name: string): number => {
    const limit = facts.get<NodePool>(collections.pools, '', name)?.spec.limits?.['cpu'];
    return limit === undefined ? Number.POSITIVE_INFINITY : Quantity.parse(limit).toNumber();
  };
  return {
    name: 'limits/kept',
    onChange(change, facts, report) {
      if (change.collection !== collections.claims) return;
      const { event } = change;
      const claim = event.object as NodeClaim;
      const uid = claim.metadata.uid ?? '';
      const pool = claim.metadata.labels?.[poolLabel] ?? '';
      if (event.type === 'ADDED') limitAtBirth.set(uid, limitOf(facts, pool));
      else if (event.type === 'DELETED') limitAtBirth.delete(uid);
      if (event.type !== 'MODIFIED' || !isOurs(change)) return;
      if (!isLaunched(claim) || isLaunched(event.previous as NodeClaim)) return;
      const limit = limitAtBirth.get(uid) ?? Number.POSITIVE_INFINITY;
      if (limit === Number.POSITIVE_INFINITY) return;
      report.checked();
      const sum = cpusOf(facts, pool, claim);
      if (sum > limit) {
        report.violated(`NodePool ${pool} has ${sum} CPUs with NodeClaim ${nameOf(claim)}, and may have ${limit}`);
      }
    },
  };
}

function isLaunched({ status }: NodeClaim): boolean {
  return status?.capacity?.['cpu'] !== undefined;
}

/** What the pool had when this one was weighed: what goes is replaced, and a later one was weighed against this one. */
function cpusOf(facts: Facts, pool: string, claim: NodeClaim): number {
  const born = claim.metadata.creationTimestamp ?? '';
  let sum = 0;
  for (const other of facts.list<NodeClaim>(collections.claims)) {
    const { labels, creationTimestamp } = other.metadata;
    if (labels?.[poolLabel] !== pool || (creationTimestamp ?? '') > born) continue;
    if (isGoing(other) || disruptionReason(other) !== undefined || !isLaunched(other)) continue;
    sum += Quantity.parse(other.status?.capacity?.['cpu'] ?? 0).toNumber();
  }
  return sum;
}
