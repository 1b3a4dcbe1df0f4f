// SPDX-License-Identifier: Apache-2.0
// Makes a failing problem small: takes away items and fields as long as it still fails. For people who must read it.
import type { Problem } from '../problem.ts';

/** Fields that every object of their kind needs: taking them away makes another problem, not a smaller one. */
const essential = new Set([
  'metadata',
  'name',
  'uid',
  'namespace',
  'spec',
  'template',
  'containers',
  'resources',
  'requests',
  'nodePools',
  'instanceTypes',
  'pods',
  'offerings',
  'requirements',
  'capacity',
  'key',
  'operator',
  'values',
  'price',
  'topologyKey',
  'maxSkew',
  'whenUnsatisfiable',
  'labelSelector',
  'weight',
  'preference',
  'podAffinityTerm',
  'matchExpressions',
  'nodeSelectorTerms',
  'effect',
  'nodeClassRef',
  'status',
  'providerID',
  'cpu',
  'memory',
  'nodeName',
  'claimName',
  'labels',
  'wellKnown',
  'reservationId',
  'volumeBindingMode',
  'nodeSelectorTerms',
]); // prettier-ignore

/** The smallest problem that `fails`, within `budget` attempts. `fails` must not throw. */
export function reduceProblem(problem: Problem, fails: (problem: Problem) => boolean, budget = 3000): Problem {
  let best = structuredClone(problem) as Problem;
  let left = budget;
  const attempt = (change: (root: unknown) => void): boolean => {
    if (left-- <= 0) return false;
    const candidate = structuredClone(best);
    change(candidate);
    let failed = false;
    try {
      failed = fails(candidate);
    } catch {
      // A candidate that is no problem any more is not a smaller one.
    }
    if (failed) best = candidate;
    return failed;
  };
  for (let progress = true; progress && left > 0; ) {
    progress = false;
    for (const path of [...paths(best, [])].sort((a, b) => a.length - b.length)) {
      const last = path.at(-1)!;
      if (typeof last === 'string' && essential.has(last)) continue;
      // An offering is its place and its terms.
      if (path.includes('offerings') && path.includes('requirements')) continue;
      if (path[0] === 'labels' || path.includes('values')) continue;
      const taken = attempt((root) => remove(root, path));
      progress ||= taken;
      // The paths of a changed tree are not those of the old one.
      if (taken && typeof last === 'number') break;
    }
  }
  return best;
}

type Path = readonly (string | number)[];

function* paths(value: unknown, at: Path): Generator<Path> {
  if (typeof value !== 'object' || value === null) return;
  const keys = Array.isArray(value) ? value.map((_, i) => i).reverse() : Object.keys(value);
  for (const key of keys) {
    yield [...at, key];
    yield* paths((value as Record<string | number, unknown>)[key], [...at, key]);
  }
}

function remove(root: unknown, path: Path): void {
  let parent = root as Record<string | number, unknown>;
  for (const key of path.slice(0, -1)) {
    const next = parent[key];
    if (typeof next !== 'object' || next === null) return;
    parent = next as Record<string | number, unknown>;
  }
  const last = path.at(-1)!;
  if (Array.isArray(parent)) parent.splice(last as number, 1);
  else delete parent[last];
}
