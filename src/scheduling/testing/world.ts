// SPDX-License-Identifier: Apache-2.0
// The cluster while the validator replays a result: it checks one pod on one spot at one moment, and places it.
import type { Pod, Taint, TopologySpreadConstraint } from '../objects.ts';
import type { Problem } from '../problem.ts';
import { type Amounts, add, excess } from './amounts.ts';
import { type Daemon, daemonsOf, merged, Pool } from './catalogue.ts';
import { type ExistingNode, existingNodes, isGone, Volumes } from './cluster.ts';
import {
  type HostPort,
  hostnameLabel,
  hostPorts,
  lookup,
  podKey,
  podRequests,
  portsConflict,
  possiblyMatches,
  tolerates,
} from './pod-rules.ts';
import { ClaimSpot, ExistingSpot, type Spot } from './spots.ts';
import { type Audience, allOf, type Place, spreadAudience, Tally, termAudience } from './topology.ts';
import { Values } from './values.ts';

/** A broken rule. */
export interface Violation {
  readonly rule: string;
  readonly detail: string;
  readonly pod?: string;
}

interface Rules {
  readonly spread: readonly { constraint: TopologySpreadConstraint; tally: Tally; audience: Audience }[];
  readonly affinity: readonly Tally[];
  /** All required affinity terms at once, or undefined without any. */
  readonly affinityAudience: Audience | undefined;
  readonly anti: readonly Tally[];
  readonly inverse: readonly Inverse[];
}

/** Where the owners of one required anti-affinity term are. */
interface Inverse {
  readonly audience: Audience;
  readonly topologyKey: string;
  readonly owners: Map<string, number>;
}

interface Load {
  pods: Pod[];
  requests: Map<string, bigint>;
  ports: HostPort[];
  /** CSI driver → attached claims; existing nodes only. */
  attached: Map<string, Set<string>>;
}

export class World {
  readonly problem: Problem;
  readonly pools: ReadonlyMap<string, Pool>;
  readonly daemons: readonly Daemon[];
  readonly existing: readonly ExistingNode[];
  readonly spots: ReadonlyMap<string, ExistingSpot>;
  readonly volumes: Volumes;
  readonly requests: ReadonlyMap<string, Amounts>;
  readonly #tallies = new Map<string, Tally>();
  readonly #inverses = new Map<string, Inverse>();
  readonly #rules = new Map<Pod, Rules>();
  readonly #loads = new Map<Place, Load>();
  readonly #templates: readonly ClaimSpot[];
  readonly #softTaintsAllowed: boolean;

