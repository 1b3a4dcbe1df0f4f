// SPDX-License-Identifier: Apache-2.0
// One process of ours for one problem: `solve-once.ts [--repeat N] [--judge] FILE | --growth PODS`. The clock runs from
// the parsed problem to the finished NodeClaims; the first solve is the first thing this process does. What reading the problem
// left behind is swept before (with `--expose-gc`), as it is for upstream.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Problem } from '../src/scheduling/problem.ts';
import { solve } from '../src/scheduling/solve.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { repeat: { type: 'string', default: '1' }, judge: { type: 'boolean' }, growth: { type: 'string' } },
});

async function load(): Promise<Problem> {
  if (values.growth === undefined) return JSON.parse(readFileSync(positionals[0]!, 'utf8')) as Problem;
  const { growthProblem } = await import('./aws.ts');
  return growthProblem(Number(values.growth));
}

const problem = await load();
const clock = () => performance.now();
globalThis.gc?.();
const times: number[] = [];
let result = timed();
for (let i = 1; i < Number(values.repeat); i++) result = timed();

function timed() {
  const start = performance.now();
  const answer = solve(problem, { clock });
  times.push(performance.now() - start);
  return answer;
}

const peakMegabytes = Math.round(process.resourceUsage().maxRSS / 1024);
let violations: number | undefined;
if (values.judge) {
  const { validate } = await import('../src/scheduling/testing/validator.ts');
  const verdict = validate(problem, result);
  violations = verdict.violations.length;
  for (const v of verdict.violations.slice(0, 5)) console.error(`${v.rule}: ${v.pod ?? ''} ${v.detail}`);
}
console.log(
  JSON.stringify({
    coldMs: times[0],
    warmMs: times.slice(1),
    nodes: result.newNodeClaims.length,
    scheduled: result.stats.scheduled,
    errors: result.errors.length,
    price: result.stats.totalPrice,
    ...(violations === undefined ? {} : { violations }),
    peakMegabytes,
  }),
);
