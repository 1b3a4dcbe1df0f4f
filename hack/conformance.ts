// SPDX-License-Identifier: Apache-2.0
// Compares what both conformance runs wrote: `node hack/conformance.ts FOLDER` fails unless the embedded and the real
// API server passed the same cases, enough of them, and none was left out.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { corpus } from '../test/conformance/verdicts/corpus.ts';

interface Report {
  readonly cases: readonly { id: string; verdict: string; requests: number; clients: number }[];
  readonly skipped: number;
}

const atLeast = 300;
const atLeastObjects = 150;

/** What is wrong with two reports of one suite; nothing when they agree. */
export function problemsOf(embedded: Report, real: Report): string[] {
  const problems: string[] = [];
  const verdicts = (report: Report) => new Map(report.cases.map(({ id, verdict }) => [id, verdict]));
  const [ours, theirs] = [verdicts(embedded), verdicts(real)];
  for (const [name, report, byId] of [
    ['embedded', embedded, ours],
    ['real', real, theirs],
  ] as const) {
    if (report.skipped !== 0) problems.push(`${name}: ${report.skipped} cases were skipped`);
    if (byId.size !== report.cases.length) problems.push(`${name}: ${report.cases.length - byId.size} ids come twice`);
    if (byId.size < atLeast) problems.push(`${name}: ${byId.size} cases, at least ${atLeast} are needed`);
  }
  for (const id of new Set([...ours.keys(), ...theirs.keys()])) {
    const [mine, truth] = [ours.get(id) ?? 'missing', theirs.get(id) ?? 'missing'];
    if (mine !== 'passed' || truth !== 'passed') problems.push(`${id}: embedded ${mine}, real ${truth}`);
  }
  const stories = real.cases.filter(({ requests, clients }) => requests >= 3 && clients >= 2);
  if (stories.length * 2 < real.cases.length) {
    problems.push(`only ${stories.length} of ${real.cases.length} cases have several steps and more than one client`);
  }
  return problems;
}

if (import.meta.main) {
  const folder = process.argv[2];
  if (!folder) throw new Error('usage: node hack/conformance.ts FOLDER (of embedded.json and real.json)');
  const read = (name: string) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Report;
  const [embedded, real] = [read('embedded.json'), read('real.json')];
  const problems = problemsOf(embedded, real);
  // Every object of the corpus was judged by both servers: their tests fail otherwise.
  if (corpus.length < atLeastObjects) problems.push(`${corpus.length} objects, at least ${atLeastObjects} are needed`);
  for (const problem of problems) console.error(problem);
  console.error(`conformance: ${real.cases.length} cases, ${corpus.length} objects, ${problems.length} problems`);
  process.exit(problems.length > 0 ? 1 : 0);
}
