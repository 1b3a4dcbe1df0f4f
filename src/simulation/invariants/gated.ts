// SPDX-License-Identifier: Apache-2.0
// What is promised about features behind gates, where a world has them.

import type { NodeClaim } from '../../api/node-claim.ts';
import { nodeOverlayKind } from '../../api/node-overlay.ts';
import type { NodePool } from '../../api/node-pool.ts';
import type { Node } from '../../kube/kinds.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { FeatureGates } from '../../runtime/settings.ts';
import { collections } from '../collections.ts';
import type { Facts, Invariant } from '../contract.ts';
import { disruptionReason, isGoing, isOurs, minute, nameOf, nodeOfClaim, poolLabel } from './reading.ts';
import { repairsAfter, unreadySince } from './repairs.ts';

export function gatedInvariants({ gates }: { readonly gates: FeatureGates }): Invariant[] {
  return [
    ...(gates.NodeRepair ? [repaired()] : []),
    ...(gates.StaticCapacity ? [asManyAsWanted(), neverTooMany()] : []),
    ...(gates.NodeOverlay ? [overlaysJudged()] : []),
  ];
}

/** A repair that was put off because too many nodes were broken is looked at again after five minutes. */
const repairedWithinMs = 10 * minute;
const mostUnhealthy = 0.2;

/** A node that stays broken for longer than its cloud has patience for is replaced, unless a fifth of its pool is broken. */
function repaired(): Invariant {
  return {
    name: 'nodes/repaired',
    onMinute(facts, report) {
      if (facts.calmSince === undefined) return;
      for (const claim of facts.list<NodeClaim>(collections.claims)) {
        const node = nodeOfClaim(facts, claim);
        const since = node && unreadySince(node);
        const patienceMs = repairsAfter(facts, claim);
        if (!node || since === undefined || patienceMs === undefined || isGoing(claim)) continue;
        report.checked();
        const due = Math.max(since + patienceMs, facts.calmSince);
        if (facts.now - due > repairedWithinMs && !isOneOfMany(facts, claim))
          report.violated(
            `node ${nameOf(node)} has been broken for ${Math.round((facts.now - since) / minute)} minutes`,
          );
      }
    },
  };
}

function isOneOfMany(facts: Facts, { metadata }: NodeClaim): boolean {
  const pool = metadata.labels?.[poolLabel];
  const nodes = facts.list<Node>(collections.nodes).filter((node) => node.metadata.labels?.[poolLabel] === pool);
  return nodes.filter((node) => unreadySince(node) !== undefined).length > Math.ceil(nodes.length * mostUnhealthy);
}

function isStatic({ spec, metadata }: NodePool): boolean {
  return spec.replicas !== undefined && metadata.deletionTimestamp === undefined;
}

/** How many NodeClaims a static pool is to have. */
function wantedBy({ spec }: NodePool): number {
  return Math.min(spec.replicas ?? 0, Number(spec.limits?.['nodes'] ?? Number.POSITIVE_INFINITY));
}

function claimsOf(facts: Facts, pool: string): NodeClaim[] {
  return facts.list<NodeClaim>(collections.claims).filter(({ metadata }) => metadata.labels?.[poolLabel] === pool);
}

/** At rest a static pool has as many NodeClaims as it is told to have. One that is being replaced is not at rest. */
function asManyAsWanted(): Invariant {
  return {
    name: 'static/replicas',
    onQuiet(facts, report) {
      for (const pool of facts.list<NodePool>(collections.pools).filter(isStatic)) {
        const claims = claimsOf(facts, nameOf(pool));
        if (claims.some((claim) => isGoing(claim) || disruptionReason(claim) !== undefined)) continue;
        report.checked();
        if (claims.length !== wantedBy(pool))
          report.violated(`NodePool ${nameOf(pool)} has ${claims.length} NodeClaims, and is to have ${wantedBy(pool)}`);
      }
    },
  };
}

/** What was wanted until a moment ago may still be bought: watches tell late, and requests take their time. */
const unseenMs = 2 * minute;

/** No NodeClaim is made for a static pool that has enough without it; one that is to be replaced does not count. */
function neverTooMany(): Invariant {
  const past = new Map<string, { readonly until: number; readonly replicas: number }[]>();
  return {
    name: 'static/never-too-many',
    onChange(change, facts, report) {
      const { collection, event } = change;
      if (collection === collections.pools && event.type === 'MODIFIED') {
        const { metadata, spec } = event.previous as NodePool;
        const { name = '' } = metadata;
        if (spec.replicas !== undefined)
          past.set(name, [
            ...(past.get(name) ?? []).slice(-5),
            { until: facts.now, replicas: wantedBy(event.previous as NodePool) },
          ]);
      }
      if (collection !== collections.claims || event.type !== 'ADDED' || !isOurs(change)) return;
      const name = event.object.metadata.labels?.[poolLabel] ?? '';
      const pool = facts.get<NodePool>(collections.pools, '', name);
      if (!pool || !isStatic(pool)) return;
      report.checked();
      const lately = (past.get(name) ?? []).filter(
        ({ until }) => until > (facts.calmSince ?? 0) - unseenMs || facts.now - until < unseenMs,
      );
      const most = Math.max(wantedBy(pool), ...lately.map(({ replicas }) => replicas));
      const standing = claimsOf(facts, name).filter(
        (claim) => !isGoing(claim) && disruptionReason(claim) === undefined,
      );
      if (standing.length > most) {
        const names = standing.map(nameOf).join(', ');
        report.violated(`NodePool ${name} is to have ${most} NodeClaims, and was given ${standing.length}: ${names}`);
      }
    },
  };
}

/** At rest every NodeOverlay has been told whether it is in force. */
function overlaysJudged(): Invariant {
  return {
    name: 'overlays/judged',
    onQuiet(facts, report) {
      for (const overlay of facts.list<Judged>(collections.overlays)) {
        report.checked();
        const ready = overlay.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
        if (ready !== 'True' && ready !== 'False')
          report.violated(`${nodeOverlayKind.kind} ${nameOf(overlay)} was not looked at`);
      }
    },
  };
}

interface Judged extends KubeObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}
