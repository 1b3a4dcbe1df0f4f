// SPDX-License-Identifier: Apache-2.0
// A problem compiled: pools, nodes, pod classes and topology as interned data, ready to be solved.
import type { LabelSet } from '../api/labels.ts';
import { finish, type Steps } from '../base/steps.ts';
import { Axis } from './axis.ts';
import { type Batch, readPods } from './batch.ts';
import type { Constraints } from './constraints.ts';
import { type Daemon, daemonWishes, overheadOf, readDaemons } from './daemons.ts';
import type { Taint } from './objects.ts';
import { absent, PairTable } from './pair-table.ts';
import { hostnameKey, type PodClass, PodClasses } from './pod-class.ts';
import type { ObjectError, Problem } from './problem.ts';
import { RequirementSpace } from './requirement-space.ts';
import { type Requirements, requirementsOfLabels } from './requirements.ts';
import { type Joined, join, leavingNodes, type StateNode, stateNodes } from './state-nodes.ts';
import { preferNoSchedule } from './taints.ts';
import { Dialects, readTemplates, type Template } from './templates.ts';
import { type Group, Groups, Namespaces, type NodeFilter, passesFilter, type TopologyKey } from './topology.ts';

/** An existing node that may take pods. Its slot is its index in the order of preference. */
export interface Target {
  readonly node: StateNode;
  readonly slot: number;
  /** Units left. */
  readonly room: Float64Array;
  readonly kind: NodeKind;
}

/** Existing nodes that no constraint but room and neighbours can tell apart. */
export interface NodeKind {
  readonly id: number;
  readonly labels: Requirements;
  readonly taints: readonly Taint[];
  readonly dialect: number;
  readonly closedToMoves: boolean;
  /** By topology key: its domain, -1 when it lacks the label. */
  readonly domains: Int32Array;
  readonly targets: Target[];
}

/** The groups that count pods of a label class. */
export interface Counted {
  readonly zoned: readonly Group[];
  readonly hosted: readonly Group[];
}

export interface World {
  readonly problem: Problem;
  readonly batch: Batch;
  readonly axis: Axis;
  /** By shape: units of each resource. */
  readonly requests: readonly Float64Array[];
  readonly space: RequirementSpace;
  readonly dialects: Dialects;
  readonly templates: readonly Template[];
  readonly kinds: readonly NodeKind[];
  /** By kind and what is looked for (host rules, ports and requests): the position before which no node has room, where that is known. */
  readonly refused?: readonly ReadonlyMap<number, number>[];
  readonly targets: readonly Target[];
  readonly keys: readonly TopologyKey[];
  /** By topology key and template: 1 for each domain that nodes of the template can have. */
  readonly provided: readonly (readonly Uint8Array[])[];
  readonly groups: Groups;
  readonly classes: PodClasses;
  /** By pod; undefined for pods whose node selection is forbidden everywhere. */
  readonly classOf: readonly PodClass[];
  readonly counted: readonly Counted[];
  /** By pod: the node that an earlier pass planned it for, if that is still there. */
  readonly promises: ReadonlyMap<number, Target>;
  readonly errors: ObjectError[];
}

const noPromises: ReadonlyMap<number, Target> = new Map();

function promisesOf({ state }: Problem, { keys }: Batch, targets: readonly Target[]): ReadonlyMap<number, Target> {
  const promised = new Map(Object.entries(state?.promised ?? {}));
  if (promised.size === 0) return noPromises;
  const byName = new Map(targets.map((target) => [target.node.name, target]));
  const promises = new Map<number, Target>();
  for (const [pod, key] of keys.entries()) {
    const target = byName.get(promised.get(key) ?? '');
    if (target) promises.set(pod, target);
  }
  return promises;
}

