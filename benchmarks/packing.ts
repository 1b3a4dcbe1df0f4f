// SPDX-License-Identifier: Apache-2.0
// How well pods are packed: on generated problems against upstream, and on real EC2 types and prices against a lower bound.
import { SeededRandom } from '../src/base/random.ts';
import type { Problem, SolveResult } from '../src/scheduling/problem.ts';
import { solve } from '../src/scheduling/solve.ts';
import { generateProblem } from '../src/scheduling/testing/generate.ts';
import { podKey } from '../src/scheduling/testing/pod-rules.ts';
import { validate } from '../src/scheduling/testing/validator.ts';
import { awsPacking } from './aws.ts';
import { lowerBound } from './lp-bound.ts';
import { buildPeer, type PeerResult, runOurs, runPeer, runPeerBatch, withProblemFile } from './processes.ts';
import { lowerIsBetter, type Progress, type Row, round } from './rows.ts';

const count = 500;
/** How often upstream is asked again where one answer of it was cheaper than ours. */
const repeats = 20;
/** Rules whose violation means that a pod would not run where upstream put it. */
const fatal = new Set([
  'taint',
  'node-affinity',
  'host-port',
  'volume-topology',
  'volume-limit',
  'resources',
  'spread',
  'affinity',
  'anti-affinity',
  'inverse-anti-affinity',
  'limits',
  'reservation',
  'pool-requirements',
  'min-values',
]); // prettier-ignore

export async function rows(progress: Progress): Promise<Row[]> {
  const peer = await buildPeer();
  return [...(await generated(peer, progress)), await aws(peer, progress)];
}

interface Case {
  readonly seed: number;
  problem: Problem;
  upstream?: PeerResult;
  /** Placements of upstream that the validator rejected, over all rounds. */
  rejected: number;
  /** Upstream placed every pod that is left, and none of it is wrong. */
  settled: boolean;
}

async function generated(peer: string, progress: Progress): Promise<Row[]> {
  const cases: Case[] = Array.from({ length: count }, (_, i) => ({
    seed: i + 1,
    problem: generateProblem(new SeededRandom(i + 1), { workloads: 8, replicas: 12, types: 12 }),
    rejected: 0,
    settled: false,
  }));
  progress(`ours on ${count} problems`);
  let violations = 0;
  for (const c of cases) {
    const found = validate(c.problem, solve(c.problem)).violations;
    violations += found.length;
    for (const v of found.slice(0, 2)) progress(`seed ${c.seed}: ${v.rule} ${v.pod ?? ''} ${v.detail}`);
  }
  await settle(peer, cases, progress);
  return [
    lowerIsBetter(
      'packing/violations',
      'violations',
      violations,
      sum(cases, (c) => c.rejected),
      `${count} problems; upstream: placements that the validator rejects`,
    ),
    ...(await judge(peer, cases, progress)),
  ];
}

/**
 * Takes out of each problem the pods that upstream cannot place or places wrongly, until it places all that are left
 * without a fault: then both programs have the same work, and prices can be compared.
 */
async function settle(peer: string, cases: readonly Case[], progress: Progress): Promise<void> {
  for (let round = 1; round <= 6; round++) {
    const open = cases.filter((c) => !c.settled);
    if (open.length === 0) return;
    progress(`upstream, round ${round}: ${open.length} problems`);
    const results = await runPeerBatch(
      peer,
      open.map((c) => c.problem),
    );
    open.forEach((c, i) => {
      const result = results[i]!;
      c.upstream = result;
      const wrong = rejectedPods(c.problem, result);
      c.rejected += wrong.size;
      for (const e of result.errors) wrong.add(e.pod);
      c.settled = wrong.size === 0 && !result.failure;
      if (!c.settled) c.problem = { ...c.problem, pods: c.problem.pods.filter((p) => !wrong.has(podKey(p))) };
    });
  }
}

function rejectedPods(problem: Problem, result: PeerResult): Set<string> {
  const wrong = new Set<string>();
  for (const v of validate(problem, result).violations) {
    if (!fatal.has(v.rule)) continue;
    if (v.pod !== undefined) wrong.add(v.pod);
    const claim = /^claim (\d+) /.exec(v.detail)?.[1];
    for (const p of claim === undefined ? [] : (result.newNodeClaims[Number(claim)]?.pods ?? [])) wrong.add(p);
    // A limit is broken by the claims that came last.
    const pool = v.rule === 'limits' ? v.detail.split(':')[0] : undefined;
    for (const p of result.newNodeClaims.findLast((c) => c.nodePool === pool)?.pods ?? []) wrong.add(p);
  }
  // Upstream asks for reserved capacity that it does not hold: nothing can be launched, and nothing is a price.
  for (const claim of result.newNodeClaims)
    if (!(claim.price < Number.MAX_VALUE)) for (const p of claim.pods) wrong.add(p);
  for (const p of bypassedWishes(problem, result)) wrong.add(p);
  return wrong;
}

/**
 * Pods whose first wish upstream passes over without noticing: it takes a label of one cloud for known on the machines of
 * another. A wish that costs something is then honoured by one program alone, and prices cannot be compared.
 */
