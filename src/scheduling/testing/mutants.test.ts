// SPDX-License-Identifier: Apache-2.0
// Mutants of the solver: its source with one rule weakened must be caught by the validator on random problems. A mutant
// that no longer applies fails too, so that the list follows the source.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SeededRandom } from '../../base/random.ts';
import type { Problem, SolveResult } from '../problem.ts';
import { generateProblem } from './generate.ts';
import { validate } from './validator.ts';

interface Mutant {
  readonly what: string;
  readonly file: string;
  /** The head of the function that is weakened, up to its opening brace. */
  readonly head: RegExp;
  /** What it does first, instead of its work. */
  readonly instead: string;
}

const mutants: readonly Mutant[] = [
  {
    what: 'tolerates every taint',
    file: 'taints',
    head: /export function untolerated\([^{]*\{/,
    instead: 'return undefined;',
  },
  {
    what: 'takes every taint of a young node for a passing one',
    file: 'state-nodes',
    head: /function isPassing\([^{]*\{/,
    instead: 'return true;',
  },
  {
    what: 'sees no conflict of host ports',
    file: 'host-ports',
    head: /export function portsConflict\([^{]*\{/,
    instead: 'return false;',
  },
  { what: 'never takes anything from a limit', file: 'limits', head: /\n {2}take\([^{]*\{/, instead: 'return;' },
  {
    what: 'is content with any number of values',
    file: 'min-values',
    head: /export function missingValues\([^{]*\{/,
    instead: 'return new Map();',
  },
  { what: 'forgets what is reserved', file: 'reservations', head: /\n {2}exchange\([^{]*\{/, instead: 'return;' },
  {
    what: 'lists types without room',
    file: 'fitting',
    head: /\n {2}#find\([^{]*\{/,
    instead: 'total = new Float64Array(total.length);',
  },
  {
    what: 'takes any machine for large enough',
    file: 'catalog',
    head: /\n {2}#fitsSum\([^{]*\{/,
    instead: 'return true;',
  },
  {
    what: 'takes pods off the host they are tied to',
    file: 'regroup',
    head: /function isTiedToNoHost\([^)]*\)[^{]*\{/,
    instead: 'return true;',
  },
  {
    what: 'allows any skew',
    file: 'topology',
    head: /export function skewCeiling\([^{]*\{/,
    instead: 'return Number.MAX_SAFE_INTEGER;',
  },
  {
    what: 'counts every node for every spread',
    file: 'topology',
    head: /export function passesFilter\([^{]*\{/,
    instead: 'return true;',
  },
  {
    what: 'counts no node for any spread',
    file: 'topology',
    head: /export function passesFilter\([^{]*\{/,
    instead: 'return false;',
  },
  { what: 'selects no pod', file: 'topology', head: /export function selects\([^{]*\{/, instead: 'return false;' },
  { what: 'looks into every namespace', file: 'topology', head: /\n {2}of\(term[^{]*\{/, instead: 'return undefined;' },
  {
    what: 'forgets init containers',
    file: 'pod-resources',
    head: /export function podRequests\([^{]*\{/,
    instead: 'spec = { ...spec, initContainers: [] };',
  },
  {
    what: 'forgets pod overhead',
    file: 'pod-resources',
    head: /export function podRequests\([^{]*\{/,
    instead: 'spec = { ...spec, overhead: {} };',
  },
  {
    what: 'forgets pod-level requests',
    file: 'pod-resources',
    head: /export function podRequests\([^{]*\{/,
    instead: 'spec = { ...spec, resources: {} };',
  },
  {
    what: 'forgets where volumes are',
    file: 'volumes',
    head: /\n {2}alternativesOf\([^{]*\{/,
    instead: 'pod = { ...pod, spec: { ...pod.spec, volumes: [] } };',
  },
  {
    what: 'attaches any number of volumes',
    file: 'existing-nodes',
    head: /\n {2}#canAttach\([^{]*\{/,
    instead: 'return true;',
  },
  {
    what: 'forgets what daemonsets need',
    file: 'daemons',
    head: /export function overheadOf\([^{]*\{/,
    instead: 'return new Map();',
  },
  {
    what: 'uses nodes that go away',
    file: 'state-nodes',
    head: /export function leavingNodes\([^{]*\{/,
    instead: 'return new Map();',
  },
  {
    what: 'lets any pods share a host',
    file: 'in-flight',
    head: /export function hostRejects\([^{]*\{/,
    instead: 'return false;',
  },
  { what: 'states no requests', file: 'finalize', head: /\n {2}#requests\([^{]*\{/, instead: 'return {};' },
];

const source = fileURLToPath(new URL('../..', import.meta.url));
const seeds = 1500;
let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'karpenter-mutants-'));
  symlinkSync(join(source, '..', 'node_modules'), join(folder, 'node_modules'), 'dir');
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The solver with one function weakened. */
async function load(mutant: Mutant, name: string): Promise<(problem: Problem) => SolveResult> {
  const root = join(folder, name);
  mkdirSync(root);
  for (const room of ['base', 'api', 'kube', 'scheduling'])
    cpSync(join(source, room), join(root, room), {
      recursive: true,
      filter: (path) => !/\.test\.ts$|testing$/.test(path),
    });
  const path = join(root, 'scheduling', `${mutant.file}.ts`);
  const text = readFileSync(path, 'utf8');
  expect(text, `${mutant.file}.ts has no ${mutant.head.source}: follow the source`).toMatch(mutant.head);
  writeFileSync(
    path,
    text.replace(mutant.head, (head) => `${head} ${mutant.instead}`),
  );
  const url = pathToFileURL(join(root, 'scheduling', 'solve.ts')).href;
  const module = (await import(/* @vite-ignore */ url)) as { solve: (problem: Problem) => SolveResult };
  return module.solve;
}

/** The first seed on which the mutant is caught: by a broken rule, or by falling over. */
function caughtAt(solve: (problem: Problem) => SolveResult): number | undefined {
  for (let seed = 1; seed <= seeds; seed++) {
    const problem = generateProblem(new SeededRandom(seed));
    try {
      if (validate(problem, solve(problem)).violations.length > 0) return seed;
    } catch {
      // A mutant that throws is caught as well.
      return seed;
    }
  }
  return undefined;
}

describe('a solver that', () => {
  test.each(mutants.map((m, i) => ({ ...m, i })))(
    '$what is caught',
    async (mutant) => {
      const solve = await load(mutant, `mutant-${mutant.i}`);
      expect(caughtAt(solve), `not caught within ${seeds} problems`).toBeDefined();
    },
    120_000,
  );
});
