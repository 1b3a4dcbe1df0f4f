// SPDX-License-Identifier: Apache-2.0
// The whole story of one pod as a tree: per NodePool which constraint removed which instance types, how many were left, the
// nearest miss, and what would fix it. Worked out when somebody asks, from the problem alone.
import { show } from './diagnosis.ts';
import { bestObstacles } from './failures.ts';
import { hostRejects } from './in-flight.ts';
import type { Limits } from './limits.ts';
import { typesOf } from './min-values.ts';
import { Packer } from './pack.ts';
import type { PodClass } from './pod-class.ts';
import type { PlacementTarget, Problem, SolveResult } from './problem.ts';
import { compatible, mergeRequirements } from './requirements.ts';
import { taintText, untolerated } from './taints.ts';
import type { Template } from './templates.ts';
import { compile, type World } from './world.ts';

/** One constraint and what it took away. */
export interface FunnelStep {
  readonly constraint: string;
  readonly removed: number;
  readonly left: number;
  /** Some of the types it removed. */
  readonly examples: readonly string[];
}

export interface NearestMiss {
  readonly instanceType: string;
  readonly lacks: readonly { readonly resource: string; readonly asked: string; readonly free: string }[];
}

export interface PoolExplanation {
  readonly nodePool: string;
  /** What stops the pod first. */
  readonly obstacle: string;
  readonly types: number;
  readonly funnel: readonly FunnelStep[];
  readonly nearest?: NearestMiss;
  readonly fix?: string;
}

export interface NodesExplanation {
  readonly why: string;
  readonly count: number;
  readonly examples: readonly string[];
}

export interface Explanation {
  readonly pod: string;
  /** Where it went; undefined when it was not placed. */
  readonly placed?: PlacementTarget;
  /** Why it was not, as in the result. */
  readonly reason?: string;
  readonly nodePools: readonly PoolExplanation[];
  /** Existing nodes by what speaks against them. */
  readonly existingNodes: readonly NodesExplanation[];
}

const maxExamples = 5;

/** Explains a pod of a solved problem; undefined when the problem has no such pod to place. */
export function explainPod(problem: Problem, result: SolveResult, podKey: string): Explanation | undefined {
  const placed = result.placements.find(({ pod }) => pod === podKey)?.target;
  if (placed) return { pod: podKey, placed, nodePools: [], existingNodes: [] };
  const reason = result.errors.find(({ pod }) => pod === podKey)?.reason;
  const world = compile(problem);
  const pod = world.batch.keys.indexOf(podKey);
  if (pod < 0) return reason === undefined ? undefined : { pod: podKey, reason, nodePools: [], existingNodes: [] };
  // The counts and limits that the pod met are those after everybody else was placed.
  const { limits } = new Packer(world, { maxSteps: 4 * world.batch.pods.length + 1000 }).run();
  const podClass = world.classOf[pod]!;
  const shape = world.batch.shapeOf[pod]!;
  if (podClass.side.problem !== undefined)
    return { pod: podKey, reason: podClass.side.problem, nodePools: [], existingNodes: [] };
  return {
    pod: podKey,
    ...(reason === undefined ? {} : { reason }),
    nodePools: explainPools(world, limits, podClass, shape),
    existingNodes: explainNodes(world, podClass, shape),
  };
}

function lastForm(world: World, podClass: PodClass): PodClass {
  let form = podClass;
  for (let next = world.classes.relaxed(form); next; next = world.classes.relaxed(form)) form = next;
  return form;
}

function explainPools(world: World, limits: Limits, podClass: PodClass, shape: number): PoolExplanation[] {
  const obstacles = bestObstacles(world, limits, podClass, shape);
  const form = lastForm(world, podClass);
  return world.templates.map((template, i) => {
    const { what, fix } = obstacles[i]!;
    const { steps, nearest } = funnelOf(world, limits, template, form, shape);
    return {
      nodePool: template.nodePool,
      obstacle: what,
      types: template.catalog.types.length,
      funnel: steps,
      ...(nearest ? { nearest } : {}),
      ...(fix === undefined ? {} : { fix }),
    };
  });
}

function funnelOf(
  world: World,
  limits: Limits,
  template: Template,
  podClass: PodClass,
  shape: number,
): { steps: FunnelStep[]; nearest: NearestMiss | undefined } {
  const { catalog } = template;
  const wish = podClass.side.wishes[template.dialect.index];
  if (!wish || untolerated(template.taints, podClass.side.tolerations)) return { steps: [], nearest: undefined };
  const steps: FunnelStep[] = [];
  let left = catalog.types.map((_, i) => i);
  const keep = (constraint: string, test: (type: number) => boolean): void => {
    const removed = left.filter((type) => !test(type));
    if (removed.length === 0) return;
    left = left.filter(test);
    const examples = removed.slice(0, maxExamples).map((type) => catalog.types[type]!.name);
    steps.push({ constraint, removed: removed.length, left: left.length, examples });
  };
  const set = mergeRequirements(world.space.get(template.requirements), world.space.get(wish.all));
  for (const [key, requirement] of [...set].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!catalog.keys.has(key)) continue;
    const alone = new Map([[key, requirement]]);
    keep(requirement.toString(), (type) => {
      const own = catalog.types[type]!.requirements.get(key);
      return own === undefined || compatible(new Map([[key, own]]), alone, new Set([key]));
    });
  }
  const view = catalog.view(world.space.intern(set), catalog.maskForPorts(podClass.side.ports));
  const offered = typesOf(catalog, view.rows);
  keep('an available offering', (type) => offered.has(type));
  const before = left;
  const { names } = world.axis;
  const request = world.requests[shape]!;
  const { amounts } = world.batch.shapes[shape]!;
  for (const [r, name] of names.entries()) {
    if (request[r] === 0) continue;
    const enough = typesOf(
      catalog,
      view.rows.filter((row) => catalog.free[row * catalog.width + r]! >= request[r]!),
    );
    keep(`${show(name, amounts.get(name) ?? 0n)} ${name}`, (type) => enough.has(type));
  }
  const nearest =
    left.length === 0 && before.length > 0 ? nearestMiss(world, template, [...view.rows], shape) : undefined;
  const mask = limits.mask(template);
  keep('the limits of the NodePool', (type) => mask !== undefined && catalog.inMask(mask, type));
  return { steps, nearest };
}