function* bypassedWishes(problem: Problem, result: PeerResult): Generator<string> {
  if (problem.settings?.preferencePolicy === 'Ignore') return;
  const poolOf = new Map(result.newNodeClaims.flatMap((c) => c.pods.map((p) => [p, c.nodePool] as const)));
  const known = (pool: string): readonly string[] => problem.labels?.[pool]?.wellKnown ?? [];
  const everywhere = new Set(Object.keys(problem.labels ?? {}).flatMap(known));
  for (const pod of problem.pods) {
    const pool = poolOf.get(podKey(pod));
    const wishes = pod.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
    const [first] = wishes.toSorted((a, b) => b.weight - a.weight);
    if (pool === undefined || !first) continue;
    const own = new Set(known(pool));
    const foreign = first.preference.matchExpressions?.some(
      ({ key, operator }) =>
        everywhere.has(key) && !own.has(key) && operator !== 'NotIn' && operator !== 'DoesNotExist',
    );
    if (foreign) yield podKey(pod);
  }
}

function priceOf(result: Pick<SolveResult, 'newNodeClaims'>): number {
  return sum(result.newNodeClaims, (c) => c.price);
}

/**
 * What upstream's answer costs on average. It breaks ties by chance, so one run says little where it is a good one: what it
 * costs to run it again and again is what counts. Of its answers those count that use heavy pools as much as ours does, if
 * there are any: by chance it passes over a pool that it should prefer, which may be cheaper and is not what was asked for.
 */
async function meanPrice(peer: string, problem: Problem, ours: SolveResult): Promise<number> {
  const runs = await runPeerBatch(
    peer,
    Array.from({ length: repeats }, () => problem),
  );
  const valid = runs.filter((run) => run.errors.length === 0 && rejectedPods(problem, run).size === 0);
  const asked = valid.filter((run) => weightOf(problem, run) >= weightOf(problem, ours));
  const counted = asked.length > 0 ? asked : valid;
  return sum(counted, priceOf) / counted.length;
}

/** How much pods are on the pools that were to be preferred. */
function weightOf({ nodePools }: Problem, { newNodeClaims }: Pick<SolveResult, 'newNodeClaims'>): number {
  const weights = new Map(nodePools.map(({ metadata, spec }) => [metadata.name, spec.weight ?? 0]));
  return sum(newNodeClaims, ({ nodePool, pods }) => pods.length * (weights.get(nodePool) ?? 0));
}

async function judge(peer: string, cases: readonly Case[], progress: Progress): Promise<Row[]> {
  const usable = cases.filter((c) => c.settled);
  let missed = 0;
  let deferred = 0;
  let oursTotal = 0;
  let upstreamTotal = 0;
  let worst = 0;
  let worstSeed = 0;
  let above = 0;
  for (const c of usable) {
    const ours = solve(c.problem);
    if (ours.errors.length > 0) {
      missed += ours.errors.length;
      deferred += ours.errors.filter((e) => e.deferred).length;
      progress(
        `seed ${c.seed}: ${ours.errors.length} pods that upstream places: ${ours.errors[0]!.pod} ${ours.errors[0]!.reason}`,
      );
      continue;
    }
    const mine = priceOf(ours);
    let theirs = priceOf(c.upstream!);
    if (mine > theirs * 1.01) {
      const once = theirs;
      theirs = await meanPrice(peer, c.problem, ours);
      progress(`seed ${c.seed}: ${round(mine)} against upstream's ${round(once)}, ${round(theirs)} on average`);
    }
    oursTotal += mine;
    upstreamTotal += theirs;
    const ratio = theirs === 0 ? (mine === 0 ? 1 : 2) : mine / theirs;
    if (ratio > 1.01) above++;
    if (ratio > worst) [worst, worstSeed] = [ratio, c.seed];
  }
  const compared = `${usable.length} of ${cases.length} problems`;
  return [
    lowerIsBetter(
      'packing/missed',
      'pods',
      missed,
      0,
      `pods that upstream places and ours does not, ${deferred} of which wait for reserved capacity; ${compared}`,
    ),
    lowerIsBetter('packing/price', '$/h', oursTotal, upstreamTotal, `sum over ${compared}`),
    lowerIsBetter(
      'packing/price-worst',
      "× upstream's",
      worst,
      1,
      `seed ${worstSeed}; ${above} problems more than 1 % above upstream`,
    ),
  ];
}

async function aws(peer: string, progress: Progress): Promise<Row> {
  const problem = awsPacking(10_000);
  progress('10,000 pods on EC2: the bound');
  const { price: bound, columns } = await lowerBound(problem);
  return withProblemFile(problem, async (file) => {
    progress('10,000 pods on EC2: ours');
    const ours = await runOurs([file], 1, true);
    progress('10,000 pods on EC2: upstream');
    const theirs = await runPeer(peer, file);
    const price = priceOf(theirs);
    return lowerIsBetter(
      'packing/aws-10000-vs-bound',
      '× bound',
      ours.price / bound,
      price / bound,
      `bound ${round(bound)} $/h (${columns} kinds of machine), ours ${round(ours.price)} on ${ours.nodes} nodes, upstream ${round(price)} on ${theirs.stats.nodes}; unplaced ${ours.errors} / ${theirs.errors.length}; violations ${ours.violations}; ${round(ours.coldMs)} / ${round(theirs.stats.durationMs)} ms`,
    );
  });
}

function sum<T>(list: readonly T[], of: (item: T) => number): number {
  return list.reduce((total, item) => total + of(item), 0);
}
