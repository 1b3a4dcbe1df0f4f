// SPDX-License-Identifier: Apache-2.0
// When nothing changes and nothing is broken, the autoscaler comes to rest: no write, nothing half done, nothing that
// grows, and a bill that can be explained.
import type { NodeClaim } from '../../api/node-claim.ts';
import type { Node, Pod } from '../../kube/kinds.ts';
import { Quantity } from '../../kube/quantity.ts';
import { collections } from '../collections.ts';
import type { Change, Facts, Invariant } from '../contract.ts';
import type { Fleet } from '../process/fleet.ts';
import { disruptedTaint, hasEnded, isGoing, isHeld, isOurs, minute, nameOf, poolLabel } from './reading.ts';

/** The end of a rest in which nothing may be written any more. */
const silentMs = 5 * minute;

/** How many writes are kept before those that are too old are looked for. */
const keptChanges = 1000;

export function quietInvariants(parts: { readonly fleet: Fleet }): Invariant[] {
  return [comesToRest(), nothingHalfDone(), costAtRest(), nothingGrows(parts)];
}

/** At the end of a rest, the autoscaler has not written for a while. */
function comesToRest(): Invariant {
  /** What it wrote lately, in order. */
  const ours: Change[] = [];
  let lastOthers = 0;
  return {
    name: 'rest/no-writes',
    onChange(change) {
      if (change.collection === collections.events || change.collection === collections.leases) return;
      if (!isOurs(change)) lastOthers = change.at;
      else {
        ours.push(change);
        // Only the latest can be asked about; now and then the others go.
        if (ours.length > keptChanges)
          ours.splice(
            0,
            ours.findIndex(({ at }) => change.at - at < silentMs),
          );
      }
    },
    onQuiet(facts, report) {
      // Jobs that end and pods that take minutes to go are changes too: what follows from them is no unrest.
      if (facts.now - lastOthers < silentMs + 2 * minute || agesOut(facts)) return;
      report.checked();
      const last = ours.findLast((change) => facts.now - change.at < silentMs && !onlyGrowsOld(change));
      if (last) {
        const { event, by, request } = last;
        report.violated(`${by} still writes: ${request} (${event.object.kind} ${nameOf(event.object)})`);
      }
    },
  };
}

/** A node is `Consolidatable` only a while after its pods changed: to say so follows from the change, however late. */
function onlyGrowsOld({ collection, event }: Change): boolean {
  if (collection !== collections.claims || event.type !== 'MODIFIED') return false;
  const [now, before] = [event.object, event.previous].map((claim) => otherConditions(claim as NodeClaim));
  return now === before;
}

function otherConditions({ metadata, spec, status }: NodeClaim): string {
  const conditions = status?.conditions?.filter(({ type }) => type !== 'Consolidatable');
  const { deletionTimestamp, labels, annotations, finalizers } = metadata;
  return JSON.stringify([deletionTimestamp, labels, annotations, finalizers, spec, { ...status, conditions }]);
}

/** Nodes that reach their age are replaced at any time. */
function agesOut(facts: Facts): boolean {
  return facts.list<NodeClaim>(collections.claims).some(({ spec }) => (spec.expireAfter ?? 'Never') !== 'Never');
}

/** NodeClaims have Nodes, Nodes have NodeClaims, and nothing is on its way out that nobody holds. */
function nothingHalfDone(): Invariant {
  return {
    name: 'rest/nothing-half-done',
    onQuiet(facts, report) {
      report.checked();
      const ages = agesOut(facts);
      const nodes = facts.list<Node>(collections.nodes);
      const byId = new Map(nodes.map((node) => [node.spec?.providerID ?? '', node]));
      const claims = facts.list<NodeClaim>(collections.claims);
      for (const claim of claims) {
        const node = byId.get(claim.status?.providerID ?? '-');
        if (isGoing(claim) && !ages && !(node && isHeld(facts, node)))
          report.violated(`NodeClaim ${nameOf(claim)} is still going`);
        else if (!node && !ages && !isYoung(facts, claim.metadata.creationTimestamp))
          report.violated(`NodeClaim ${nameOf(claim)} has no Node`);
      }
      for (const node of nodes) {
        if (!node.metadata.labels?.[poolLabel]) continue;
        const claim = claims.find(({ status }) => status?.providerID === node.spec?.providerID);
        if (!claim) {
          if (!(isGoing(node) && isHeld(facts, node))) report.violated(`Node ${nameOf(node)} has no NodeClaim`);
        } else if (isAbandoned(facts, node, claim)) {
          report.violated(`Node ${nameOf(node)} is marked as disrupted, and nobody takes it away`);
        }
      }
    },
  };
}

/** Rolling a drifted fleet within its budgets takes longer than a rest: what began a moment ago is not half done. */
const commandMs = 10 * minute;

function isYoung({ now }: Facts, since: string | null | undefined): boolean {
  return typeof since === 'string' && now - Date.parse(since) < commandMs;
}

/** Whether a machine carries the mark of a command that is not carried out. */
function isAbandoned(facts: Facts, node: Node, claim: NodeClaim): boolean {
  return isMarked(node) && !isGoing(claim) && !isGoing(node) && !isYoung(facts, markedAt(claim));
}

/** When a command began to disrupt a NodeClaim. */
function markedAt({ status }: NodeClaim): string | undefined {
  return status?.conditions?.find(({ type }) => type === 'DisruptionReason')?.lastTransitionTime;
}

function isMarked({ spec }: Node): boolean {
  return spec?.taints?.some(({ key }) => key === disruptedTaint) ?? false;
}

/** What machines cost at rest, against the cheapest price of what pods ask for. */
const mostOverLeast = 4;
const alwaysAllowed = 2;

function costAtRest(): Invariant {
  return {
    name: 'rest/cost',
    onQuiet(facts, report) {
      report.checked();
      let cost = 0;
      for (const { ledger } of facts.clouds) {
        for (const { price, claim } of ledger.alive()) if (claim) cost += price;
      }
      let [cpu, memory] = [0, 0];
      for (const pod of facts.list<Pod>(collections.pods)) {
        if (hasEnded(pod)) continue;
        for (const { resources } of pod.spec.containers) {
          cpu += Quantity.parse(resources?.requests?.['cpu'] ?? 0).toNumber();
          memory += Quantity.parse(resources?.requests?.['memory'] ?? 0).toNumber();
        }
      }
      const unit = Math.min(...facts.clouds.map((cloud) => (cloud.cheapest({ cpu: 4, memory: 2 ** 30 }) ?? 1) / 4));
      const least = Math.max(cpu, memory / 2 ** 32) * unit;
      if (cost > least * mostOverLeast + alwaysAllowed) {
        report.violated(
          `machines cost ${cost.toFixed(2)} $/h at rest, and the pods on them ${least.toFixed(2)} $/h at least`,
        );
      }
    },
  };
}

/** Timers of a process, events and NodeClaims stay in proportion to the cluster, however long it lives. */
function nothingGrows({ fleet }: { readonly fleet: Fleet }): Invariant {
  return {
    name: 'rest/nothing-grows',
    onQuiet(facts, report) {
      report.checked();
      const size = facts.list(collections.pods).length + facts.list(collections.nodes).length;
      for (const process of fleet.alive) {
        const { pendingTimers } = process.clock;
        if (pendingTimers > 200 + 10 * size) {
          report.violated(`${process.name} has ${pendingTimers} timers for ${size} pods and nodes`);
        }
      }
    },
  };
}
