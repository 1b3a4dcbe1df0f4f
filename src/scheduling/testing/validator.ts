// SPDX-License-Identifier: Apache-2.0
// The independent judge of a scheduling result: replays the placements in order, checks each against Kubernetes' rules
// at its moment, then checks every new machine for every node it may still become. Shares no code with the solver.
import type { Pod } from '../objects.ts';
import type { NewNodeClaim, Placement, Problem, SolveResult } from '../problem.ts';
import { type Amounts, add, amounts, excess, largest, show, smallestCommon, subtract } from './amounts.ts';
import { capacityOf, heldReservations, type Launch, merged, type Pool } from './catalogue.ts';
import { isDaemonPod, isGone } from './cluster.ts';
import { findMissed, type Missed } from './missed.ts';
import { hostPorts, podKey, podRequests } from './pod-rules.ts';
import { ClaimSpot, fittingLaunches, type Spot } from './spots.ts';
import { type Violation, World } from './world.ts';

export type { Missed } from './missed.ts';
export type { Violation } from './world.ts';

/** What the judge reads of a result; the answers of upstream's scheduler have this shape too. */
export type JudgedResult = Pick<SolveResult, 'newNodeClaims' | 'existingNodes' | 'errors'> & {
  readonly placements: readonly Placement[];
};

export interface Verdict {
  readonly violations: readonly Violation[];
  /** Pods that were left out although a place for them is plain to see. Only looked for when asked. */
  readonly missed: readonly Missed[];
}

export interface JudgeOptions {
  /** Also look for pods that were left out without need. Default false: it tries every place. */
  readonly missed?: boolean;
}

/** Judges a result. No violations means: a cluster that follows it obeys Kubernetes' rules, whichever nodes come up. */
export function validate(problem: Problem, result: JudgedResult, options: JudgeOptions = {}): Verdict {
  const violations: Violation[] = [];
  const report = (rule: string, detail: string, pod?: string) =>
    violations.push({ rule, detail, ...(pod === undefined ? {} : { pod }) });
  const pods = new Map(problem.pods.map((p) => [podKey(p), p]));
  checkAccounts(problem, result, pods, report);

  const moving = new Set([...result.placements.map((p) => p.pod), ...result.errors.map((e) => e.pod)]);
  const world = new World(problem, moving);
  const spots = result.newNodeClaims.map((claim, i) => openSpot(i, claim, world, pods));
  for (const step of result.placements) {
    const pod = pods.get(step.pod);
    const spot = spotOf(step, world, spots);
    if (!pod || !spot) {
      report('placement', `${JSON.stringify(step.target)} is not a place`, step.pod);
      continue;
    }
    violations.push(...world.check(pod, spot));
    world.place(pod, spot);
    for (const s of step.settled ?? []) {
      const settled = spots[s.newNodeClaim];
      if (!settled) continue;
      if (!settled.domains(s.key).every((d) => d === s.value))
        report(
          'settled',
          `claim ${s.newNodeClaim} was said to have ${s.key}=${s.value}, and may be ${settled.domains(s.key).join('|')}`,
        );
      world.settle(settled, s.key);
    }
  }
  result.newNodeClaims.forEach((claim, i) => checkClaim(i, claim, spots[i], problem, pods, report));
  checkLimits(result, world, report);
  checkReservations(result, world, report);
  return {
    violations,
    missed: options.missed ? findMissed(world, result, spots) : [],
  };
}

type Report = (rule: string, detail: string, pod?: string) => void;

function spotOf(step: Placement, world: World, spots: readonly (ClaimSpot | undefined)[]): Spot | undefined {
  if ('newNodeClaim' in step.target) return spots[step.target.newNodeClaim];
  const spot = world.spots.get(step.target.node);
  return spot && !spot.existing.leaving ? spot : undefined;
}

/** Every pod exactly once, and the lists agree with each other. */
function checkAccounts(problem: Problem, result: JudgedResult, pods: ReadonlyMap<string, Pod>, report: Report): void {
  const seen = new Map<string, number>();
  for (const p of result.placements) seen.set(p.pod, (seen.get(p.pod) ?? 0) + 1);
  for (const e of result.errors) seen.set(e.pod, (seen.get(e.pod) ?? 0) + 1);
  for (const [name, count] of seen) {
    if (!pods.has(name)) report('account', 'no such pod', name);
    if (count > 1) report('account', `answered ${count} times`, name);
  }
  for (const pod of problem.pods) {
    if (pod.spec.nodeName || isDaemonPod(pod) || isGone(pod)) continue;
    if (!seen.has(podKey(pod))) report('account', 'neither placed nor explained', podKey(pod));
  }
  const listed = new Map<string, string>();
  result.newNodeClaims.forEach((c, i) => {
    if (c.pods.length === 0) report('account', `claim ${i} has no pods`);
    for (const p of c.pods) listed.set(p, `claim ${i}`);
  });
  for (const n of result.existingNodes) for (const p of n.pods) listed.set(p, `node ${n.name}`);
  for (const { pod, target } of result.placements) {
    const where = 'newNodeClaim' in target ? `claim ${target.newNodeClaim}` : `node ${target.node}`;
    if (listed.get(pod) !== where)
      report('account', `placed on ${where}, listed on ${listed.get(pod) ?? 'nothing'}`, pod);
    listed.delete(pod);
  }
  for (const [pod, where] of listed) report('account', `listed on ${where}, never placed`, pod);
}

