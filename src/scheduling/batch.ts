// SPDX-License-Identifier: Apache-2.0
// The pods of a problem, sorted into what makes them alike: shapes (requests), constraints and label classes, each a small
// number. Tens of thousands of pods fall into some dozens of each, and everything after this file works on those.
import { compareStrings } from '../base/order.ts';
import type { Steps } from '../base/steps.ts';
import { type LabelSelector } from '../kube/labels.ts';
import { type Constraints, constraintsOf, matchesNoNode, selectorProblem, selectorsOf } from './constraints.ts';
import { canonicalText, Distinct } from './distinct.ts';
import { isPending, isTerminal, MoveRules } from './input.ts';
import type { Pod, PodSpec } from './objects.ts';
import { amountsProblem, podRequests, quantityProblem } from './pod-resources.ts';
import type { PreferencePolicy, Problem, SolveSettings } from './problem.ts';
import { constraintsShape, podShape } from './shapes.ts';
import { type Attachment, type VolumeAlternatives, VolumeIndex } from './volumes.ts';

export interface PodShape {
  readonly amounts: ReadonlyMap<string, bigint>;
}

export interface ConstraintClass {
  readonly value: Constraints;
  /** Why no pod with these can be placed. */
  readonly problem?: string;
}

export interface LabelClass {
  readonly namespace: string;
  /** Only the labels that some selector looks at. */
  readonly labels: Readonly<Record<string, string>>;
}

/** A pod that is on a node and stays there. */
export interface BoundPod {
  readonly pod: Pod;
  readonly node: string;
  /** -1 when its requests cannot be read. */
  readonly shape: number;
  labels: number;
  readonly constraints: number;
}

export interface Batch {
  /** The pods to place. */
  readonly pods: readonly Pod[];
  /** `namespace/name` of each. */
  readonly keys: readonly string[];
  /** By pod. */
  readonly shapeOf: Int32Array;
  readonly constraintsOf: Int32Array;
  readonly labelsOf: Int32Array;
  /** By pod: 1 when it was on a node of `state.candidates`. */
  readonly isCandidate: Uint8Array;
  readonly shapes: readonly PodShape[];
  readonly constraints: readonly ConstraintClass[];
  readonly labels: readonly LabelClass[];
  readonly bound: readonly BoundPod[];
  /** Indices into `pods`, in the order they are to be placed. */
  readonly order: Int32Array;
  /** Pods that cannot be used at all, with the reason. */
  readonly rejected: readonly { readonly key: string; readonly reason: string; readonly detail: string }[];
  /** Pods left to a later pass, because all of them at once are too much for one. */
  readonly postponed: readonly string[];
  readonly volumes: VolumeIndex;
  readonly attachments: ReadonlyMap<Pod, readonly Attachment[]>;
}

/** How many questions "does this selector mean pods with these labels?" a pass asks at most: about a second's work. */
const maxQuestions = 1_000_000;
const noAlternatives: VolumeAlternatives = [];
const unconstrained = constraintsOf({}, noAlternatives, 'Ignore');

/** `namespace/name` of a pod. */
export function podKey(pod: Pod): string {
  return `${pod.metadata.namespace ?? 'default'}/${pod.metadata.name ?? ''}`;
}

/** Sorts the pods of a problem. `leaving`: names of nodes that go away, with whether they are mere candidates. */
export function* readPods(problem: Problem, leaving: ReadonlyMap<string, 'deleted' | 'candidate'>): Steps<Batch> {
  const batch = yield* new Reader(problem, leaving).read();
  const kept = manageable(batch);
  if (kept === batch.pods.length) return batch;
  const late = batch.order.subarray(kept);
  const left = new Set(Array.from(late, (i) => batch.pods[i]!));
  const pods = problem.pods.filter((pod) => !left.has(pod));
  const part = yield* new Reader({ ...problem, pods }, leaving).read();
  return { ...part, postponed: Array.from(late, (i) => batch.keys[i]!) };
}

/**
 * How many pods of the queue one pass can deal with. Selectors that name no single value have to be asked about every
 * label class: where each pod brings its own, ten thousand pods make a hundred million questions.
 */
