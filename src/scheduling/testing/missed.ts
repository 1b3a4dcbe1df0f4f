// SPDX-License-Identifier: Apache-2.0
// Pods that a result leaves out although, in the end, a place for them is plain to see: on a node as it is, on a claim
// made a little narrower, or on a machine of their own.
import type { Pod } from '../objects.ts';
import type { NewNodeClaim, SolveResult } from '../problem.ts';
import { type Amounts, add, excess, largest, subtract } from './amounts.ts';
import { capacityOf, heldReservations, type Launch, merged, type Pool } from './catalogue.ts';
import { capacityTypeLabel, hostPorts, podKey, zoneLabel } from './pod-rules.ts';
import { ClaimSpot, fittingLaunches } from './spots.ts';
import type { Expression } from './values.ts';
import type { World } from './world.ts';

export interface Missed {
  readonly pod: string;
  readonly place: string;
}

export function findMissed(
  world: World,
  result: Pick<SolveResult, 'newNodeClaims' | 'errors'>,
  spots: readonly (ClaimSpot | undefined)[],
): Missed[] {
  const found: Missed[] = [];
  // A reservation narrows a claim when all is decided: what that frees, nobody could know on the way.
  if (result.newNodeClaims.some((c) => (c.reservations?.length ?? 0) > 0)) return found;
  const pods = new Map(world.problem.pods.map((p) => [podKey(p), p]));
  const left = remainingLimits(world, result.newNodeClaims);
  for (const error of result.errors) {
    const pod = pods.get(error.pod);
    if (!pod || error.deferred || isUnusable(world, pod) || countsInDoubt(pod) || losesTerms(world, pod)) continue;
    const place = placeFor(world, pod, result.newNodeClaims, spots, left);
    if (place) found.push({ pod: error.pod, place });
  }
  return found;
}

function placeFor(
  world: World,
  pod: Pod,
  claims: readonly NewNodeClaim[],
  spots: readonly (ClaimSpot | undefined)[],
  left: ReadonlyMap<string, Amounts | undefined>,
): string | undefined {
  for (const spot of world.spots.values())
    if (!spot.existing.leaving && world.check(pod, spot, true).length === 0) return spot.id;
  for (let i = 0; i < claims.length; i++) {
    const spot = spots[i];
    if (!spot) continue;
    const claim = claims[i]!;
    const held = heldReservations(claim, spot.pool);
    const load = world.load(spot);
    const narrowed = narrow(
      world,
      pod,
      spot.pool,
      claim.requirements,
      claim.instanceTypes,
      held,
      load.requests,
      load.ports,
      spot.id,
    );
    for (const candidate of narrowed) {
      if (load.ports.length > 0 && conflicts(world, pod, spot)) continue;
      // Topology looks at the narrower node, ports and load at the one that has the pods.
      if (world.check(pod, candidate, true, spot).length === 0) return candidate.id;
    }
  }
  for (const pool of world.pools.values()) {
    const room = left.get(pool.name);
    // A limit is reckoned with when a machine is planned, at the largest it may become: it may shrink later, and nobody
    // need come back for what that frees.
    if (room && claims.some((c) => c.nodePool === pool.name)) continue;
    const types = [...pool.types.values()].filter((t) => !room || excess(limitView(capacityOf(t)), room).length === 0);
    const fresh = narrow(
      world,
      pod,
      pool,
      [],
      types.map((t) => t.name),
      new Set(),
      new Map(),
      [],
      `a new machine of ${pool.name}`,
    );
    for (const candidate of fresh) if (world.check(pod, candidate, true).length === 0) return candidate.id;
  }
  return undefined;
}

function limitView(capacity: Amounts): Amounts {
  return new Map([...capacity, ['nodes', 1_000_000_000n]]);
}

function conflicts(world: World, pod: Pod, spot: ClaimSpot): boolean {
  return world.check(pod, spot).some((v) => v.rule === 'host-port');
}

/** The ways to make a machine fit a pod: each OR term, each volume alternative, each zone and capacity type. */
function narrow(
  world: World,
  pod: Pod,
  pool: Pool,
  requirements: readonly Expression[],
  types: readonly string[],
  held: ReadonlySet<string>,
  load: Amounts,
  ports: ReturnType<typeof hostPorts>,
  id: string,
): ClaimSpot[] {
  const requests = add(load, world.requests.get(podKey(pod))!);
  const allPorts = [...ports, ...hostPorts(pod.spec)];
  const volumes = world.volumes.needsOf(pod).topology;
  const found: ClaimSpot[] = [];
  for (const term of pool.terms(pod.spec)) {
    if (!term.every((e) => mayAskFor(pool, e))) continue;
    for (const volume of product(volumes)) {
      const base = [...requirements, ...term, ...volume.map((e) => pool.normal(e))];
      const launches = fittingLaunches(pool.launches(base, types, held), pool, requests, allPorts);
      for (const group of byZone(launches)) {
        if (meetsMinValues(pool, group)) found.push(new ClaimSpot(id, pool, group));
      }
    }
  }
  return found;
}