function loadOf(
  claim: NewNodeClaim,
  pods: ReadonlyMap<string, Pod>,
): { requests: Amounts; ports: ReturnType<typeof hostPorts> } {
  const known = claim.pods.map((name) => pods.get(name)).filter((p) => p !== undefined);
  return {
    requests: add(...known.map((p) => podRequests(p.spec))),
    ports: known.flatMap((p) => hostPorts(p.spec)),
  };
}

function openSpot(i: number, claim: NewNodeClaim, world: World, pods: ReadonlyMap<string, Pod>): ClaimSpot | undefined {
  const pool = world.pools.get(claim.nodePool);
  if (!pool) return undefined;
  const { requests, ports } = loadOf(claim, pods);
  const launches = pool.launches(claim.requirements, claim.instanceTypes, heldReservations(claim, pool));
  return new ClaimSpot(`claim ${i}`, pool, fittingLaunches(launches, pool, requests, ports));
}

function checkClaim(
  i: number,
  claim: NewNodeClaim,
  spot: ClaimSpot | undefined,
  problem: Problem,
  pods: ReadonlyMap<string, Pod>,
  report: Report,
): void {
  const at = `claim ${i} of ${claim.nodePool}`;
  if (!spot) {
    report('pool', `${at}: no such pool, or one that may not grow`);
    return;
  }
  const { pool } = spot;
  for (const problemOfPool of pool.permits(claim.requirements)) report('pool-requirements', `${at}: ${problemOfPool}`);
  const most = problem.settings?.maxInstanceTypes ?? 600;
  if (claim.instanceTypes.length === 0) report('instance-types', `${at} lists none`);
  if (claim.instanceTypes.length > most)
    report('truncation', `${at} lists ${claim.instanceTypes.length} > ${most} types`);
  if (new Set(claim.instanceTypes).size !== claim.instanceTypes.length)
    report('instance-types', `${at} lists a type twice`);
  const { requests, ports } = loadOf(claim, pods);
  const held = heldReservations(claim, pool);
  const priceOf = new Map<string, number>();
  for (const launch of spot.launches)
    priceOf.set(launch.type.name, Math.min(priceOf.get(launch.type.name) ?? Number.POSITIVE_INFINITY, launch.price));
  for (const name of claim.instanceTypes) {
    if (priceOf.has(name)) continue;
    const type = pool.types.get(name);
    const launches = pool.launches(claim.requirements, [name], held);
    if (!type) report('instance-types', `${at}: ${name} is not sold to it`);
    // A claim that holds reservations keeps its other types where minValues asks for a choice.
    else if (launches.length === 0 && held.size > 0 && pool.minValues.size > 0) continue;
    else if (launches.length === 0)
      report('offering', `${at}: ${name} has no available offering within ${describe(claim)}`);
    else report('resources', `${at}: ${name} does not fit: ${whyNot(launches, pool, requests, ports)}`);
  }
  checkPrices(at, claim, priceOf, report);
  checkMinValues(at, claim, spot, problem, report);
  checkRequests(at, claim, spot, requests, report);
}

function describe(claim: NewNodeClaim): string {
  return claim.requirements.map((r) => `${r.key} ${r.operator} [${(r.values ?? []).join(' ')}]`).join(', ');
}

function whyNot(
  launches: readonly Launch[],
  pool: Pool,
  requests: Amounts,
  ports: ReturnType<typeof hostPorts>,
): string {
  return launches
    .map((launch) => {
      const daemons = pool.daemonsFor(launch.type);
      const over = excess(add(requests, ...daemons.map((d) => d.requests)), launch.allocatable);
      return over.length > 0 ? over.join(', ') : `host ports ${ports.map((p) => p.port).join(',')} against daemonsets`;
    })
    .join(' | ');
}

function checkPrices(at: string, claim: NewNodeClaim, priceOf: ReadonlyMap<string, number>, report: Report): void {
  let last = Number.NEGATIVE_INFINITY;
  for (const name of claim.instanceTypes) {
    const price = priceOf.get(name);
    if (price === undefined) continue;
    if (price < last - 1e-9) {
      report('order', `${at}: ${name} at ${price} comes after one at ${last}`);
      break;
    }
    last = price;
  }
  const cheapest = Math.min(...priceOf.values());
  if (Number.isFinite(cheapest) && Math.abs(cheapest - claim.price) > 1e-9 * Math.max(1, cheapest))
    report('price', `${at} says ${claim.price}; its cheapest launch costs ${cheapest}`);
}