function manageable({ order, constraintsOf, labelsOf, constraints, labels, bound }: Batch): number {
  if (constraints.length * labels.length <= maxQuestions) return order.length;
  const general = constraints.map(({ value, problem }) => (problem === undefined ? generalSelectors(value) : 0));
  const boundConstraints = new Set(bound.map((pod) => pod.constraints).filter((i) => i >= 0));
  const labelClasses = new Set(bound.map((pod) => pod.labels));
  const mine = { constraints: new Set<number>(), labels: new Set<number>(), selectors: 0 };
  let repelling = 0;
  for (const i of boundConstraints) repelling += general[i]!;
  for (let kept = 0; kept < order.length; kept++) {
    const pod = order[kept]!;
    labelClasses.add(labelsOf[pod]!);
    mine.labels.add(labelsOf[pod]!);
    if (!mine.constraints.has(constraintsOf[pod]!)) mine.selectors += general[constraintsOf[pod]!]!;
    mine.constraints.add(constraintsOf[pod]!);
    const questions = mine.selectors * labelClasses.size + repelling * mine.labels.size;
    if (questions > maxQuestions) return Math.max(1, kept);
  }
  return order.length;
}

/** How many selectors of these constraints name no single value of a label. */
function generalSelectors(value: Constraints): number {
  let count = 0;
  for (const { selector } of selectorsOf(value)) {
    const exact =
      Object.keys(selector?.matchLabels ?? {}).length > 0 ||
      selector?.matchExpressions?.some(({ operator, values }) => operator === 'In' && values?.length === 1);
    if (!exact) count++;
  }
  return count;
}

/** What was read so far. */
interface Lists {
  readonly pods: Pod[];
  readonly keys: string[];
  readonly shapes: number[];
  readonly constraints: number[];
  readonly candidates: number[];
  readonly bound: BoundPod[];
  readonly seen: Map<string, Set<string>>;
}

/** After so many a long reading may pause. */
const podsInAStep = 2000;

class Reader {
  readonly #problem: Problem;
  readonly #leaving: ReadonlyMap<string, 'deleted' | 'candidate'>;
  readonly #settings: SolveSettings;
  readonly #volumes: VolumeIndex;
  readonly #moves: MoveRules;
  readonly #distinctShapes = new Distinct<PodShape | string>();
  readonly #distinctConstraints = new Distinct<ConstraintClass>();
  readonly #shapes = this.#distinctShapes.all;
  readonly #constraints = this.#distinctConstraints.all;
  /** Places of constraints by the text of the only kind there is. */
  readonly #affinities = new Map<string, number>();
  readonly #spreads = new Map<string, number>();
  readonly #free = new Map<string, number>();
  readonly #attachments = new Map<Pod, readonly Attachment[]>();
  /** The pod that is read. */
  #next = 0;
  /** What was found in the pod that was read last. */
  #shape = 0;
  #constraint = 0;
  readonly #rejected: { key: string; reason: string; detail: string }[] = [];

  constructor(problem: Problem, leaving: ReadonlyMap<string, 'deleted' | 'candidate'>) {
    this.#problem = problem;
    this.#leaving = leaving;
    this.#settings = problem.settings ?? {};
    this.#volumes = new VolumeIndex(problem);
    this.#moves = new MoveRules(problem);
  }

  *read(): Steps<Batch> {
    const lists: Lists = {
      pods: [],
      keys: [],
      shapes: [],
      constraints: [],
      candidates: [],
      bound: [],
      seen: new Map(),
    };
    const { length } = this.#problem.pods;
    for (let from = 0; from < length; from += podsInAStep) {
      this.#readRange(lists, from, Math.min(length, from + podsInAStep));
      yield;
    }
    const { pods, keys, shapes, constraints, candidates, bound } = lists;
    const labels = this.#classifyLabels(pods, bound);
    return {
      pods,
      keys,
      shapeOf: Int32Array.from(shapes),
      constraintsOf: Int32Array.from(constraints),
      labelsOf: labels.of,
      isCandidate: Uint8Array.from(candidates),
      shapes: this.#shapes.map((shape) => (typeof shape === 'string' ? { amounts: new Map() } : shape)),
      constraints: this.#constraints,
      labels: labels.classes,
      bound,
      order: queueOrder(pods, keys, shapes, this.#shapes),
      rejected: this.#rejected,
      postponed: [],
      volumes: this.#volumes,
      attachments: this.#attachments,
    };
  }

  /** Reads pods one after the other; one that has not even the outline of a pod is an error of its own. */
  #readRange(lists: Lists, from: number, to: number): void {
    this.#next = from;
    while (this.#next < to) {
      try {
        this.#readOn(lists, to);
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
        const pod = this.#problem.pods[this.#next]!;
        this.#reject(podKey(pod), podShape(pod) ?? 'it does not have the shape of a pod', error.message);
        this.#next++;
      }
    }
  }

