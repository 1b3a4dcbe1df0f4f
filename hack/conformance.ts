// SPDX-License-Identifier: Apache-2.0
// Compares what both conformance runs wrote: `node hack/conformance.ts FOLDER` fails unless the embedded and the real
// API server passed the same cases, enough of them, and none was left out.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { VerdictReport } from '../test/conformance/verdicts/report.ts';

interface Report {
  readonly cases: readonly { id: string; verdict: string; requests: number; clients: number }[];
  readonly skipped: number;
}

interface Verdicts {
  readonly verdicts: readonly VerdictReport[];
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

/** What is wrong with what two servers said to the same objects: they must say the same, in the same words. */
export function verdictProblems(embedded: Verdicts, real: Verdicts): string[] {
  const problems: string[] = [];
  const shown = ({ verdicts }: Verdicts) =>
    new Map(verdicts.map(({ id, valid, message }) => [id, valid ? 'valid' : `invalid: ${message}`]));
  const [ours, theirs] = [shown(embedded), shown(real)];
  for (const [name, { verdicts, skipped }, byId] of [
    ['embedded', embedded, ours],
    ['real', real, theirs],
  ] as const) {
    if (skipped !== 0) problems.push(`${name}: ${skipped} objects were skipped`);
    if (byId.size !== verdicts.length) problems.push(`${name}: ${verdicts.length - byId.size} objects come twice`);
    if (byId.size < atLeastObjects)
      problems.push(`${name}: ${byId.size} objects, at least ${atLeastObjects} are needed`);
    for (const valid of [true, false])
      if (!verdicts.some((each) => each.valid === valid))
        problems.push(`${name}: no object is ${valid ? 'valid' : 'invalid'}`);
  }
  for (const id of new Set([...ours.keys(), ...theirs.keys()])) {
    const [mine, truth] = [ours.get(id) ?? 'missing', theirs.get(id) ?? 'missing'];
    if (mine !== truth) problems.push(`${id}: embedded ${mine}, real ${truth}`);
  }
  return problems;
}

if (import.meta.main) {
  const folder = process.argv[2];
  if (!folder) throw new Error('usage: node hack/conformance.ts FOLDER (of the JSON that both runs wrote)');
  const read = <T>(name: string): T => JSON.parse(readFileSync(join(folder, name), 'utf8')) as T;
  const real = read<Report>('real.json');
  const realVerdicts = read<Verdicts>('real-verdicts.json');
  const problems = [
    ...problemsOf(read<Report>('embedded.json'), real),
    ...verdictProblems(read<Verdicts>('embedded-verdicts.json'), realVerdicts),
  ];
  for (const problem of problems) console.error(problem);
  const objects = realVerdicts.verdicts.length;
  console.error(`conformance: ${real.cases.length} cases, ${objects} objects, ${problems.length} problems`);
  process.exit(problems.length > 0 ? 1 : 0);
}