function checkMinValues(at: string, claim: NewNodeClaim, spot: ClaimSpot, problem: Problem, report: Report): void {
  const strict = (problem.settings?.minValuesPolicy ?? 'Strict') === 'Strict';
  const claimed = new Map<string, number>();
  for (const raw of claim.requirements) {
    const e = spot.pool.normal(raw);
    if (e.minValues !== undefined) claimed.set(e.key, e.minValues);
  }
  for (const [key, wanted] of spot.pool.minValues) {
    const found = distinctValues(key, claim.instanceTypes, spot.pool);
    // The list of types is not among the requirements of a result: its minValues is the pool's.
    const goal = strict ? wanted : (claimed.get(key) ?? (claim.minValuesRelaxed ? 0 : wanted));
    if (found < goal) report('min-values', `${at}: ${found} values of ${key} < ${goal}`);
    if (strict && claimed.has(key) && claimed.get(key)! < wanted)
      report('min-values', `${at}: ${key} lowered to ${claimed.get(key)} of ${wanted} under Strict`);
  }
}

/** How many different values of a label these types offer. */
export function distinctValues(key: string, types: Iterable<string>, pool: Pool): number {
  const values = new Set<string>();
  for (const name of types) {
    const type = pool.types.get(name);
    if (!type) continue;
    const said = merged(type.requirements.map((e) => pool.normal(e))).get(key);
    for (const v of said?.members() ?? []) values.add(v);
  }
  return values.size;
}

function checkRequests(at: string, claim: NewNodeClaim, spot: ClaimSpot, requests: Amounts, report: Report): void {
  const types = claim.instanceTypes.map((n) => spot.pool.types.get(n)).filter((t) => t !== undefined);
  const groups = new Map<string, Amounts>();
  for (const type of types) {
    const daemons = spot.pool.daemonsFor(type);
    groups.set(
      daemons
        .map((d) => d.name)
        .sort()
        .join(','),
      add(...daemons.map((d) => d.requests)),
    );
  }
  // A type without any daemonset has no overhead at all: nothing is common to all.
  const overhead = smallestCommon([...groups.values()]);
  const said = amounts(claim.requests);
  const due = add(requests, overhead);
  for (const name of new Set([...said.keys(), ...due.keys()])) {
    const a = said.get(name) ?? 0n;
    const b = due.get(name) ?? 0n;
    if (a !== b) report('requests', `${at}: ${name} ${show(a)}, should be ${show(b)}`);
  }
}

/** A pool's limit must hold whichever of its types each machine turns out to be. */
function checkLimits(result: JudgedResult, world: World, report: Report): void {
  for (const pool of world.pools.values()) {
    if (!pool.limits) continue;
    const running = world.existing.filter((n) => n.pool === pool.name && !n.leaving).map((n) => n.capacity);
    const left = subtract(pool.limits, add(...running));
    const bought = result.newNodeClaims.filter((c) => c.nodePool === pool.name);
    const most = bought.map((c) => {
      const types = c.instanceTypes.map((n) => pool.types.get(n)).filter((t) => t !== undefined);
      return new Map([...largest(...types.map(capacityOf)), ['nodes', 1_000_000_000n] as const]);
    });
    const total = add(...most);
    for (const [name, room] of left) {
      const taken = total.get(name) ?? 0n;
      if (taken > 0n && taken > room)
        report('limits', `${pool.name}: ${bought.length} claims may take ${name} ${show(taken)} of ${show(room)} left`);
    }
  }
}

/** No reservation is promised to more machines than it has room for. */
function checkReservations(result: JudgedResult, world: World, report: Report): void {
  const capacity = new Map<string, number>();
  for (const pool of world.pools.values()) {
    if (!pool.reservationLabel) continue;
    for (const type of pool.types.values())
      for (const o of type.offerings) {
        const id = merged(o.requirements).get(pool.reservationLabel)?.members()?.[0];
        if (id === undefined) continue;
        const room = o.reservationCapacity ?? 0;
        capacity.set(id, Math.min(room, capacity.get(id) ?? room));
      }
  }
  const promised = new Map<string, number>();
  for (const claim of result.newNodeClaims) {
    const pool = world.pools.get(claim.nodePool);
    if (!pool) continue;
    for (const id of heldReservations(claim, pool)) promised.set(id, (promised.get(id) ?? 0) + 1);
  }
  for (const [id, count] of promised)
    if (count > (capacity.get(id) ?? 0))
      report('reservation', `${id} is promised ${count} times, has ${capacity.get(id) ?? 0}`);
}
