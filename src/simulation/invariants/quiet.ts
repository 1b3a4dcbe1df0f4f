// SPDX-License-Identifier: Apache-2.0
// When nothing changes and nothing is broken, the autoscaler comes to rest: no write, nothing half done, nothing that
// grows, and a bill that can be explained.
import type { NodeClaim } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import type { Node, Pod } from '../../kube/kinds.ts';
import { Quantity } from '../../kube/quantity.ts';
import { collections } from '../collections.ts';
import type { Change, Facts, Invariant } from '../contract.ts';
import type { Fleet } from '../process/fleet.ts';
import { sizesOf } from '../process/sizes.ts';
import {
  disruptedTaint,
  disruptionReason,
  hasEnded,
  isGoing,
  isHeld,
  isOurs,
  minute,
  nameOf,
  poolLabel,
} from './reading.ts';

/** The end of a rest in which nothing may be written any more. */
const silentMs = 5 * minute;

/** What follows from a change begins within so long: what little changed is looked at five minutes later at the latest, and tried for a while. */
const answeredMs = 6 * minute;

/**
 * Several machines are bought in place of others once those have stood for long enough to pay for that, an hour at most: to grow so old is a
 * change of the world. Younger ones than these came during the rest itself, and were not to be bought to be exchanged again.
 */
const comesOfAgeMs = [35 * minute, 60 * minute + answeredMs] as const;

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
      if (!isOurs(change) || cameOfAge(change)) lastOthers = change.at;
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
      if (facts.now - lastOthers < silentMs + answeredMs || agesOut(facts) || hasRipened(facts)) return;
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

/** Whether a machine is to go that was bought before the rest, and was too young for it until now. */
function cameOfAge({ at, collection, event }: Change): boolean {
  if (collection !== collections.claims || event.type !== 'MODIFIED') return false;
  const [claim, before] = [event.object as NodeClaim, event.previous as NodeClaim | undefined];
  if (disruptionReason(claim) !== 'Underutilized' || (before && disruptionReason(before))) return false;
  const age = at - Date.parse(claim.metadata.creationTimestamp ?? '');
  return age >= comesOfAgeMs[0] && age <= comesOfAgeMs[1];
}

/** A node that may be consolidated only now, up to half an hour after its pods changed, is news as well. */
function hasRipened(facts: Facts): boolean {
  return facts.list<NodeClaim>(collections.claims).some(({ status }) => {
    const ripe = status?.conditions?.find(({ type }) => type === 'Consolidatable');
    return ripe?.status === 'True' && facts.now - Date.parse(ripe.lastTransitionTime) < silentMs + answeredMs;
  });
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
        if (isGoing(claim)) {
          if (ages || isYoung(facts, claim.metadata.deletionTimestamp) || (node && isHeld(facts, node))) continue;
          report.violated(`NodeClaim ${nameOf(claim)} is still going`);
        } else if (!node && !ages && !isYoung(facts, claim.metadata.creationTimestamp))
          report.violated(`NodeClaim ${nameOf(claim)} has no Node`);
      }
      for (const node of nodes) {
        if (!node.metadata.labels?.[poolLabel]) continue;
        const claim = claims.find(({ status }) => status?.providerID === node.spec?.providerID);
        if (!claim) {
          // Where a pool is shared, a Node that came this moment is somebody's the next.
          const isNew = isYoung(facts, node.metadata.creationTimestamp, arrivalMs);
          const isKnownWhy = isNew || (isGoing(node) && isHeld(facts, node));
          if (!isKnownWhy) report.violated(`Node ${nameOf(node)} has no NodeClaim`);
        } else if (isAbandoned(facts, node, claim)) {
          report.violated(`Node ${nameOf(node)} is marked as disrupted, and nobody takes it away`);
        }
      }
    },
  };
}

/** Rolling a drifted fleet within its budgets takes longer than a rest: what began a moment ago is not half done. */
const commandMs = 10 * minute;

