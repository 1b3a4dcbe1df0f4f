// SPDX-License-Identifier: Apache-2.0
// The scheduler's front door.
import { compareStrings } from '../base/order.ts';
import { beyondDeadline, Failures } from './failures.ts';
import type { Packed } from './pack.ts';
import { makePlan, type Plan } from './plan.ts';
import type { ExistingNodeResult, Placement, PodError, Problem, SolveOptions, SolveResult } from './problem.ts';
import { compile, type World } from './world.ts';

/**
 * Places the pods of a problem: on existing nodes, then on nodes being bought, then on new ones. Pure and deterministic:
 * the same problem gives the same bytes. Never throws on bad objects: they become errors of their own in the result.
 */
export function solve(problem: Problem, options: SolveOptions = {}): SolveResult {
  const start = options.clock?.() ?? 0;
  const world = compile(problem);
  return render(world, makePlan(world, options), options, start);
}

function render(world: World, { packed, finalizer }: Plan, options: SolveOptions, start: number): SolveResult {
  const newNodeClaims = packed.nodes.map((node) => finalizer.claimOf(node));
  const { keys, rejected, postponed, pods } = world.batch;
  const placements: Placement[] = packed.steps.map(({ pod, target, node, settled }) => {
    const where = target ? { node: target.node.name } : { newNodeClaim: node!.index };
    if (settled.length === 0) return { pod: keys[pod]!, target: where };
    return {
      pod: keys[pod]!,
      target: where,
      settled: settled.map((s) => ({ newNodeClaim: s.node.index, key: s.key.key, value: s.key.domains[s.domain]! })),
    };
  });
  const errors: PodError[] = rejected.map(({ key, reason, detail }) => ({ pod: key, reason, detail }));
  for (const key of postponed) errors.push({ pod: key, ...beyondDeadline });
  const failures = new Failures(world, packed.limits);
  for (const { pod, why } of packed.failed) errors.push({ pod: keys[pod]!, ...failures.of(pod, why) });
  let totalPrice = 0;
  for (const { price } of newNodeClaims) totalPrice += price;
  return {
    newNodeClaims,
    existingNodes: existingNodes(world, packed),
    placements,
    errors,
    objectErrors: world.errors,
    stats: {
      durationMs: options.clock ? options.clock() - start : 0,
      pods: pods.length + rejected.length + postponed.length,
      scheduled: packed.steps.length,
      newNodeClaims: newNodeClaims.length,
      totalPrice,
      podClasses: world.classes.count,
      podShapes: world.requests.length,
      timedOut: packed.timedOut || postponed.length > 0,
    },
  };
}

function existingNodes(world: World, packed: Packed): ExistingNodeResult[] {
  const byName = new Map<string, string[]>();
  for (const { pod, target } of packed.steps) {
    if (!target) continue;
    const list = byName.get(target.node.name);
    if (list) list.push(world.batch.keys[pod]!);
    else byName.set(target.node.name, [world.batch.keys[pod]!]);
  }
  return [...byName].sort(([a], [b]) => compareStrings(a, b)).map(([name, pods]) => ({ name, pods }));
}