  #readOn(lists: Lists, to: number): void {
    const { pods, keys, shapes, constraints, candidates, bound, seen } = lists;
    for (; this.#next < to; this.#next++) {
      const pod = this.#problem.pods[this.#next]!;
      if (!pod?.spec || typeof pod.spec !== 'object' || !pod.metadata || typeof pod.metadata !== 'object') {
        this.#reject(pod?.metadata?.name ? podKey(pod) : '?', 'it is not a pod: it has no spec', `pods[${this.#next}]`);
        continue;
      }
      if (!pod.metadata.name) {
        this.#reject('?', 'it has no name', `pods[${this.#next}].metadata.name is missing`);
        continue;
      }
      const node = pod.spec.nodeName;
      if (node) {
        const leaving = this.#leaving.get(node);
        if (leaving === undefined || !this.#moves.mayMove(pod)) {
          const read = isTerminal(pod) ? undefined : this.#readBound(pod, node);
          if (read) bound.push(read);
          continue;
        }
        candidates.push(leaving === 'candidate' ? 1 : 0);
      } else {
        if (!isPending(pod)) continue;
        candidates.push(0);
      }
      const key = podKey(pod);
      if (!isFirst(seen, pod)) this.#reject(key, 'two pods have this name', 'only the first is scheduled');
      else if (this.#readPod(pod, key)) {
        pods.push(pod);
        keys.push(key);
        shapes.push(this.#shape);
        constraints.push(this.#constraint);
        continue;
      }
      candidates.pop();
    }
  }

  #reject(key: string, reason: string, detail: string): void {
    this.#rejected.push({ key, reason, detail });
  }

