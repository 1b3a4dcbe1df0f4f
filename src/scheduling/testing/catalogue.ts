// SPDX-License-Identifier: Apache-2.0
// The validator's model of what can be bought: for a NodePool and a claim's requirements, every node that a launch could
// bring about, with its labels, room and price.
import type { Pod, PodSpec, Taint } from '../objects.ts';
import type { InstanceTypeSpec, NewNodeClaim, OfferingSpec, Problem } from '../problem.ts';
import { type Amounts, add, amounts, atLeastZero, subtract } from './amounts.ts';
import {
  capacityTypeLabel,
  type HostPort,
  hostnameLabel,
  hostPorts,
  instanceTypeLabel,
  nodePoolLabel,
  nodeTerms,
  podKey,
  podRequests,
  tolerates,
  zoneLabel,
} from './pod-rules.ts';
import { type Expression, exactly, type LabelState, Values } from './values.ts';

const commonWellKnown = [
  nodePoolLabel,
  zoneLabel,
  'topology.kubernetes.io/region',
  instanceTypeLabel,
  'kubernetes.io/arch',
  'kubernetes.io/os',
  capacityTypeLabel,
  'node.kubernetes.io/windows-build',
];

const commonAliases: Readonly<Record<string, string>> = {
  'failure-domain.beta.kubernetes.io/zone': zoneLabel,
  'failure-domain.beta.kubernetes.io/region': 'topology.kubernetes.io/region',
  'beta.kubernetes.io/arch': 'kubernetes.io/arch',
  'beta.kubernetes.io/os': 'kubernetes.io/os',
  'beta.kubernetes.io/instance-type': instanceTypeLabel,
};

/** One node that a claim could turn into. */
export interface Launch {
  readonly type: InstanceTypeSpec;
  readonly labels: ReadonlyMap<string, LabelState>;
  readonly allocatable: Amounts;
  readonly price: number;
  /** The reservation it would use, for reserved capacity. */
  readonly reservation: string | undefined;
}

interface OpenLaunch extends Launch {
  readonly typeSays: ReadonlyMap<string, Values>;
  readonly offeringSays: ReadonlyMap<string, Values>;
}

/** A daemonset as it would come to a new node. */
export interface Daemon {
  readonly name: string;
  readonly spec: PodSpec;
  readonly requests: Amounts;
  readonly ports: readonly HostPort[];
}

/** Daemonsets of a problem: the newest pod of each if there is one, else its template with limits standing in for requests. */
export function daemonsOf(problem: Problem): Daemon[] {
  return (problem.daemonSets ?? []).map((ds) => {
    const template = ds.spec.template.spec;
    const owned = problem.pods
      .filter((p) => (p.metadata.ownerReferences ?? []).some((o) => o.controller && o.uid === ds.metadata.uid))
      .filter((p) => (p.metadata.namespace ?? 'default') === (ds.metadata.namespace ?? 'default'));
    const newest = owned.reduce<Pod | undefined>(
      (best, p) => (!best || (p.metadata.creationTimestamp ?? '') > (best.metadata.creationTimestamp ?? '') ? p : best),
      undefined,
    );
    let spec: PodSpec = newest?.spec ?? defaulted(template);
    const required = template.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
    if (required) {
      const nodeAffinity = {
        ...spec.affinity?.nodeAffinity,
        requiredDuringSchedulingIgnoredDuringExecution: required,
      };
      spec = { ...spec, affinity: { ...spec.affinity, nodeAffinity } };
    }
    return { name: podKey({ metadata: ds.metadata, spec }), spec, requests: podRequests(spec), ports: hostPorts(spec) };
  });
}

function defaulted(spec: PodSpec): PodSpec {
  const fill = (list: PodSpec['containers']) =>
    (list ?? []).map((c) => ({
      ...c,
      resources: { ...c.resources, requests: { ...c.resources?.limits, ...c.resources?.requests } },
    }));
  return { ...spec, containers: fill(spec.containers), initContainers: fill(spec.initContainers) };
}