/** Remembers what packing changes, and returns what puts it back: several packings can be tried on one world. */
export function remember(world: World): () => void {
  const rooms = world.targets.map(({ room }) => room.slice());
  // Where no pod counts yet there is nothing to remember.
  const counting = world.groups.all.filter(({ total }) => total > 0);
  const groups = counting.map((group) => ({
    group,
    counts: group.counts.slice(),
    hosts: new Map(group.hosts),
    total: group.total,
  }));
  return () => {
    for (const [i, { room }] of world.targets.entries()) room.set(rooms[i]!);
    for (const group of world.groups.all) {
      group.counts.fill(0);
      group.doubtful.fill(0);
      group.hosts.clear();
      group.total = 0;
      group.open.clear();
    }
    for (const { group, counts, hosts, total } of groups) {
      group.counts.set(counts);
      for (const [slot, count] of hosts) group.hosts.set(slot, count);
      group.total = total;
    }
  };
}

export interface CompileOptions {
  /** Candidates are targets like others, without their movable pods: whoever asks puts these back. */
  readonly candidatesStay?: boolean;
}

/** Compiles a problem. */
export function compile(problem: Problem, options: CompileOptions = {}): World {
  return finish(compileInSteps(problem, options));
}

/** The same, with pauses: of a large cluster each step takes a good part of a second. */
export function* compileInSteps(problem: Problem, options: CompileOptions = {}): Steps<World> {
  const machines = join(problem);
  const moving = leavingNodes(problem, machines);
  yield;
  const batch = yield* readPods(problem, moving);
  yield;
  const compiler = new Compiler(problem, machines, moving, batch, options);
  yield;
  return compiler.compile();
}

class Compiler {
  readonly #problem: Problem;
  readonly #errors: ObjectError[] = [];
  readonly #space = new RequirementSpace();
  readonly #groups = new Groups();
  readonly #dialects: Dialects;
  readonly #batch: Batch;
  readonly #nodes: StateNode[];
  readonly #daemons: Daemon[];
  readonly #axis: Axis;
  readonly #templates: Template[];
  readonly #keys: TopologyKey[] = [];
  readonly #keyByName = new Map<string, TopologyKey | undefined>();
  /** By key: the domains each template can provide. */
  readonly #provided: Uint8Array[][] = [];