  /** Reads a pod and leaves what it found in `#shape` and `#constraint`; false when the pod cannot be used. */
  #readPod(pod: Pod, key: string): boolean {
    try {
      return this.#readUsable(pod, key);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      this.#reject(key, podShape(pod) ?? 'it does not have the shape of a pod', error.message);
      return false;
    }
  }

  #readUsable(pod: Pod, key: string): boolean {
    let volumes = noAlternatives;
    if (pod.spec.volumes) {
      const problem = this.#volumes.problemOf(pod);
      if (problem !== undefined) {
        this.#reject(key, problem, `volumes of the pod: ${problem}`);
        return false;
      }
      volumes = this.#volumes.alternativesOf(pod);
      const attachments = this.#volumes.attachmentsOf(pod);
      if (attachments.length > 0) this.#attachments.set(pod, attachments);
    }
    if (usesClaims(pod.spec)) {
      this.#reject(
        key,
        'resource claims are not supported yet',
        'the pod asks for devices through spec.resourceClaims (dynamic resource allocation)',
      );
      return false;
    }
    const shape = this.#shapeOf(pod, false);
    const broken = this.#shapes[shape];
    if (typeof broken === 'string') {
      this.#reject(key, `its requests cannot be used: ${broken}`, `requests of the pod: ${broken}`);
      return false;
    }
    const constraints = this.#constraintsOf(pod.spec, volumes);
    const problem = this.#constraints[constraints]!.problem;
    if (problem !== undefined) {
      this.#reject(key, problem, `constraints of the pod: ${problem}`);
      return false;
    }
    this.#shape = shape;
    this.#constraint = constraints;
    return true;
  }

  #readBound(pod: Pod, node: string): BoundPod | undefined {
    try {
      return this.#readUsableBound(pod, node);
    } catch (error) {
      // What runs already is not ours to refuse; what cannot be read cannot be counted.
      if (error instanceof TypeError) return undefined;
      throw error;
    }
  }

  #readUsableBound(pod: Pod, node: string): BoundPod {
    const shape = this.#shapeOf(pod, true);
    const repels = pod.spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution !== undefined;
    if (pod.spec.volumes) {
      const attachments = this.#volumes.attachmentsOf(pod);
      if (attachments.length > 0) this.#attachments.set(pod, attachments);
    }
    return {
      pod,
      node,
      shape: typeof this.#shapes[shape] === 'string' ? -1 : shape,
      labels: -1,
      constraints: repels ? this.#constraintsOf(pod.spec, noAlternatives) : -1,
    };
  }

  #shapeOf(pod: Pod, withStatus: boolean): number {
    const { spec } = pod;
    let text = textsOf(spec).requests;
    const status = withStatus ? allocated(pod) : undefined;
    if (status) text += `\nstatus ${JSON.stringify([status.containerStatuses, status.initContainerStatuses])}`;
    const place = this.#distinctShapes.place(text);
    if (place >= 0) return place;
    const { value, same } = knownShapes.of(text, () => {
      const shape = readShape(spec, status);
      return { value: shape, form: typeof shape === 'string' ? shape : Object.fromEntries(shape.amounts) };
    });
    return this.#distinctShapes.addAs(text, value, same);
  }

  #constraintsOf(spec: PodSpec, volumes: VolumeAlternatives): number {
    const { affinity, topologySpreadConstraints: spread } = spec;
    if (spec.nodeSelector || spec.tolerations || (affinity && spread) || volumes.length > 0 || takesPorts(spec))
      return this.#mixedConstraints(spec, volumes);
    // Most pods have one kind of constraint, if any: its text alone tells them apart.
    const texts = affinity ? this.#affinities : spread ? this.#spreads : this.#free;
    const text = affinity ? JSON.stringify(affinity) : spread ? JSON.stringify(spread) : '';
    let place = texts.get(text);
    if (place === undefined) {
      place = this.#mixedConstraints(spec, volumes);
      texts.set(text, place);
    }
    return place;
  }

  #mixedConstraints(spec: PodSpec, volumes: VolumeAlternatives): number {
    const texts = textsOf(spec);
    texts.constraints ??= constraintsText(spec);
    let text = texts.constraints;
    if (volumes.length > 0) text += `volumes ${JSON.stringify(volumes)}`;
    const place = this.#distinctConstraints.place(text);
    if (place >= 0) return place;
    const policy = this.#settings.preferencePolicy ?? 'Respect';
    const { value, same } = knownConstraints[policy].of(text, () => {
      const constraints = readConstraints(spec, volumes, policy);
      return { value: constraints, form: constraints };
    });
    return this.#distinctConstraints.addAs(text, value, same);
  }

  /** Label classes: only what some selector can see tells two pods apart. */
  #classifyLabels(pods: readonly Pod[], bound: readonly BoundPod[]): { of: Int32Array; classes: LabelClass[] } {
    const relevant = new Set<string>();
    for (const { value, problem } of this.#constraints) {
      if (problem !== undefined) continue;
      for (const { selector, keys } of selectorsOf(value)) {
        addKeys(relevant, selector);
        for (const key of keys) relevant.add(key);
      }
    }
    const distinct = new Distinct<LabelClass>();
    const known = labelTextsFor(relevant);
    const classify = (pod: Pod): number => {
      const { namespace = 'default', labels } = pod.metadata;
      let text = known.get(pod.metadata);
      if (text === undefined) {
        text = namespace;
        for (const key in labels) if (relevant.has(key)) text += `\n${key}\n${labels[key]}`;
        if (Object.isFrozen(pod.metadata)) known.set(pod.metadata, text);
      }
      const place = distinct.place(text);
      if (place >= 0) return place;
      const seen: Record<string, string> = {};
      for (const key in labels) if (relevant.has(key)) seen[key] = labels[key]!;
      const labelClass = { namespace, labels: seen };
      return distinct.add(text, labelClass, labelClass);
    };
    const of = new Int32Array(pods.length);
    for (let i = 0; i < of.length; i++) of[i] = classify(pods[i]!);
    for (const entry of bound) entry.labels = classify(entry.pod);
    return { of, classes: distinct.all };
  }
}