/** A NodePool and what its cloud sells it. */
export class Pool {
  readonly name: string;
  readonly weight: number;
  readonly taints: readonly Taint[];
  readonly limits: Amounts | undefined;
  readonly types: ReadonlyMap<string, InstanceTypeSpec>;
  readonly wellKnown: ReadonlySet<string>;
  readonly reservationLabel: string | undefined;
  readonly minValues: ReadonlyMap<string, number>;
  /** What the template says of each label, before any pod. */
  readonly template: ReadonlyMap<string, Values>;
  readonly #aliases: Readonly<Record<string, string>>;
  readonly #valueAliases: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Keys whose template says NotIn only: the node may lack the label altogether. */
  readonly #loose = new Set<string>();
  readonly #daemons: readonly Daemon[];
  readonly #daemonsByType = new Map<string, readonly Daemon[]>();
  readonly #open = new Map<string, readonly OpenLaunch[]>();
  readonly #narrowed = new Map<string, Map<string, Launch[]>>();

  constructor(problem: Problem, index: number, daemons: readonly Daemon[]) {
    const pool = problem.nodePools[index]!;
    const template = pool.spec.template;
    this.name = pool.metadata.name ?? '';
    const rules = problem.labels?.[this.name];
    this.weight = pool.spec.weight ?? 0;
    this.taints = template.spec?.taints ?? [];
    this.limits = pool.spec.limits ? amounts(pool.spec.limits) : undefined;
    this.types = new Map((problem.instanceTypes[this.name] ?? []).map((t) => [t.name, t]));
    this.wellKnown = new Set([...commonWellKnown, ...(rules?.wellKnown ?? [])]);
    this.reservationLabel = rules?.reservationId;
    this.#aliases = { ...commonAliases, ...rules?.normalized };
    this.#valueAliases = rules?.normalizedValues ?? {};
    this.#daemons = daemons;
    const said = new Map<string, Values>();
    const add = (key: string, values: Values) => said.set(key, (said.get(key) ?? Values.all).and(values));
    const minValues = new Map<string, number>();
    for (const raw of template.spec?.requirements ?? []) {
      const e = this.normal(raw);
      if (e.operator === 'NotIn' && !said.has(e.key)) this.#loose.add(e.key);
      else if (e.operator !== 'NotIn') this.#loose.delete(e.key);
      add(e.key, Values.of(e));
      if (e.minValues !== undefined) minValues.set(e.key, Math.max(e.minValues, minValues.get(e.key) ?? 0));
    }
    this.minValues = minValues;
    const ref = template.spec?.nodeClassRef;
    const labels: Record<string, string> = { ...template.metadata?.labels, [nodePoolLabel]: this.name };
    if (ref?.kind) labels[`${ref.group ?? ''}/${ref.kind.toLowerCase()}`] = ref.name ?? '';
    labels['karpenter.sh/registered'] = 'true';
    labels['karpenter.sh/initialized'] = 'true';
    for (const [key, value] of Object.entries(labels)) {
      const e = this.normal({ key, operator: 'In', values: [value] });
      add(e.key, Values.of(e));
      this.#loose.delete(e.key);
    }
    this.template = said;
  }

  /** The expression in this cloud's own spelling. */
  normal(e: Expression): Expression {
    const key = this.#aliases[e.key] ?? e.key;
    const spelling = this.#valueAliases[key];
    const values = spelling ? (e.values ?? []).map((v) => spelling[v] ?? v) : e.values;
    return key === e.key && values === e.values ? e : { ...e, key, values };
  }

  terms(spec: PodSpec): Expression[][] {
    return nodeTerms(spec).map((term) => term.map((e) => this.normal(e)));
  }

  /** The daemonsets that come to a node of this type. */
  daemonsFor(type: InstanceTypeSpec): readonly Daemon[] {
    let found = this.#daemonsByType.get(type.name);
    if (!found) {
      found = this.#daemons.filter((d) => this.#attracts(type, d));
      this.#daemonsByType.set(type.name, found);
    }
    return found;
  }