/** Until a Node is known to be that of its NodeClaim. */
const arrivalMs = 2 * minute;

function isYoung({ now }: Facts, since: string | null | undefined, forMs = commandMs): boolean {
  return typeof since === 'string' && now - Date.parse(since) < forMs;
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

function claimsOfStaticPools(facts: Facts): ReadonlySet<string> {
  const pools = facts.list<NodePool>(collections.pools).filter(({ spec }) => spec.replicas !== undefined);
  const names = new Set(pools.map(nameOf));
  const claims = facts.list<NodeClaim>(collections.claims);
  return new Set(
    claims
      .filter(({ metadata }) => names.has(metadata.labels?.[poolLabel] ?? ''))
      .map(({ metadata }) => metadata.uid ?? ''),
  );
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
      // What users want whatever pods there are is not weighed against what pods ask for.
      const fixed = claimsOfStaticPools(facts);
      for (const { ledger } of facts.clouds) {
        for (const { price, claim } of ledger.alive()) if (claim && !fixed.has(claim.uid)) cost += price;
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

/** What a cluster of this many pods and nodes explains, and what is there anyway. */
const most = {
  timers: { least: 100, each: 1 },
  series: { least: 12_000, each: 20 },
  events: { least: 20, each: 1 },
} as const satisfies Readonly<Record<string, { readonly least: number; readonly each: number }>>;

/** At rest nothing waits, and nobody is busy with one thing for so long. */
const mostQueued = 20;
const longestBusySeconds = 15 * 60;

/**
 * What a process keeps stays in proportion to the cluster, however long it lives: timers, metric series, keys that wait for a
 * worker and the machines it knows of; and at rest it does not tell people more and more events.
 */
function nothingGrows({ fleet }: { readonly fleet: Fleet }): Invariant {
  /** When it told events lately. */
  let told: number[] = [];
  let lastOthers = 0;
  let rests = 0;
  return {
    name: 'rest/nothing-grows',
    onChange(change) {
      const { collection, at } = change;
      if (collection === collections.leases) return;
      if (!isOurs(change)) lastOthers = at;
      if (collection !== collections.events || !isOurs(change)) return;
      told.push(at);
      if (told.length > keptChanges) told = told.filter((then) => at - then < silentMs);
    },
    async onQuiet(facts, report) {
      report.checked();
      const nodes = facts.list(collections.nodes).length;
      const size = facts.list(collections.pods).length + nodes;
      const isTooMany = (what: keyof typeof most, count: number): boolean =>
        count > most[what].least + most[what].each * size;
      // To count series costs a tenth of a second: once in the six hours that a world usually has.
      const countsSeries = ++rests % 3 === 0;
      const events = told.filter((at) => facts.now - at < silentMs).length;
      // What follows from a change is told, however much it is.
      const isAtRest = facts.now - lastOthers >= silentMs + answeredMs && !agesOut(facts);
      if (isAtRest && isTooMany('events', events))
        report.violated(`${events} events were told in the last ${silentMs / minute} minutes of a rest`);
      for (const process of fleet.alive) {
        const { timers, series, queued, busySeconds, machines } = await sizesOf(process, countsSeries);
        const of = `for ${size} pods and nodes`;
        if (isTooMany('timers', timers)) report.violated(`${process.name} has ${timers} timers ${of}`);
        if (isTooMany('series', series)) report.violated(`${process.name} has ${series} metric series ${of}`);
        if (queued > mostQueued) report.violated(`${queued} keys wait for a worker of ${process.name}`);
        if (busySeconds > longestBusySeconds)
          report.violated(`a worker of ${process.name} has been busy for ${Math.round(busySeconds)} s`);
        const claims = facts.list(collections.claims).length;
        if (machines > nodes + claims)
          report.violated(`${process.name} knows ${machines} machines of ${nodes} Nodes and ${claims} NodeClaims`);
      }
    },
  };
}
