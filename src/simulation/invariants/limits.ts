// SPDX-License-Identifier: Apache-2.0
// Provisioning stays within the limits of a pool. Replacements may exceed them while what they replace still stands.
import type { NodeClaim } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import { Quantity } from '../../kube/quantity.ts';
import { collections } from '../collections.ts';
import type { Facts, Invariant } from '../contract.ts';
import { disruptionReason, isGoing, isOurs, minute, nameOf, poolLabel } from './reading.ts';

/** Where something was broken ever since limits were edited, or until a minute ago, nobody need have seen it */
const unseenMs = minute;
/** for so long: a watch that ended comes back once the API does. */
const longUnseenMs = 15 * minute;

export function limitsKept(): Invariant {
  /** By NodeClaim, what it was weighed by. */
  const births = new Map<string, Birth>();
  /** Limits that were edited meanwhile. */
  let edited: Edited[] = [];
  const limitsAt = (facts: Facts, pool: string): Limits => {
    const limits = limitsOf(facts.get<NodePool>(collections.pools, '', pool));
    if (facts.calmSince !== undefined && facts.now - facts.calmSince >= unseenMs) return limits;
    return edited
      .filter((one) => one.pool === pool && facts.now - one.at < longUnseenMs)
      .reduce((loosest, one) => looserOf(loosest, one.before), limits);
  };
  return {
    name: 'limits/kept',
    onMinute(facts) {
      edited = edited.filter(({ at }) => facts.now - at < longUnseenMs);
    },
    onChange(change, facts, report) {
      const { event } = change;
      if (change.collection === collections.pools && event.type === 'MODIFIED')
        edited.push({ pool: nameOf(event.object), at: change.at, before: limitsOf(event.previous as NodePool) });
      if (change.collection !== collections.claims) return;
      const claim = event.object as NodeClaim;
      const uid = claim.metadata.uid ?? '';
      const pool = claim.metadata.labels?.[poolLabel] ?? '';
      if (event.type === 'ADDED') births.set(uid, { limits: limitsAt(facts, pool), leaving: leavingOf(facts) });
      else if (event.type === 'DELETED') births.delete(uid);
      if (event.type !== 'MODIFIED' || !isOurs(change)) return;
      if (!isLaunched(claim) || isLaunched(event.previous as NodeClaim)) return;
      const { limits, leaving } = births.get(uid) ?? { limits: new Map<string, number>() };
      if (limits.size === 0) return;
      report.checked();
      const others = thoseOf(facts, pool, claim, leaving);
      for (const [resource, limit] of limits) {
        const sum = others.reduce((all, one) => all + takenBy(one, resource), 0);
        if (sum <= limit) continue;
        const had = `${sum} ${resource} with NodeClaim ${nameOf(claim)}`;
        report.violated(`NodePool ${pool} has ${had}, and may have ${limit}`);
      }
    },
  };
}

/** By resource. */
type Limits = ReadonlyMap<string, number>;

interface Edited {
  readonly pool: string;
  readonly at: number;
  readonly before: Limits;
}

function limitsOf(pool: NodePool | undefined): Limits {
  const limits = Object.entries(pool?.spec.limits ?? {});
  return new Map(limits.map(([resource, limit]) => [resource, Quantity.parse(limit).toNumber()]));
}

/** What both allow one or the other to have. */
function looserOf(a: Limits, b: Limits): Limits {
  const both = [...a].flatMap(([resource, limit]) => {
    const other = b.get(resource);
    return other === undefined ? [] : [[resource, Math.max(limit, other)] as const];
  });
  return new Map(both);
}

interface Birth {
  /** One that is lowered later binds those that come later. */
  readonly limits: Limits;
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
function thoseOf(
  facts: Facts,
  pool: string,
  claim: NodeClaim,
  leaving: ReadonlySet<string> | undefined,
): readonly NodeClaim[] {
  const born = claim.metadata.creationTimestamp ?? '';
  return facts.list<NodeClaim>(collections.claims).filter((other) => {
    const { labels, creationTimestamp, uid = '' } = other.metadata;
    if (labels?.[poolLabel] !== pool || (creationTimestamp ?? '') > born) return false;
    return !leaving?.has(uid) && !isLeaving(other) && isLaunched(other);
  });
}

/** What a machine takes of a limit; of `nodes` each takes one. */
function takenBy({ status }: NodeClaim, resource: string): number {
  return resource === 'nodes' ? 1 : Quantity.parse(status?.capacity?.[resource] ?? 0).toNumber();
}