  #attracts(type: InstanceTypeSpec, daemon: Daemon): boolean {
    const hard = this.taints.filter((t) => t.effect !== 'PreferNoSchedule');
    if (!hard.every((t) => tolerates(daemon.spec.tolerations, t))) return false;
    const typeSays = merged(type.requirements.map((e) => this.normal(e)));
    return this.terms(daemon.spec).some((term) =>
      [...merged(term)].every(([key, wanted]) => {
        const negative = (v: Values) =>
          v.isEmpty() || (v.complement && v.listed.size > 0 && v.gte === undefined && v.lte === undefined);
        const compatible = (said: Values) => said.meets(wanted) || (negative(said) && negative(wanted));
        const said = this.template.get(key);
        if (said ? !compatible(said) : !this.wellKnown.has(key) && !negative(wanted)) return false;
        const typeSaid = typeSays.get(key);
        return !typeSaid || compatible(typeSaid);
      }),
    );
  }

  /** Every value of a label that the template or a type names. */
  namedValues(key: string): Set<string> {
    const all = new Set(this.template.get(key)?.members());
    for (const type of this.types.values())
      for (const e of type.requirements) if (this.normal(e).key === key) for (const v of e.values ?? []) all.add(v);
    return all;
  }

  /** Whether a claim's own list of requirements stays within what the pool allows. */
  permits(requirements: readonly Expression[]): string[] {
    const found: string[] = [];
    const claim = merged(requirements.map((e) => this.normal(e)));
    for (const [key, allowed] of this.template) {
      const asked = claim.get(key);
      if (asked && !asked.isWithin(allowed))
        found.push(`${key}: ${asked.toString()} is not within the pool's ${allowed.toString()}`);
    }
    return found;
  }

  /** Every node that a launch under these requirements could bring about, of these types. */
  launches(requirements: readonly Expression[], typeNames: Iterable<string>, held: ReadonlySet<string>): Launch[] {
    // Claims come in few kinds: what one narrowed, the next one of its kind need not.
    const kind = JSON.stringify([requirements, [...held]]);
    let narrowed = this.#narrowed.get(kind);
    if (!narrowed) {
      narrowed = new Map();
      this.#narrowed.set(kind, narrowed);
    }
    let claim: Map<string, Values> | undefined;
    const found: Launch[] = [];
    for (const name of typeNames) {
      let ofType = narrowed.get(name);
      if (!ofType) {
        claim ??= merged(requirements.map((e) => this.normal(e)));
        ofType = [];
        for (const open of this.#openLaunches(name)) {
          if (open.reservation !== undefined && !held.has(open.reservation)) continue;
          const launch = this.#narrow(open, claim);
          if (launch) ofType.push(launch);
        }
        narrowed.set(name, ofType);
      }
      found.push(...ofType);
    }
    return found;
  }

  /** The launches of a type that the template allows, before any claim narrows them. */
  #openLaunches(name: string): readonly OpenLaunch[] {
    let found = this.#open.get(name);
    if (found) return found;
    const type = this.types.get(name);
    found = (type?.offerings ?? [])
      .filter((o) => o.available !== false)
      .map((o) => this.#launch(type!, o))
      .filter((l) => l !== undefined);
    this.#open.set(name, found);
    return found;
  }

  #launch(type: InstanceTypeSpec, offering: OfferingSpec): OpenLaunch | undefined {
    const typeSays = merged(type.requirements.map((e) => this.normal(e)));
    const offeringSays = merged(offering.requirements.map((e) => this.normal(e)));
    const labels = new Map<string, LabelState>();
    for (const key of new Set([...this.template.keys(), ...typeSays.keys(), ...offeringSays.keys()])) {
      const state = this.#label(key, typeSays.get(key), offeringSays.get(key), undefined);
      if (!state) return undefined;
      if (!state.values.isEmpty()) labels.set(key, state);
    }
    // The name of a node to come is nobody's to ask for.
    labels.set(hostnameLabel, { values: Values.all, maybeAbsent: false });
    if (!labels.has(instanceTypeLabel)) labels.set(instanceTypeLabel, exactly(type.name));
    const reserved = labels.get(capacityTypeLabel)?.values.members()?.[0] === 'reserved';
    const id = this.reservationLabel ? offeringSays.get(this.reservationLabel)?.members()?.[0] : undefined;
    return {
      type,
      labels,
      allocatable: allocatable(type, offering),
      price: offering.price,
      reservation: reserved ? (id ?? '') : undefined,
      typeSays,
      offeringSays,
    };
  }

  /** The launch under a claim's requirements, or undefined when they exclude it. Shares what they do not change. */
  #narrow(open: OpenLaunch, claim: ReadonlyMap<string, Values>): Launch | undefined {
    let labels = open.labels;
    for (const [key, wanted] of claim) {
      const before = open.labels.get(key);
      if (before && !before.maybeAbsent && before.values.isWithin(wanted) && !wanted.isEmpty()) continue;
      if (key === hostnameLabel) continue;
      const state = this.#label(key, open.typeSays.get(key), open.offeringSays.get(key), wanted);
      if (!state) return undefined;
      if (labels === open.labels) labels = new Map(open.labels);
      if (state.values.isEmpty()) (labels as Map<string, LabelState>).delete(key);
      else (labels as Map<string, LabelState>).set(key, state);
    }
    return labels === open.labels ? open : { ...open, labels };
  }

  /** The label on the node, or undefined when the launch contradicts itself. */
  #label(
    key: string,
    type: Values | undefined,
    offering: Values | undefined,
    claim: Values | undefined,
  ): LabelState | undefined {
    const template = this.template.get(key);
    const sources = [template, type, offering].filter((v) => v !== undefined);
    // A label that only the claim speaks of is nobody's to set: a pod's wish does not make a label.
    if (sources.length === 0) return { values: Values.none, maybeAbsent: true };
    const absent = (v: Values) => v.isEmpty();
    if (sources.some(absent)) {
      // Said to be absent: fine unless somebody insists on a value.
      const insists = [...sources, claim].some((v) => v && !absent(v) && !v.complement);
      return insists ? undefined : { values: Values.none, maybeAbsent: true };
    }
    const values = [...sources, claim].reduce<Values>((all, v) => (v ? all.and(v) : all), Values.all);
    if (values.isEmpty()) {
      const negativeOnly = claim && absent(claim) && sources.every((v) => v.complement) && this.#loose.has(key);
      return negativeOnly ? { values: Values.none, maybeAbsent: true } : undefined;
    }
    const maybeAbsent = !type && !offering && this.#loose.has(key) && (!claim || claim.complement);
    return { values, maybeAbsent };
  }
}

