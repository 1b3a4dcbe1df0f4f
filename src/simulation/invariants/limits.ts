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
      const launched = claim.status?.capacity?.['cpu'] !== undefined;
      const before = (event.previous as NodeClaim).status?.capacity?.['cpu'] !== undefined;
      if (!launched || before) return;
      const limit = limitAtBirth.get(uid) ?? Number.POSITIVE_INFINITY;
      if (limit === Number.POSITIVE_INFINITY) return;
      report.checked();
      let sum = 0;
      for (const other of facts.list<NodeClaim>(collections.claims)) {
        if (other.metadata.labels?.[poolLabel] !== pool || isGoing(other) || disruptionReason(other) !== undefined)
          continue;
        // A later one was weighed against this one, not the other way round.
        if ((other.metadata.creationTimestamp ?? '') > (claim.metadata.creationTimestamp ?? '')) continue;
        const cpu = other.status?.capacity?.['cpu'];
        if (cpu !== undefined) sum += Quantity.parse(cpu).toNumber();
      }
      if (sum > limit) {
        report.violated(`NodePool ${pool} has ${sum} CPUs with NodeClaim ${nameOf(claim)}, and may have ${limit}`);
      }
    },
  };
}