function nearestMiss(
  world: World,
  { catalog }: Template,
  rows: readonly number[],
  shape: number,
): NearestMiss | undefined {
  const request = world.requests[shape]!;
  const { amounts } = world.batch.shapes[shape]!;
  const lack = (row: number): number =>
    world.axis.names.reduce(
      (worst, _, r) => Math.max(worst, request[r]! / Math.max(catalog.free[row * catalog.width + r]!, 1e-9)),
      0,
    );
  const best = rows.reduce<number | undefined>((a, b) => (a === undefined || lack(b) < lack(a) ? b : a), undefined);
  if (best === undefined) return undefined;
  const free = catalog.freeOf(best);
  const lacks = world.axis.names
    .filter((_, r) => catalog.free[best * catalog.width + r]! < request[r]!)
    .map((resource) => ({
      resource,
      asked: show(resource, amounts.get(resource) ?? 0n),
      free: show(resource, free.get(resource) ?? 0n),
    }));
  return { instanceType: catalog.types[catalog.typeOf[best]!]!.name, lacks };
}

function explainNodes(world: World, podClass: PodClass, shape: number): NodesExplanation[] {
  const form = lastForm(world, podClass);
  const request = world.requests[shape]!;
  const byReason = new Map<string, string[]>();
  for (const { kind, room, slot, node } of world.targets) {
    const why = whyNotOn(world, form, kind, room, request, slot);
    const names = byReason.get(why);
    if (names) names.push(node.name);
    else byReason.set(why, [node.name]);
  }
  return [...byReason]
    .map(([why, names]) => ({ why, count: names.length, examples: names.slice(0, maxExamples) }))
    .sort((a, b) => b.count - a.count || (a.why < b.why ? -1 : 1));
}

function whyNotOn(
  world: World,
  podClass: PodClass,
  kind: World['kinds'][number],
  room: Float64Array,
  request: Float64Array,
  slot: number,
): string {
  const taint = untolerated(kind.taints, podClass.side.tolerations);
  if (taint) return `taint ${taintText(taint)} is not tolerated`;
  const wish = podClass.side.wishes[kind.dialect];
  if (!wish || !compatible(kind.labels, world.space.get(wish.all))) return 'its labels do not match';
  if (!wish.volumes.some((set) => compatible(kind.labels, world.space.get(set)))) return 'the volumes are elsewhere';
  const short = world.axis.names.filter((_, r) => room[r]! < request[r]!);
  if (short.length > 0) return `not enough ${short.join(', ')}`;
  if (hostRejects(podClass, slot, [])) return 'pods on it exclude this one';
  return 'topology, host ports or volume limits exclude it';
}

/** The tree as text, for a terminal. */
export function renderExplanation(explanation: Explanation): string {
  const { pod, placed, reason, nodePools, existingNodes } = explanation;
  if (placed)
    return 'node' in placed
      ? `${pod} is placed on node ${placed.node}`
      : `${pod} is placed on new node #${placed.newNodeClaim}`;
  const lines = [`${pod}: ${reason ?? 'not placed'}`];
  for (const { nodePool, obstacle, types, funnel, nearest, fix } of nodePools) {
    lines.push(`  NodePool ${nodePool}: ${obstacle}`);
    if (funnel.length > 0) lines.push(`    ${types} instance types`);
    for (const { constraint, removed, left, examples } of funnel)
      lines.push(
        `    - ${constraint}: removes ${removed} (${examples.join(', ')}${removed > examples.length ? ', …' : ''}), ${left} left`,
      );
    if (nearest) {
      const lacks = nearest.lacks.map(({ resource, asked, free }) => `${resource} ${free} of ${asked}`).join(', ');
      lines.push(`    nearest: ${nearest.instanceType} (${lacks})`);
    }
    if (fix !== undefined) lines.push(`    fix: ${fix}`);
  }
  for (const { why, count, examples } of existingNodes)
    lines.push(
      `  ${count} existing ${count === 1 ? 'node' : 'nodes'}: ${why} (${examples.join(', ')}${count > examples.length ? ', …' : ''})`,
    );
  return lines.join('\n');
}
