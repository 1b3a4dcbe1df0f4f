// SPDX-License-Identifier: Apache-2.0
// The house rule as a lint: which room may import which, and where time, chance and the network may be touched.
// Run by `npm run lint`; its own test feeds it violations.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';

/**
 * What each room may import besides itself and `base`. A `room/file` entry opens one file only,
 * `type:room/file` only its types (which cost nothing at run time). */
export const rooms: Readonly<Record<string, readonly string[]>> = {
  base: [],
  api: [],
  kube: ['api'],
  runtime: ['api', 'kube'],
  scheduling: ['api', 'kube/quantity', 'kube/labels', 'type:kube/kinds', 'type:kube/object'],
  cloud: ['api', 'kube', 'runtime', 'scheduling'],
  state: ['api', 'kube', 'runtime', 'scheduling', 'cloud'],
  controllers: ['api', 'kube', 'runtime', 'scheduling', 'cloud', 'state'],
  providers: ['api', 'kube', 'runtime', 'scheduling', 'cloud'],
  insight: ['api', 'kube', 'runtime', 'scheduling', 'cloud', 'state', 'controllers', 'providers'],
  embedded: ['api', 'kube', 'runtime'],
  simulation: ['*'],
  dashboard: ['api', 'kube', 'runtime', 'state', 'insight'],
  cli: ['*'],
};

/** Globals that only the files named may use: everything else gets them injected. */
const injected: ReadonlyArray<{ what: RegExp; name: string; allowed: RegExp }> = [
  { what: /\bDate\.now\(|\bnew Date\(\)/, name: 'the current time', allowed: /^src\/base\/clock\.ts$/ },
  { what: /\b(?:setTimeout|setInterval|setImmediate)\(/, name: 'a timer', allowed: /^src\/base\/clock\.ts$/ },
  { what: /\bMath\.random\(|\brandomUUID\(|\brandomBytes\(/, name: 'chance', allowed: /^src\/base\/random\.ts$/ },
  { what: /(?<![.\w])fetch\(/, name: 'the network', allowed: /^src\/kube\/http-transport\.ts$/ },
  {
    what: /(?<![.\w])plant\(/,
    name: 'a planted defect',
    allowed: /^src\/(?:simulation\/defects|base\/defects|cli\/simulate\.test)/,
  },
  {
    what: /\bprocess\.(?:argv|env)\b/,
    name: 'the process environment',
    allowed: /^src\/cli\//,
  },
];

const importPattern =
  /(?:^|\n)\s*(?:import|export)\s[^'"\n;]*?(?:\{[^}]*\}\s*)?(?:from\s*)?['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)/g;

/** The import and injection violations of one source file, as `path:line: message`. */
export function violationsOf(path: string, text: string): string[] {
  const room = path.split('/')[1] ?? '';
  const may = rooms[room];
  if (!may) return [`${path}:1: src/${room} is not a room of the house (hack/rooms.ts lists them)`];
  const isTest = /\.test\.ts$|\/testing\//.test(path);
  const code = blankComments(text);
  const found = [
    ...importViolations(path, code, room, may, isTest),
    ...(isTest ? [] : injectionViolations(path, code)),
  ];
  if (!isTest && room === 'scheduling' && /\basync\b|\bawait\b|['"]node:/.test(code)) {
    found.push(`${path}:1: scheduling is pure: no async, no node: modules`);
  }
  return found;
}

function* importViolations(
  path: string,
  code: string,
  room: string,
  may: readonly string[],
  isTest: boolean,
): Generator<string> {
  for (const match of code.matchAll(importPattern)) {
    const specifier = match[1] ?? match[2] ?? '';
    if (!specifier.startsWith('.')) continue;
    const where = `${path}:${lineOf(code, match.index + 1)}`;
    const target = relative('.', resolve(dirname(path), specifier))
      .split(sep)
      .join('/');
    const [top, targetRoom = '', ...rest] = target.split('/');
    if (top !== 'src') {
      if (!isTest && target !== 'package.json') yield `${where}: imports ${target}, outside src/`;
      continue;
    }
    // Tests may look at anything below the command line.
    if (targetRoom === room || targetRoom === 'base' || (isTest && targetRoom !== 'cli')) continue;
    const file = `${targetRoom}/${rest.join('/').replace(/\.ts$/, '')}`;
    const typeOnly = /^\s*(?:import|export)\s+type\b/.test(match[0]);
    const allowed = may.some((m) => m === '*' || m === targetRoom || m === file || (typeOnly && m === `type:${file}`));
    if (!allowed) yield `${where}: ${room} may not import ${file}`;
  }
}

function* injectionViolations(path: string, code: string): Generator<string> {
  for (const rule of injected) {
    const match = rule.allowed.test(path) ? undefined : rule.what.exec(code);
    if (match) {
      yield `${path}:${lineOf(code, match.index)}: uses ${rule.name} (${match[0]}) directly; take it as a parameter`;
    }
  }
}

function lineOf(text: string, index: number): number {
  return text.slice(0, index).split('\n').length;
}

/** Blanks comments, keeping every other character and line where it is; strings stay. */
function blankComments(text: string): string {
  return text.replace(
    /("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)|\/\/[^\n]*|\/\*[\s\S]*?\*\//g,
    (whole, string: string | undefined) => string ?? whole.replace(/[^\n]/g, ' '),
  );
}

function* sources(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* sources(path);
    else if (entry.name.endsWith('.ts')) yield path.split(sep).join('/');
  }
}

if (import.meta.main) {
  const found: string[] = [];
  let files = 0;
  for (const path of sources('src')) {
    files++;
    found.push(...violationsOf(path, readFileSync(path, 'utf8')));
  }
  for (const line of found) console.error(line);
  console.error(`rooms: ${files} files, ${found.length} violations`);
  process.exit(found.length > 0 ? 1 : 0);
}