/** Whether a pod may ask this pool for the label at all: its template names it, or its cloud knows it. */
function mayAskFor(pool: Pool, e: Expression): boolean {
  return (
    e.operator === 'NotIn' || e.operator === 'DoesNotExist' || pool.template.has(e.key) || pool.wellKnown.has(e.key)
  );
}

function product(volumes: readonly (readonly (readonly Expression[])[])[]): Expression[][] {
  let all: Expression[][] = [[]];
  for (const alternatives of volumes) all = all.flatMap((chosen) => alternatives.map((a) => [...chosen, ...a]));
  return all.slice(0, 64);
}

function byZone(launches: readonly Launch[]): Launch[][] {
  const groups = new Map<string, Launch[]>();
  for (const l of launches) {
    const key = [zoneLabel, capacityTypeLabel].map((k) => l.labels.get(k)?.values.toString()).join('|');
    groups.set(key, [...(groups.get(key) ?? []), l]);
  }
  return [...groups.values()];
}

function meetsMinValues(pool: Pool, launches: readonly Launch[]): boolean {
  if (launches.length === 0) return false;
  const types = new Set(launches.map((l) => l.type));
  for (const [key, wanted] of pool.minValues) {
    const values = new Set<string>();
    for (const t of types)
      for (const v of merged(t.requirements.map((e) => pool.normal(e)))
        .get(key)
        ?.members() ?? [])
        values.add(v);
    if (values.size < wanted) return false;
  }
  return true;
}

function remainingLimits(world: World, claims: readonly NewNodeClaim[]): Map<string, Amounts | undefined> {
  const left = new Map<string, Amounts | undefined>();
  for (const pool of world.pools.values()) {
    if (!pool.limits) {
      left.set(pool.name, undefined);
      continue;
    }
    const running = world.existing.filter((n) => n.pool === pool.name && !n.leaving).map((n) => n.capacity);
    const bought = claims
      .filter((c) => c.nodePool === pool.name)
      .map((c) => {
        const types = c.instanceTypes.map((n) => pool.types.get(n)).filter((t) => t !== undefined);
        return limitView(largest(...types.map(capacityOf)));
      });
    const room = subtract(pool.limits, add(...running, ...bought));
    // A resource without a limit has room for anything.
    left.set(pool.name, new Proxy(room, { get: unlimited }));
  }
  return left;
}

/** A map that answers "no limit" for what it does not hold. */
function unlimited(target: Map<string, bigint>, property: string | symbol): unknown {
  if (property === 'get') return (name: string) => target.get(name) ?? 2n ** 200n;
  const value: unknown = Reflect.get(target, property, target);
  return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
}

/**
 * A spread whose counting depends on the pod's own node affinity: whether a node to come counts is decided by a type that
 * is not chosen yet, and a careful scheduler counts it.
 */
function countsInDoubt(pod: Pod): boolean {
  const spread = (pod.spec.topologySpreadConstraints ?? []).filter((c) => c.whenUnsatisfiable === 'DoNotSchedule');
  const choosy = pod.spec.nodeSelector !== undefined || pod.spec.affinity?.nodeAffinity !== undefined;
  return choosy && spread.some((c) => c.nodeAffinityPolicy !== 'Ignore');
}

/**
 * Several OR terms and something soft beside them: upstream's order of relaxation drops a term that fits before it lets
 * go of a preference or puts up with a soft taint. That order is part of the contract.
 */
function losesTerms(world: World, pod: Pod): boolean {
  const affinity = pod.spec.affinity;
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const soft =
    [affinity?.nodeAffinity, affinity?.podAffinity, affinity?.podAntiAffinity].some(
      (a) => (a?.preferredDuringSchedulingIgnoredDuringExecution?.length ?? 0) > 0,
    ) ||
    (pod.spec.topologySpreadConstraints ?? []).some((c) => c.whenUnsatisfiable === 'ScheduleAnyway') ||
    [...world.pools.values()].some((p) => p.taints.some((t) => t.effect === 'PreferNoSchedule'));
  return terms.length > 1 && soft;
}

/** Pods that no scheduler of ours may take, whatever the room: they ask for what nobody may ask for, or their volumes are broken. */
export function isUnusable(world: World, pod: Pod): boolean {
  const affinity = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const terms = affinity?.nodeSelectorTerms ?? [];
  if (terms.some((t) => (t.matchFields?.length ?? 0) > 0)) return true;
  const keys = [
    ...Object.keys(pod.spec.nodeSelector ?? {}),
    ...terms.flatMap((t) => (t.matchExpressions ?? []).map((e) => e.key)),
  ];
  if (keys.some((k) => k === 'kubernetes.io/hostname')) return true;
  const restricted = (k: string) =>
    /(^|\.)karpenter\.sh\//.test(k) && k !== 'karpenter.sh/nodepool' && k !== capacityTypeLabel;
  if (keys.some(restricted)) return true;
  if (
    terms.some((t) =>
      (t.matchExpressions ?? []).some((e) => e.key === 'karpenter.sh/nodepool' && e.operator === 'DoesNotExist'),
    )
  )
    return true;
  return world.volumes.isBroken(pod);
}