type LabelTexts = WeakMap<Pod['metadata'], string>;

/** By the labels that selectors look at: what is left of those of pods that cannot change. From one problem to the next they are mostly the same. */
const labelTexts = new Map<string, LabelTexts>();
const mostLabelTexts = 8;

function labelTextsFor(relevant: ReadonlySet<string>): LabelTexts {
  const keys = [...relevant].sort().join('\n');
  let texts = labelTexts.get(keys);
  if (!texts) {
    if (labelTexts.size >= mostLabelTexts) labelTexts.clear();
    labelTexts.set(keys, (texts = new WeakMap()));
  }
  return texts;
}

function readConstraints(spec: PodSpec, volumes: VolumeAlternatives, policy: PreferencePolicy): ConstraintClass {
  try {
    const wrong = constraintsShape(spec);
    if (wrong !== undefined) return { value: unconstrained, problem: wrong };
    if (matchesNoNode(spec))
      return { value: unconstrained, problem: 'node affinity: a term needs an expression, or it matches no node' };
    const value = constraintsOf(spec, volumes, policy);
    const problem = selectorProblem(value);
    return problem === undefined ? { value } : { value, problem };
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return { value: unconstrained, problem: 'its constraints do not have the shape of their kind' };
  }
}

/** So many texts are remembered; where somebody makes more, all are forgotten. */
const mostKnown = 2000;

/** What texts were read as, from one problem to the next: nearly all pods of a cluster were there the last time. */
class Known<T> {
  readonly #byText = new Map<string, { readonly value: T; readonly same: string }>();
  readonly #isUsable: (value: T) => boolean;

  /** `isUsable`: whether the text says all. What is wrong with a pod may be in what it leaves out. */
  constructor(isUsable: (value: T) => boolean) {
    this.#isUsable = isUsable;
  }

