// SPDX-License-Identifier: Apache-2.0
// How many replicas each ReplicaSet of a Deployment should have next: pure arithmetic.
import { chain, compareStrings } from '../../../base/order.ts';
import type { Deployment, ReplicaSet } from '../../../kube/kinds.ts';
import { scaled } from '../int-or-percent.ts';

export const desiredReplicasAnnotation = 'deployment.kubernetes.io/desired-replicas';
export const maxReplicasAnnotation = 'deployment.kubernetes.io/max-replicas';

/** A ReplicaSet and the size it should get. */
export interface Scaling {
  readonly set: ReplicaSet;
  readonly replicas: number;
}

export function replicasOf(object: { spec: { replicas?: number } }): number {
  return object.spec.replicas ?? 1;
}

export function totalReplicas(sets: readonly ReplicaSet[]): number {
  return sets.reduce((sum, set) => sum + replicasOf(set), 0);
}

export function isRolling(deployment: Deployment): boolean {
  return (deployment.spec.strategy?.type ?? 'RollingUpdate') === 'RollingUpdate';
}

/** maxSurge and maxUnavailable as numbers; never both zero, or nothing could move. */
function fenceposts(deployment: Deployment): { surge: number; unavailable: number } {
  const rolling = deployment.spec.strategy?.rollingUpdate;
  const replicas = replicasOf(deployment);
  const surge = scaled(rolling?.maxSurge ?? '25%', replicas, 'up');
  const unavailable = scaled(rolling?.maxUnavailable ?? '25%', replicas, 'down');
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

export function maxSurge(deployment: Deployment): number {
  return isRolling(deployment) ? fenceposts(deployment).surge : 0;
}

export function maxUnavailable(deployment: Deployment): number {
  if (!isRolling(deployment) || replicasOf(deployment) === 0) return 0;
  return Math.min(fenceposts(deployment).unavailable, replicasOf(deployment));
}

/** The size of the new ReplicaSet, given all sets (the new one included when it exists). */
export function newSetReplicas(deployment: Deployment, all: readonly ReplicaSet[], current: number): number {
  const wanted = replicasOf(deployment);
  if (!isRolling(deployment) || current >= wanted) return wanted;
  const room = wanted + maxSurge(deployment) - totalReplicas(all);
  return room <= 0 ? current : current + Math.min(room, wanted - current);
}

/** Old sets to shrink in a rolling update, without going below what must be available. */
export function shrinkOldSets(deployment: Deployment, old: readonly ReplicaSet[], fresh: ReplicaSet): Scaling[] {
  const minAvailable = replicasOf(deployment) - maxUnavailable(deployment);
  const newUnavailable = replicasOf(fresh) - (fresh.status?.availableReplicas ?? 0);
  const mayGo = totalReplicas(old) + replicasOf(fresh) - minAvailable - newUnavailable;
  if (mayGo <= 0) return [];
  const sizes = new Map(old.map((set) => [set, replicasOf(set)]));
  const sorted = [...old].sort(byAge);

  // Replicas that are not available go first: taking them makes nothing worse.
  let gone = 0;
  for (const set of sorted) {
    const unhealthy = sizes.get(set)! - (set.status?.availableReplicas ?? 0);
    const take = Math.min(mayGo - gone, unhealthy);
    if (take <= 0) continue;
    sizes.set(set, sizes.get(set)! - take);
    gone += take;
  }
  const available = [...old, fresh].reduce((sum, set) => sum + (set.status?.availableReplicas ?? 0), 0);
  let spare = available - minAvailable;
  for (const set of sorted) {
    const take = Math.min(spare, sizes.get(set)!);
    if (take <= 0) continue;
    sizes.set(set, sizes.get(set)! - take);
    spare -= take;
  }
  return changed(sizes);
}

/** Sizes after the Deployment itself was scaled: in the middle of a rollout the sets share the change. */
export function rescale(deployment: Deployment, old: readonly ReplicaSet[], fresh: ReplicaSet | undefined): Scaling[] {
  const wanted = replicasOf(deployment);
  const only = activeOrLatest(old, fresh);
  if (only) return changed(new Map([[only, wanted]]));
  const active = old.filter((set) => replicasOf(set) > 0);
  if (fresh && isSaturated(deployment, fresh)) return changed(new Map(active.map((set) => [set, 0])));
  if (!isRolling(deployment)) return [];
  const sharing = [...active, ...(fresh && replicasOf(fresh) > 0 ? [fresh] : [])];
  const allowed = wanted > 0 ? wanted + maxSurge(deployment) : 0;
  const toAdd = allowed - totalReplicas(sharing);
  if (toAdd === 0) return [];
  sharing.sort(toAdd > 0 ? largestThenNewest : largestThenOldest);
  const sizes = new Map<ReplicaSet, number>();
  let added = 0;
  for (const set of sharing) {
    const share = proportion(set, deployment, toAdd, added);
    sizes.set(set, replicasOf(set) + share);
    added += share;
  }
  const largest = sharing[0]!;
  sizes.set(largest, Math.max(0, sizes.get(largest)! + toAdd - added));
  return changed(sizes);
}

/** The one set that takes the whole change, when the others are empty. */
function activeOrLatest(old: readonly ReplicaSet[], fresh: ReplicaSet | undefined): ReplicaSet | undefined {
  const all = fresh ? [...old, fresh] : [...old];
  const active = all.filter((set) => replicasOf(set) > 0);
  if (active.length === 0) return fresh ?? [...old].sort(byAge).at(-1);
  return active.length === 1 ? active[0] : undefined;
}

function isSaturated(deployment: Deployment, set: ReplicaSet): boolean {
  const wanted = replicasOf(deployment);
  return (
    replicasOf(set) === wanted &&
    Number(set.metadata.annotations?.[desiredReplicasAnnotation]) === wanted &&
    set.status?.availableReplicas === wanted
  );
}

function proportion(set: ReplicaSet, deployment: Deployment, toAdd: number, added: number): number {
  if (replicasOf(set) === 0 || toAdd === added) return 0;
  const share = fraction(set, deployment);
  return toAdd > 0 ? Math.min(share, toAdd - added) : Math.max(share, toAdd - added);
}

function fraction(set: ReplicaSet, deployment: Deployment): number {
  const size = replicasOf(set);
  if (replicasOf(deployment) === 0) return -size;
  const before = Number(set.metadata.annotations?.[maxReplicasAnnotation]) || deployment.status?.replicas || 0;
  if (before === 0) return 0;
  const after = replicasOf(deployment) + maxSurge(deployment);
  return Math.round((size * after) / before) - size;
}

function changed(sizes: ReadonlyMap<ReplicaSet, number>): Scaling[] {
  return [...sizes]
    .filter(([set, replicas]) => replicas !== replicasOf(set))
    .map(([set, replicas]) => ({ set, replicas }));
}

/** Oldest first. */
export const byAge: (a: ReplicaSet, b: ReplicaSet) => number = chain<ReplicaSet>(
  (a, b) => compareStrings(a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? ''),
  (a, b) => compareStrings(a.metadata.name ?? '', b.metadata.name ?? ''),
);

const bySize = (a: ReplicaSet, b: ReplicaSet): number => replicasOf(b) - replicasOf(a);
const largestThenOldest = chain<ReplicaSet>(bySize, byAge);
const largestThenNewest = chain<ReplicaSet>(bySize, (a, b) => byAge(b, a));