  constructor(
    problem: Problem,
    machines: readonly Joined[],
    moving: ReturnType<typeof leavingNodes>,
    batch: Batch,
    { candidatesStay = false }: CompileOptions,
  ) {
    this.#problem = problem;
    const leaving = candidatesStay ? new Map([...moving].filter(([, why]) => why === 'deleted')) : moving;
    this.#batch = batch;
    this.#axis = new Axis(this.#batch.shapes);
    this.#dialects = new Dialects(problem);
    this.#daemons = readDaemons(problem, this.#errors);
    this.#nodes = stateNodes(problem, machines, this.#batch, leaving, this.#errors);
    this.#templates = readTemplates({
      problem,
      space: this.#space,
      axis: this.#axis,
      dialects: this.#dialects,
      daemons: this.#daemons,
      errors: this.#errors,
    });
    // Nodes of pools that are gone still speak their cloud's language.
    for (const { nodePool } of this.#nodes) this.#dialects.of(nodePool);
  }

  compile(): World {
    const { pairs, ofPod } = this.#distinctClasses();
    this.#readKeys();
    const { kinds, targets } = this.#readTargets();
    const preferNoScheduleExists =
      this.#templates.some(({ taints }) => taints.some(({ effect }) => effect === preferNoSchedule)) ||
      kinds.some(({ taints }) => taints.some(({ effect }) => effect === preferNoSchedule));
    const repelling: (readonly Group[] | undefined)[] = [];
    const classes = new PodClasses({
      space: this.#space,
      dialects: this.#dialects.all,
      groups: this.#groups,
      namespaces: new Namespaces(
        this.#problem.namespaces,
        new Set(this.#batch.labels.map(({ namespace }) => namespace)),
      ),
      labelClasses: this.#batch.labels,
      preferNoScheduleExists,
      keyOf: (name) => this.#keyByName.get(name),
      universe: (key, filter) => this.#universe(key, filter),
      repelling: (labelClass) => (repelling[labelClass] ??= this.#groups.repelling(this.#batch.labels[labelClass]!)),
    });
    // Owners first: they are rules for everybody they select.
    for (const { constraints, labelClass } of pairs) classes.ownerGroups(constraints, labelClass);
    const owners = this.#batch.bound
      .filter(({ constraints }) => constraints >= 0)
      .map((bound) => ({ bound, groups: this.#ownersOf(classes, bound) }));
    const made = pairs.map(({ constraints, labelClass }) => classes.make(constraints, labelClass));
    const counted = this.#batch.labels.map((labelClass): Counted => {
      const groups = this.#groups.counting(labelClass);
      return { zoned: groups.filter(({ key }) => key), hosted: groups.filter(({ key }) => !key) };
    });
    this.#countBound(counted, owners, targets);
    this.#subtractUsage();
    return {
      problem: this.#problem,
      batch: this.#batch,
      axis: this.#axis,
      requests: this.#batch.shapes.map(({ amounts }) => this.#axis.request(amounts)),
      space: this.#space,
      dialects: this.#dialects,
      templates: this.#templates,
      kinds,
      targets,
      keys: this.#keys,
      provided: this.#provided,
      groups: this.#groups,
      classes,
      classOf: Array.from(ofPod, (i) => made[i]!),
      counted,
      promises: promisesOf(this.#problem, this.#batch, targets),
      errors: this.#errors,
    };
  }

  #distinctClasses(): { pairs: { constraints: Constraints; labelClass: number }[]; ofPod: Int32Array } {
    const batch = this.#batch;
    const ids = new PairTable();
    const pairs: { constraints: Constraints; labelClass: number }[] = [];
    const ofPod = new Int32Array(batch.pods.length);
    for (let i = 0; i < ofPod.length; i++) {
      const a = batch.constraintsOf[i]!;
      const b = batch.labelsOf[i]!;
      let id = ids.get(a, b);
      if (id === absent) {
        id = pairs.length;
        ids.add(a, b, id);
        pairs.push({ constraints: batch.constraints[a]!.value, labelClass: b });
      }
      ofPod[i] = id;
    }
    return { pairs, ofPod };
  }

  /** Every topology key that a constraint names, with the values it can have. */
  #readKeys(): void {
    const names = new Set<string>();
    for (const { value, problem } of this.#batch.constraints) {
      if (problem !== undefined) continue;
      for (const { topologyKey } of value.spread) names.add(topologyKey);
      for (const { topologyKey } of [...value.affinity, ...value.antiAffinity]) names.add(topologyKey);
      for (const { podAffinityTerm } of [...value.preferredAffinity, ...value.preferredAntiAffinity])
        names.add(podAffinityTerm.topologyKey);
    }
    names.delete(hostnameKey);
    for (const name of [...names].sort()) {
      const provided = this.#templates.map((template) => domainsProvided(template, name, this.#space));
      const domains = new Set(provided.flatMap((values) => [...values]));
      for (const { labels } of this.#nodes) if (labels[name] !== undefined) domains.add(labels[name]);
      const sorted = [...domains].sort();
      const indexOf = new Map(sorted.map((domain, i) => [domain, i]));
      const key: TopologyKey = { index: this.#keys.length, key: name, domains: sorted, indexOf };
      this.#keys.push(key);
      this.#keyByName.set(name, key);
      this.#provided.push(provided.map((values) => Uint8Array.from(sorted, (domain) => (values.has(domain) ? 1 : 0))));
    }
  }

  #universe(key: TopologyKey, filter: NodeFilter): Uint8Array {
    const universe = new Uint8Array(key.domains.length);
    for (const [i, provided] of this.#provided[key.index]!.entries()) {
      const template = this.#templates[i]!;
      const requirements = this.#space.get(template.requirements);
      const { dialect, taints, mayBeUndefined } = template;
      if (!passesFilter(filter, requirements, taints, dialect.index, mayBeUndefined)) continue;
      for (let d = 0; d < universe.length; d++) universe[d]! |= provided[d]!;
    }
    for (const node of this.#nodes) {
      const domain = key.indexOf.get(node.labels[key.key] ?? '\0');
      if (domain === undefined || universe[domain] === 1) continue;
      if (passesFilter(filter, this.#labelsOf(node), node.taints, this.#dialects.of(node.nodePool).index))
        universe[domain] = 1;
    }
    return universe;
  }

  readonly #labelRequirements = new Map<StateNode, Requirements>();

  #labelsOf(node: StateNode): Requirements {
    let found = this.#labelRequirements.get(node);
    if (!found) {
      found = knownLabels(node.labels, this.#dialects.of(node.nodePool).labels);
      this.#labelRequirements.set(node, found);
    }
    return found;
  }

  #ownersOf(classes: PodClasses, bound: Batch['bound'][number]): Group[] {
    const { value, problem } = this.#batch.constraints[bound.constraints]!;
    return problem === undefined ? classes.ownerGroups(value, bound.labels) : [];
  }

  /** Nodes by kind: only keys that somebody asks about tell kinds apart. */
  #readTargets(): { kinds: NodeKind[]; targets: Target[] } {
    const asked = this.#askedKeys();
    const kinds = new Map<string, NodeKind>();
    const targets: Target[] = [];
    for (const node of this.#nodes) {
      if (node.leaving) continue;
      const dialect = this.#dialects.of(node.nodePool);
      const parts: string[] = [String(dialect.index), node.closedToMoves ? 'closed' : '', textOf(node.taints)];
      const labels: Record<string, string> = {};
      for (const key of asked) {
        const value = node.labels[key];
        if (value === undefined) continue;
        labels[key] = value;
        parts.push(`${key}=${value}`);
      }
      const signature = parts.join('\n');
      let kind = kinds.get(signature);
      if (!kind) {
        kind = {
          id: kinds.size,
          labels: requirementsOfLabels(labels, dialect.labels),
          taints: node.taints,
          dialect: dialect.index,
          closedToMoves: node.closedToMoves,
          domains: Int32Array.from(this.#keys, (key) => key.indexOf.get(node.labels[key.key] ?? '\0') ?? -1),
          targets: [],
        };
        kinds.set(signature, kind);
      }
      this.#subtractDaemons(node, kind);
      if (dead(node.available)) continue;
      const target: Target = { node, slot: targets.length, room: this.#axis.available(node.available), kind };
      kind.targets.push(target);
      targets.push(target);
    }
    return { kinds: [...kinds.values()], targets };
  }

  #askedKeys(): string[] {
    const asked = new Set<string>(this.#keys.map(({ key }) => key));
    const add = (terms: readonly { readonly matchExpressions?: readonly { readonly key: string }[] }[]): void => {
      for (const { matchExpressions } of terms) for (const { key } of matchExpressions ?? []) asked.add(key);
    };
    for (const { value, problem } of this.#batch.constraints) {
      if (problem !== undefined) continue;
      for (const key in value.nodeSelector) asked.add(key);
      add(value.allNodeTerms);
      add(value.preferredNodeTerms.map(({ preference }) => preference));
      for (const place of value.volumes) for (const { key } of place) asked.add(key);
    }
    for (const { nodeSelector, terms } of this.#daemons) {
      for (const key in nodeSelector) asked.add(key);
      add(terms);
    }
    // A node may carry the new name of a label that was asked for by its old one.
    for (const { labels } of this.#dialects.all)
      for (const [from, to] of labels.normalized) {
        if (asked.has(from)) asked.add(to);
        else if (asked.has(to)) asked.add(from);
      }
    return [...asked].sort();
  }

  /** By kind: what the daemons take that belong on its nodes. */
  readonly #daemonsOf = new Map<NodeKind, ReadonlyMap<string, bigint>>();

  #daemonsOn(kind: NodeKind): ReadonlyMap<string, bigint> {
    let expected = this.#daemonsOf.get(kind);
    if (!expected) {
      const { labels } = this.#dialects.all[kind.dialect]!;
      const place = { taints: kind.taints, requirements: kind.labels, mayBeUndefined: new Set<string>(), labels };
      expected = overheadOf(this.#daemons.filter((daemon) => daemonWishes(daemon, place).length > 0));
      this.#daemonsOf.set(kind, expected);
    }
    return expected;
  }

  /** Daemons that belong on the node and are not there yet keep their place. */
  #subtractDaemons(node: StateNode, kind: NodeKind): void {
    if (this.#daemons.length === 0) return;
    for (const [name, nano] of this.#daemonsOn(kind)) {
      const missing = nano - (node.daemonRequests.get(name) ?? 0n);
      if (missing > 0n) node.available.set(name, (node.available.get(name) ?? 0n) - missing);
    }
  }

  /** Pods that run now, counted where they are. */
  #countBound(
    counted: readonly Counted[],
    owners: readonly { bound: Batch['bound'][number]; groups: readonly Group[] }[],
    targets: readonly Target[],
  ): void {
    const nodes = new Map(this.#nodes.map((node) => [node.name, node]));
    const slots = new Map(targets.map(({ node, slot }) => [node.name, slot]));
    const count = (group: Group, node: StateNode): void => {
      if (!passesFilter(group.filter, this.#labelsOf(node), node.taints, this.#dialects.of(node.nodePool).index))
        return;
      if (!group.key) {
        const slot = slots.get(node.name);
        group.total++;
        if (slot !== undefined) group.hosts.set(slot, (group.hosts.get(slot) ?? 0) + 1);
        return;
      }
      const domain = group.key.indexOf.get(node.labels[group.key.key] ?? '\0');
      if (domain === undefined) return;
      group.counts[domain]!++;
      group.total++;
    };
    for (const { pod, node: name, labels } of this.#batch.bound) {
      const node = nodes.get(name);
      if (!node || pod.metadata.deletionTimestamp) continue;
      for (const group of counted[labels]!.zoned) count(group, node);
      for (const group of counted[labels]!.hosted) count(group, node);
    }
    for (const { bound, groups } of owners) {
      const node = nodes.get(bound.node);
      if (node) for (const group of groups) count(group, node);
    }
  }

  /** What runs in a pool counts against its limits. */
  #subtractUsage(): void {
    const byPool = new Map(this.#templates.map((template) => [template.nodePool, template]));
    for (const node of this.#nodes) {
      const limits = node.leaving || node.nodePool === undefined ? undefined : byPool.get(node.nodePool)?.limits;
      if (!limits) continue;
      for (const [name, left] of limits) {
        const used = name === 'nodes' ? 1_000_000_000n : (node.capacity.get(name) ?? 0n);
        limits.set(name, left - used);
      }
    }
  }
}

/** A node that did not change has the taints it had in the problem before: the same list, see state-nodes.ts. */
const asText = new WeakMap<readonly Taint[], string>();

function textOf(taints: readonly Taint[]): string {
  let text = asText.get(taints);
  if (text === undefined) asText.set(taints, (text = JSON.stringify(taints)));
  return text;
}

/** A node that did not change has the labels it had in the problem before: the same object, see state-nodes.ts. */
const asRequirements = new WeakMap<object, { readonly words: LabelSet; readonly read: Requirements }>();

function knownLabels(labels: Readonly<Record<string, string>>, words: LabelSet): Requirements {
  const known = asRequirements.get(labels);
  if (known?.words === words) return known.read;
  const read = requirementsOfLabels(labels, words);
  if (Object.isFrozen(labels)) asRequirements.set(labels, { words, read });
  return read;
}

function dead(available: ReadonlyMap<string, bigint>): boolean {
  for (const nano of available.values()) if (nano < 0n) return true;
  return false;
}

/** The values of a label that nodes of a template can have. */
function domainsProvided(template: Template, key: string, space: RequirementSpace): Set<string> {
  const pool = space.get(template.requirements).get(key);
  const provided = new Set<string>(pool && !pool.complement ? pool.values : []);
  for (const value of template.catalog.valuesOf(key)) if (!pool || pool.has(value)) provided.add(value);
  return provided;
}