  /** `same` is equal for equal forms. */
  of(
    text: string,
    read: () => { readonly value: T; readonly form: unknown },
  ): { readonly value: T; readonly same: string } {
    let known = this.#byText.get(text);
    if (!known) {
      const { value, form } = read();
      known = { value, same: canonicalText(form) };
      if (!this.#isUsable(value)) return known;
      if (this.#byText.size >= mostKnown) this.#byText.clear();
      this.#byText.set(text, known);
    }
    return known;
  }
}

const knownShapes = new Known<PodShape | string>((shape) => typeof shape !== 'string');
const isSound = ({ problem }: ConstraintClass): boolean => problem === undefined;
const knownConstraints: Readonly<Record<PreferencePolicy, Known<ConstraintClass>>> = {
  Respect: new Known(isSound),
  Ignore: new Known(isSound),
};

/** What tells specs apart, as texts. */
interface SpecTexts {
  readonly requests: string;
  /** Of those that have more than one kind of constraint. */
  constraints: string | undefined;
}

/** Of specs that cannot change: a cluster is read again every few seconds, and most of its pods are the same. */
const knownTexts = new WeakMap<PodSpec, SpecTexts>();

function textsOf(spec: PodSpec): SpecTexts {
  const known = knownTexts.get(spec);
  if (known) return known;
  const texts = { requests: requestsText(spec), constraints: undefined };
  if (Object.isFrozen(spec)) knownTexts.set(spec, texts);
  return texts;
}

// Texts, not paths through a trie: V8 writes them natively, also in a cold pass, where our own code is interpreted.
function requestsText(spec: PodSpec): string {
  const { containers, initContainers } = spec;
  let text = '';
  // What is no list says of itself what it is: without it the pod would read like one that asks for nothing.
  if (!hasLists(spec)) return `broken ${JSON.stringify([containers, initContainers])}`;
  // Nearly every pod has one container: a text that is not put together need not be copied to be looked up.
  if (containers?.length === 1) text = JSON.stringify(containers[0]!.resources) ?? '-';
  else if (containers)
    for (let i = 0; i < containers.length; i++) text += `${JSON.stringify(containers[i]!.resources)}\n`;
  if (initContainers) {
    for (let i = 0; i < initContainers.length; i++) {
      const { restartPolicy, resources } = initContainers[i]!;
      text += `\ninit ${JSON.stringify([restartPolicy, resources])}\n`;
    }
  }
  if (spec.overhead) text += `\noverhead ${JSON.stringify(spec.overhead)}\n`;
  if (spec.resources) text += `\npod ${JSON.stringify(spec.resources)}\n`;
  return text;
}

function hasLists({ containers, initContainers }: PodSpec): boolean {
  return (!containers || Array.isArray(containers)) && (!initContainers || Array.isArray(initContainers));
}

function constraintsText(spec: PodSpec): string {
  let text = '';
  if (spec.nodeSelector) text += `selector ${JSON.stringify(spec.nodeSelector)}\n`;
  if (spec.affinity) text += `affinity ${JSON.stringify(spec.affinity)}\n`;
  if (spec.topologySpreadConstraints) text += `spread ${JSON.stringify(spec.topologySpreadConstraints)}\n`;
  if (spec.tolerations) text += `tolerations ${JSON.stringify(spec.tolerations)}\n`;
  const { containers } = spec;
  if (containers) {
    for (let i = 0; i < containers.length; i++) {
      const { ports } = containers[i]!;
      if (!ports) continue;
      for (const { hostPort, hostIP, protocol } of ports)
        if (hostPort) text += `port ${JSON.stringify([hostPort, hostIP, protocol])}\n`;
    }
  }
  return text;
}

/** Whether a pod is the first of its name; notes it down. */
function isFirst(seen: Map<string, Set<string>>, { metadata }: Pod): boolean {
  const { namespace = 'default', name = '' } = metadata;
  let names = seen.get(namespace);
  if (!names) {
    names = new Set();
    seen.set(namespace, names);
  }
  const before = names.size;
  return names.add(name).size > before;
}

function allocated({ status }: Pod): Pod['status'] {
  return status && (isSized(status.containerStatuses) || isSized(status.initContainerStatuses)) ? status : undefined;
}

function isSized(statuses: readonly { resources?: unknown; allocatedResources?: unknown }[] | undefined): boolean {
  return (
    statuses?.some(
      ({ resources, allocatedResources }) => resources !== undefined || allocatedResources !== undefined,
    ) ?? false
  );
}

function readShape(spec: PodSpec, status: Pod['status']): PodShape | string {
  try {
    if (!hasLists(spec)) throw new TypeError('no list');
    const amounts = podRequests(spec, status);
    const problem = amountsProblem(amounts);
    if (problem !== undefined) return problem;
    amounts.set('pods', 1_000_000_000n);
    return { amounts };
  } catch (error) {
    const problem = quantityProblem(error);
    return podShape({ spec }) ?? problem;
  }
}

/** Whether any container has ports that may be the host's. */
function takesPorts({ containers }: PodSpec): boolean {
  if (containers) for (let i = 0; i < containers.length; i++) if (containers[i]!.ports) return true;
  return false;
}

function usesClaims(spec: PodSpec): boolean {
  if (spec.resourceClaims !== undefined && spec.resourceClaims.length > 0) return true;
  const { containers } = spec;
  if (containers)
    for (let i = 0; i < containers.length; i++) if ((containers[i]!.resources?.claims?.length ?? 0) > 0) return true;
  return false;
}

function addKeys(relevant: Set<string>, selector: LabelSelector | null | undefined): void {
  for (const key in selector?.matchLabels) relevant.add(key);
  for (const { key } of selector?.matchExpressions ?? []) relevant.add(key);
}

/** CPU descending, memory descending, oldest first, then by UID. */
function queueOrder(
  pods: readonly Pod[],
  keys: readonly string[],
  shapeOf: readonly number[],
  shapes: readonly (PodShape | string)[],
): Int32Array {
  // Most passes are about a pod or two in a cluster of many sizes.
  if (pods.length < 2) return new Int32Array(pods.length);
  const size = (i: number, name: string): bigint => {
    const shape = shapes[i]!;
    return typeof shape === 'string' ? 0n : (shape.amounts.get(name) ?? 0n);
  };
  const compareSizes = (a: number, b: number): number => {
    const [ac, bc] = [size(a, 'cpu'), size(b, 'cpu')];
    if (ac !== bc) return ac > bc ? -1 : 1;
    const [am, bm] = [size(a, 'memory'), size(b, 'memory')];
    return am === bm ? 0 : am > bm ? -1 : 1;
  };
  const sizeRank = ranks(shapes.length, compareSizes);
  const times = new Map<string, number>();
  const timeOf = new Int32Array(pods.length);
  const uids: string[] = [];
  for (let i = 0; i < timeOf.length; i++) {
    const { creationTimestamp, uid } = pods[i]!.metadata;
    const at = creationTimestamp ?? '';
    let id = times.get(at);
    if (id === undefined) {
      id = times.size;
      times.set(at, id);
    }
    timeOf[i] = id;
    uids.push(uid ?? keys[i]!);
  }
  // All times are RFC 3339 in UTC with seconds: their text sorts as they do.
  const stamps = [...times.keys()];
  const timeRank = ranks(stamps.length, (a, b) => compareStrings(stamps[a]!, stamps[b]!));
  const byUid = sortedByText(uids);
  const byTime = stableByRank(byUid, timeOf, timeRank);
  return stableByRank(byTime, shapeOf, sizeRank);
}

/** The place of each of `count` items in their order; equal items share one. */
function ranks(count: number, compare: (a: number, b: number) => number): Int32Array {
  const order = Array.from({ length: count }, (_, i) => i).sort((a, b) => compare(a, b) || a - b);
  const rank = new Int32Array(count);
  for (let i = 1; i < count; i++)
    rank[order[i]!] = rank[order[i - 1]!]! + (compare(order[i - 1]!, order[i]!) === 0 ? 0 : 1);
  return rank;
}

/** A stable counting sort by the rank of the kind that each item is of. */
function stableByRank(items: Int32Array, kindOf: Int32Array | readonly number[], rankOf: Int32Array): Int32Array {
  const count = rankOf.length;
  if (count < 2) return items;
  const starts = new Int32Array(count + 1);
  for (let i = 0; i < items.length; i++) starts[rankOf[kindOf[items[i]!]!]! + 1]!++;
  for (let i = 0; i < count; i++) starts[i + 1]! += starts[i]!;
  const sorted = new Int32Array(items.length);
  for (let i = 0; i < items.length; i++) sorted[starts[rankOf[kindOf[items[i]!]!]!]!++] = items[i]!;
  return sorted;
}

/**
 * Indices in the order of the texts. Four characters behind the common prefix and the index share one double, which sorts
 * natively; only runs that agree in those are compared as texts.
 */
function sortedByText(texts: readonly string[]): Int32Array {
  const skip = commonPrefix(texts);
  const packed = new Float64Array(texts.length);
  for (let i = 0; i < packed.length; i++) {
    const text = texts[i]!;
    let head = 0;
    for (let at = skip; at < skip + 4; at++) {
      // Behind the end there is NaN, which is less than no code.
      const code = text.charCodeAt(at);
      head = head * 256 + (code < 254 ? code + 1 : code >= 254 ? 255 : 0);
    }
    packed[i] = head * 2_097_152 + i;
  }
  packed.sort();
  const sorted = new Int32Array(packed.length);
  for (let i = 0; i < sorted.length; i++) sorted[i] = packed[i]! % 2_097_152;
  for (let start = 0; start < sorted.length; ) {
    const head = Math.floor(packed[start]! / 2_097_152);
    let end = start + 1;
    while (end < sorted.length && Math.floor(packed[end]! / 2_097_152) === head) end++;
    if (end - start > 1) sorted.subarray(start, end).sort((a, b) => compareStrings(texts[a]!, texts[b]!) || a - b);
    start = end;
  }
  return sorted;
}

function commonPrefix(texts: readonly string[]): number {
  const first = texts[0] ?? '';
  let length = first.length;
  for (const text of texts) {
    let i = 0;
    while (i < length && text.charCodeAt(i) === first.charCodeAt(i)) i++;
    length = i;
    if (length === 0) break;
  }
  return length;
}
