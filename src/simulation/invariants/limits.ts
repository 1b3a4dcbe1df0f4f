// SPDX-License-Identifier: Apache-2.0
// Provisioning stays within the limits of a pool. Replacements may exceed them while what they replace still stands.
import type { NodeClaim } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import { Quantity } from '../../kube/quantity.ts';
import { collections } from '../collections.ts';
import type { Facts, Invariant } from '../contract.ts';
import { disruptionReason, isGoing, isOurs, nameOf, poolLabel } from './reading.ts';

export function limitsKept(): Invariant {
  /** By NodeClaim, what it was weighed by. */
  const births = new Map<string, Birth>();
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
      if (event.type === 'ADDED') births.set(uid, { limit: limitOf(facts, pool), leaving: leavingOf(facts) });
      else if (event.type === 'DELETED') births.delete(uid);
      if (event.type !== 'MODIFIED' || !isOurs(change)) return;
      if (!isLaunched(claim) || isLaunched(event.previous as NodeClaim)) return;
      const { limit, leaving } = births.get(uid) ?? { limit: Number.POSITIVE_INFINITY };
      if (limit === Number.POSITIVE_INFINITY) return;
      report.checked();
      const sum = cpusOf(facts, pool, claim, leaving);
      if (sum > limit) {
        report.violated(`NodePool ${pool} has ${sum} CPUs with NodeClaim ${nameOf(claim)}, and may have ${limit}`);
      }
    },
  };
}

interface Birth {
  /** Of CPUs: one that is lowered later binds those that come later. */
  readonly limit: number;
  /** By uid, which others were to go: they may stay after all, when what replaces them does not come. */
  readonly leaving: ReadonlySet<string>;
}

function leavingOf(facts: Facts): ReadonlySet<string> {
  const claims = facts.list<NodeClaim>(collections.claims).filter(isLeaving);
  return new Set(claims.map(({ metadata }) => metadata.uid ?? ''));
}

function isLeaving(claim: NodeClaim): boolean {
  return isGoing(claim) || disruptionReason(claim) !== undefined;
}

function isLaunched({ status }: NodeClaim): boolean {
  return status?.capacity?.['cpu'] !== undefined;
}

/** What the pool had when this one was weighed: what goes is replaced, and a later one was weighed against this one. */
function cpusOf(facts: Facts, pool: string, claim: NodeClaim, leaving: ReadonlySet<string> | undefined): number {
  const born = claim.metadata.creationTimestamp ?? '';
  let sum = 0;
  for (const other of facts.list<NodeClaim>(collections.claims)) {
    const { labels, creationTimestamp, uid = '' } = other.metadata;
    if (labels?.[poolLabel] !== pool || (creationTimestamp ?? '') > born) continue;
    if (leaving?.has(uid) || isLeaving(other) || !isLaunched(other)) continue;
    sum += Quantity.parse(other.status?.capacity?.['cpu'] ?? 0).toNumber();
  }
  return sum;
}