  /** `moving`: the pods this pass places; they count nowhere until they are placed. */
  constructor(problem: Problem, moving: ReadonlySet<string>) {
    this.problem = problem;
    this.daemons = daemonsOf(problem);
    const usable = problem.nodePools.filter((p) => p.spec.replicas === undefined && !p.metadata.deletionTimestamp);
    this.pools = new Map(
      usable.map((p) => [p.metadata.name ?? '', new Pool(problem, problem.nodePools.indexOf(p), this.daemons)]),
    );
    this.#softTaintsAllowed = [...this.pools.values()].some((p) =>
      p.taints.some((t) => t.effect === 'PreferNoSchedule'),
    );
    this.existing = existingNodes(problem, this.daemons);
    this.spots = new Map(this.existing.map((n) => [n.name, new ExistingSpot(n)]));
    this.volumes = new Volumes(problem);
    this.requests = new Map(problem.pods.map((p) => [podKey(p), podRequests(p.spec)]));
    this.#templates = [...this.pools.values()].map(
      (pool) =>
        new ClaimSpot(`template ${pool.name}`, pool, pool.launches([], pool.types.keys(), allReservations(pool))),
    );
    for (const pod of problem.pods) if (moving.has(podKey(pod))) this.#rulesOf(pod);
    // Two passes: every rule must exist before anything is counted.
    const bound: { pod: Pod; spot: ExistingSpot }[] = [];
    for (const node of this.existing) {
      const spot = this.spots.get(node.name)!;
      for (const pod of node.bound) {
        if (moving.has(podKey(pod)) || isGone(pod)) continue;
        bound.push({ pod, spot });
        for (const term of pod.spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [])
          this.#inverse(pod, term);
      }
      const load = this.load(spot);
      for (const pod of node.bound) {
        if (moving.has(podKey(pod))) continue;
        for (const [driver, ids] of this.volumes.needsOf(pod).attachments) union(load.attached, driver, ids);
      }
    }
    for (const { pod, spot } of bound) {
      // A pod that is going counts for nobody any more, but it keeps others away until it is gone.
      if (!pod.metadata.deletionTimestamp) this.#count(pod, spot, true);
      else this.#countOwned(pod, spot);
    }
  }

  load(place: Place): Load {
    let load = this.#loads.get(place);
    if (!load) {
      load = { pods: [], requests: new Map(), ports: [], attached: new Map() };
      this.#loads.set(place, load);
    }
    return load;
  }

  #tally(
    topologyKey: string,
    audience: Audience,
    filter?: { key: string; counts: (p: Place) => 'yes' | 'no' | 'maybe' },
  ): Tally {
    const id = `${topologyKey}|${audience.key}|${filter?.key ?? ''}`;
    let tally = this.#tallies.get(id);
    if (!tally) {
      tally = new Tally(topologyKey, audience, filter?.counts);
      this.#tallies.set(id, tally);
    }
    return tally;
  }

  #inverse(pod: Pod, term: Parameters<typeof termAudience>[2]): Inverse {
    const audience = termAudience(this.problem, pod, term);
    const id = `${term.topologyKey}|${audience.key}`;
    let inverse = this.#inverses.get(id);
    if (!inverse) {
      inverse = { audience, topologyKey: term.topologyKey, owners: new Map() };
      this.#inverses.set(id, inverse);
    }
    return inverse;
  }

  #rulesOf(pod: Pod): Rules {
    let rules = this.#rules.get(pod);
    if (rules) return rules;
    const affinity = pod.spec.affinity;
    const required = affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
    const anti = affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
    const audiences = required.map((t) => termAudience(this.problem, pod, t));
    const all = audiences.length > 1 ? allOf(audiences) : audiences[0];
    rules = {
      spread: (pod.spec.topologySpreadConstraints ?? [])
        .filter((c) => c.whenUnsatisfiable === 'DoNotSchedule')
        .map((constraint) => {
          const audience = spreadAudience(pod, constraint);
          return {
            constraint,
            audience,
            tally: this.#tally(constraint.topologyKey, audience, this.#filter(pod, constraint)),
          };
        }),
      affinity: required.map((t) => this.#tally(t.topologyKey, all!)),
      affinityAudience: all,
      anti: anti.map((t) => this.#tally(t.topologyKey, termAudience(this.problem, pod, t))),
      inverse: anti.map((t) => this.#inverse(pod, t)),
    };
    this.#rules.set(pod, rules);
    return rules;
  }

  /** Which nodes a spread constraint counts: by node affinity (unless told to ignore it) and by taints (when told to honour them). */
  #filter(pod: Pod, constraint: TopologySpreadConstraint) {
    const honourAffinity = (constraint.nodeAffinityPolicy ?? 'Honor') === 'Honor';
    const honourTaints = constraint.nodeTaintsPolicy === 'Honor';
    const { nodeSelector, tolerations } = pod.spec;
    const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
    const counts = (place: Place): 'yes' | 'no' | 'maybe' => {
      const spot = place as Spot;
      if (honourTaints) {
        // A soft taint keeps nobody out, so it does not count here either.
        const keepsOut = (t: Taint) => t.effect !== 'PreferNoSchedule' && !tolerates(tolerations, t);
        if (spot.taints.some(keepsOut)) return 'no';
      }
      if (!honourAffinity || (!nodeSelector && !required)) return 'yes';
      const terms = spot.terms(pod.spec);
      if (spot.satisfies(terms)) return 'yes';
      return possiblyMatches(terms, (key) => spot.label(key)) ? 'maybe' : 'no';
    };
    return {
      key: JSON.stringify([honourAffinity ? [nodeSelector, required] : 0, honourTaints ? tolerations : 0]),
      counts,
    };
  }

  #count(pod: Pod, spot: Spot, settled: boolean): void {
    for (const tally of this.#tallies.values()) if (tally.audience.picks(pod)) tally.record(spot, settled);
    this.#countOwned(pod, spot);
  }

  #countOwned(pod: Pod, spot: Spot): void {
    for (const term of pod.spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []) {
      const { owners, topologyKey } = this.#inverse(pod, term);
      for (const d of spot.domains(topologyKey)) owners.set(d, (owners.get(d) ?? 0) + 1);
    }
  }

  /** Puts the pod there. `settled` keys of claims become known to everybody with this step. */
  place(pod: Pod, spot: Spot): void {
    const load = this.load(spot);
    load.pods.push(pod);
    load.requests = add(load.requests, this.requests.get(podKey(pod))!);
    load.ports.push(...hostPorts(pod.spec));
    if (spot.existing)
      for (const [driver, ids] of this.volumes.needsOf(pod).attachments) union(load.attached, driver, ids);
    this.#count(pod, spot, spot.existing !== undefined);
    // Its own rules look at the domain of its node: whoever comes later may count on it.
    for (const { constraint } of this.#rulesOf(pod).spread) this.settle(spot, constraint.topologyKey);
  }

  settle(spot: Spot, key: string): void {
    for (const tally of this.#tallies.values()) if (tally.topologyKey === key) tally.settle(spot);
  }

  /**
   * Everything that is wrong with this pod on this spot now. Room on new machines is checked once, at the end.
   * Where it is not known what a later rule will see (nodes whose domain is open, domains that no node is in yet), doubt
   * speaks for the placement; when `doubting`, against it: then an empty list means that the place is plain to see.
   * `former` is the node as it is, where `spot` is what it would have to become: the pods on it come along.
   */
  check(pod: Pod, spot: Spot, doubting = false, former?: Spot): Violation[] {
    const found: Violation[] = [];
    const name = podKey(pod);
    const report = (rule: string, detail: string) => found.push({ rule, pod: name, detail: `${detail} (${spot.id})` });
    for (const taint of spot.taints) {
      if (tolerates(pod.spec.tolerations, taint)) continue;
      if (taint.effect !== 'PreferNoSchedule')
        report('taint', `does not tolerate ${taint.key}=${taint.value ?? ''}:${taint.effect}`);
      else if (!this.#softTaintsAllowed)
        report('soft-taint', `${taint.key} is a PreferNoSchedule taint, and no pool has one`);
    }
    if (!spot.satisfies(spot.terms(pod.spec))) {
      const keys = [
        ...new Set(
          spot
            .terms(pod.spec)
            .flat()
            .map((e) => e.key),
        ),
      ];
      report(
        'node-affinity',
        keys
          .map((k) => `${k} may be ${spot.label(k).values.toString()}${spot.label(k).maybeAbsent ? ' or absent' : ''}`)
          .join('; '),
      );
    }
    this.#checkNodeLocal(pod, spot, report);
    this.#checkSpread(pod, spot, report, doubting, former);
    this.#checkAffinity(pod, spot, report, doubting);
    this.#checkAntiAffinity(pod, spot, report);
    return found;
  }

  #checkNodeLocal(pod: Pod, spot: Spot, report: (rule: string, detail: string) => void): void {
    const load = this.load(spot);
    const ports = hostPorts(pod.spec);
    for (const mine of ports)
      for (const taken of [...spot.ports, ...load.ports])
        if (portsConflict(mine, taken)) report('host-port', `port ${mine.port}/${mine.protocol} is taken`);
    const needs = this.volumes.needsOf(pod);
    for (const alternatives of needs.topology)
      if (!spot.satisfies(alternatives))
        report('volume-topology', `no alternative of ${JSON.stringify(alternatives)} surely holds`);
    if (!spot.existing) return;
    const over = excess(add(load.requests, this.requests.get(podKey(pod))!), spot.existing.room);
    if (over.length > 0) report('resources', over.join(', '));
    const limits = this.volumes.limitsOf(spot.existing.name);
    for (const [driver, ids] of needs.attachments) {
      const limit = limits.get(driver);
      const attached = new Set([...(load.attached.get(driver) ?? []), ...ids]);
      if (limit !== undefined && attached.size > limit)
        report('volume-limit', `${driver}: ${attached.size} > ${limit}`);
    }
  }

  /** The domains that count for the smallest number of a spread constraint, besides those of nodes. */
  #universe(pod: Pod, constraint: TopologySpreadConstraint, term: number, doubting: boolean): Set<string> {
    const key = constraint.topologyKey;
    const honourAffinity = (constraint.nodeAffinityPolicy ?? 'Honor') === 'Honor';
    const honourTaints = constraint.nodeTaintsPolicy === 'Honor';
    const hard = (taints: Spot['taints']) =>
      !honourTaints || taints.every((t) => tolerates(pod.spec.tolerations, t) || t.effect === 'PreferNoSchedule');
    const domains = new Set<string>();
    for (const template of this.#templates) {
      if (!doubting && !hard(template.taints)) continue;
      const wanted = template.terms(pod.spec)[term] ?? [];
      const allowed = merged(wanted).get(key) ?? Values.all;
      for (const launch of template.launches) {
        if (!doubting && honourAffinity && !possiblyMatches([wanted], lookup(launch.labels))) continue;
        for (const d of launch.labels.get(key)?.values.members() ?? []) if (allowed.has(d)) domains.add(d);
      }
      // Upstream counts what a pool or type names, whether or not it can be bought.
      if (doubting) for (const d of template.pool.namedValues(key)) if (allowed.has(d)) domains.add(d);
    }
    for (const spot of this.spots.values()) {
      const terms = spot.terms(pod.spec);
      if (!doubting) {
        // A machine on its way counts as launches do: pods that were given to it wait until it has joined.
        if (spot.existing.leaving || !hard(spot.taints)) continue;
        if (honourAffinity && !spot.satisfies([terms[term] ?? []])) continue;
      }
      const allowed = merged(terms[term] ?? []).get(key) ?? Values.all;
      for (const d of spot.domains(key)) if (allowed.has(d)) domains.add(d);
    }
    return domains;
  }

  #checkSpread(
    pod: Pod,
    spot: Spot,
    report: (rule: string, detail: string) => void,
    doubting: boolean,
    former: Spot | undefined,
  ): void {
    for (const { constraint, tally, audience } of this.#rulesOf(pod).spread) {
      const key = constraint.topologyKey;
      const domains = spot.domains(key);
      if (domains.length === 0 || spot.label(key).maybeAbsent) {
        if (key !== hostnameLabel || domains.length === 0) report('spread', `the node may lack ${key}`);
        continue;
      }
      const self = audience.picks(pod) ? 1 : 0;
      for (const domain of domains) {
        // Pods that wait on this very node become known with this step.
        const waiting = doubting
          ? (tally.open.get(domain) ?? 0) + (former && former.domains(key).length > 1 ? tally.on(former) : 0)
          : domains.length === 1
            ? this.#waiting(tally, spot)
            : 0;
        const here = (tally.certain.get(domain) ?? 0) + waiting;
        const least = key === hostnameLabel ? 0 : this.#least(pod, constraint, tally, domain, here, spot, doubting);
        if (here + self - least > constraint.maxSkew)
          report(
            'spread',
            `${key}=${domain}: ${here} + ${self} - ${least} > ${constraint.maxSkew} for ${audience.key}`,
          );
      }
    }
  }

  #waiting(tally: Tally, spot: Spot): number {
    return tally.isSettled(spot) ? 0 : tally.on(spot);
  }

  /** The smallest count of any eligible domain: at its most, where there is doubt, or at its least when doubting. */
  #least(
    pod: Pod,
    constraint: TopologySpreadConstraint,
    tally: Tally,
    domain: string,
    here: number,
    spot: Spot,
    doubting: boolean,
  ): number {
    const terms = Math.max(1, spot.terms(pod.spec).length);
    const found: number[] = [];
    for (let term = 0; term < terms; term++) {
      const eligible = this.#universe(pod, constraint, term, doubting);
      eligible.add(domain);
      let least = Number.POSITIVE_INFINITY;
      for (const d of eligible) {
        const open = doubting ? 0 : (tally.open.get(d) ?? 0) + this.#outside(tally, d);
        least = Math.min(least, d === domain ? here : (tally.certain.get(d) ?? 0) + open);
      }
      const tooFew = constraint.minDomains !== undefined && (doubting || eligible.size < constraint.minDomains);
      found.push(tooFew ? 0 : least);
    }
    return doubting ? Math.min(...found) : Math.max(...found);
  }

  /**
   * Pods in a domain on nodes that do not count. Where no node counts, Kubernetes does not look at the domain at all, so
   * whatever was assumed about it did no harm.
   */
  #outside(tally: Tally, domain: string): number {
    const pods = tally.outside.get(domain) ?? 0;
    if (pods === 0) return 0;
    const counts = (place: Place) => place.domains(tally.topologyKey).includes(domain) && tally.includes(place);
    const places = [...this.#loads.keys(), ...this.spots.values()];
    return places.some(counts) ? 0 : pods;
  }

  #checkAffinity(pod: Pod, spot: Spot, report: (rule: string, detail: string) => void, doubting: boolean): void {
    const { affinity, affinityAudience } = this.#rulesOf(pod);
    if (!affinityAudience) return;
    const nowhere = affinity.every((t) => t.total === 0);
    for (const tally of affinity) {
      const domains = spot.domains(tally.topologyKey);
      if (domains.length === 0) {
        report('affinity', `the node lacks ${tally.topologyKey}`);
        continue;
      }
      if (tally.on(spot) > 0) continue;
      const there = (d: string) => (tally.certain.get(d) ?? 0) + (doubting ? 0 : (tally.open.get(d) ?? 0));
      const alone = domains.filter((d) => there(d) === 0);
      if (alone.length === 0 || (nowhere && affinityAudience.picks(pod))) continue;
      report(
        'affinity',
        `nobody of ${affinityAudience.key} is surely in ${tally.topologyKey}=${alone.join('|')}, ${tally.total} elsewhere`,
      );
    }
  }

  #checkAntiAffinity(pod: Pod, spot: Spot, report: (rule: string, detail: string) => void): void {
    for (const tally of this.#rulesOf(pod).anti)
      for (const d of spot.domains(tally.topologyKey))
        if ((tally.possible.get(d) ?? 0) > 0)
          report(
            'anti-affinity',
            `${tally.possible.get(d)} of ${tally.audience.key} may be in ${tally.topologyKey}=${d}`,
          );
    for (const inverse of this.#inverses.values()) {
      if (!inverse.audience.picks(pod)) continue;
      for (const d of spot.domains(inverse.topologyKey))
        if ((inverse.owners.get(d) ?? 0) > 0)
          report(
            'inverse-anti-affinity',
            `${inverse.owners.get(d)} pods in ${inverse.topologyKey}=${d} do not want ${inverse.audience.key}`,
          );
    }
  }
}

function union(into: Map<string, Set<string>>, key: string, values: ReadonlySet<string>): void {
  into.set(key, new Set([...(into.get(key) ?? []), ...values]));
}

export function allReservations(pool: Pool): ReadonlySet<string> {
  const ids = new Set<string>();
  if (pool.reservationLabel)
    for (const type of pool.types.values())
      for (const o of type.offerings)
        for (const e of o.requirements) if (e.key === pool.reservationLabel) for (const v of e.values ?? []) ids.add(v);
  return ids;
}