/** What each key must satisfy when all the expressions hold. */
export function merged(expressions: readonly Expression[]): Map<string, Values> {
  const all = new Map<string, Values>();
  for (const e of expressions) all.set(e.key, (all.get(e.key) ?? Values.all).and(Values.of(e)));
  return all;
}

/** What a node of this type and offering has for pods. */
export function allocatable(type: InstanceTypeSpec, offering?: OfferingSpec): Amounts {
  const capacity = new Map([...amounts(type.capacity), ...amounts(offering?.capacityOverride)]);
  const overhead = new Map([
    ...add(
      amounts(type.overhead?.kubeReserved),
      amounts(type.overhead?.systemReserved),
      amounts(type.overhead?.evictionThreshold),
    ),
    ...amounts(offering?.overheadOverride),
  ]);
  const left = subtract(capacity, overhead);
  let hugePages = 0n;
  for (const [name, value] of capacity) if (name.startsWith('hugepages-')) hugePages += value;
  if (hugePages > 0n) {
    const memory = (left.get('memory') ?? 0n) - hugePages;
    left.set('memory', memory < 0n ? 0n : memory);
  }
  return left;
}

/** The largest capacity of a type over its offerings: what a limit must reckon with. */
export function capacityOf(type: InstanceTypeSpec): Amounts {
  return amounts(type.capacity);
}

/** The reservations a claim holds, by its own account. */
export function heldReservations(claim: NewNodeClaim, pool: Pool): ReadonlySet<string> {
  if (claim.reservations) return new Set(claim.reservations);
  const label = pool.reservationLabel;
  if (!label) return new Set();
  const said = merged(claim.requirements.map((e) => pool.normal(e))).get(label);
  return new Set(said?.members() ?? []);
}

/** Existing room minus what is expected of daemonsets that are not there yet. */
export function roomFor(available: Amounts, expected: readonly Daemon[], present: Amounts): Amounts {
  const due = atLeastZero(subtract(add(...expected.map((d) => d.requests)), present));
  return subtract(available, due);
}
