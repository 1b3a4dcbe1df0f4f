// SPDX-License-Identifier: Apache-2.0
// Status conditions as a set with a root: `Ready` follows from the conditions it depends on. Pure functions: they take
// the object and the time, and give the new list; writing it is up to the caller.
import { KarpenterError } from '../base/errors.ts';
import { chain, compareStrings } from '../base/order.ts';
import type { Condition } from './shared-schemas.ts';

export type { Condition };

/** The condition that sums up the others. */
export const readyCondition = 'Ready';

export const nodePoolConditions = {
  validationSucceeded: 'ValidationSucceeded',
  nodeClassReady: 'NodeClassReady',
  /** Does not gate Ready. */
  nodeRegistrationHealthy: 'NodeRegistrationHealthy',
} as const;

export const nodeClaimConditions = {
  launched: 'Launched',
  registered: 'Registered',
  initialized: 'Initialized',
  consolidatable: 'Consolidatable',
  drifted: 'Drifted',
  drained: 'Drained',
  volumesDetached: 'VolumesDetached',
  instanceTerminating: 'InstanceTerminating',
  consistentStateFound: 'ConsistentStateFound',
  disruptionReason: 'DisruptionReason',
} as const;

/** A root condition and those it depends on. All of them are always present; others come and go. */
export interface ConditionTypes {
  readonly root: string;
  readonly dependents: readonly string[];
}

export const nodePoolConditionTypes: ConditionTypes = {
  root: readyCondition,
  dependents: [nodePoolConditions.validationSucceeded, nodePoolConditions.nodeClassReady],
};
export const nodeClaimConditionTypes: ConditionTypes = {
  root: readyCondition,
  dependents: [nodeClaimConditions.launched, nodeClaimConditions.registered, nodeClaimConditions.initialized],
};

/** What these functions look at in an object. */
export interface Conditioned {
  readonly metadata: {
    readonly generation?: number;
    readonly creationTimestamp?: string | null;
    readonly deletionTimestamp?: string;
  };
  readonly status?: { readonly conditions?: readonly Condition[] };
}

/** A condition as a controller states it; time and generation are stamped. */
export interface ConditionUpdate {
  readonly type: string;
  readonly status: Condition['status'];
  readonly reason: string;
  readonly message?: string;
}

/** Clearing a condition that the root depends on. */
export class ConditionError extends KarpenterError {
  constructor(type: string) {
    super('KRP_CONDITION_DEPENDENT', `condition ${type} is always present and cannot be cleared`, {
      details: { type },
    });
  }
}

/** The condition of a type, if the object has it. */
export function getCondition(object: Conditioned, type: string): Condition | undefined {
  return conditionIn(object.status?.conditions, type);
}

/** By hand: every look at a NodeClaim asks for several of them. */
function conditionIn(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  if (conditions) for (let i = 0; i < conditions.length; i++) if (conditions[i]!.type === type) return conditions[i];
  return undefined;
}

/** Whether all of the given conditions are present and True. */
export function hasTrueConditions(object: Conditioned, ...types: readonly string[]): boolean {
  return types.every((type) => getCondition(object, type)?.status === 'True');
}

/** `True` with the type as the reason: the usual way to say that something went well. */
export function trueCondition(type: string, reason: string = type, message = ''): ConditionUpdate {
  return { type, status: 'True', reason, message };
}

/** `False` with what went wrong. */
export function falseCondition(type: string, reason: string, message: string): ConditionUpdate {
  return { type, status: 'False', reason, message };
}

/** `Unknown`; without a reason, nobody has looked yet. */
export function unknownCondition(
  type: string,
  reason = 'AwaitingReconciliation',
  message = 'object is awaiting reconciliation',
): ConditionUpdate {
  return { type, status: 'Unknown', reason, message };
}

/**
 * The conditions of an object with the root and all dependents present: missing ones are Unknown since the object was
 * created. Gives the list of the object itself when none is missing. `now` is RFC 3339.
 */
export function completeConditions(types: ConditionTypes, object: Conditioned, now: string): readonly Condition[] {
  let conditions = object.status?.conditions ?? [];
  const require = (type: string): void => {
    if (conditionIn(conditions, type)) return;
    conditions = withCondition(types, object, conditions, unknownCondition(type), now);
  };
  require(types.root);
  for (const type of types.dependents) require(type);
  return conditions;
}

/**
 * The conditions after one is set: missing dependents are added first, observedGeneration is stamped,
 * lastTransitionTime moves only when the status changes, and the root is computed anew. Gives the list of the object
 * itself when nothing changes, so `===` tells whether to write. `now` is RFC 3339.
 */
export function setCondition(
  types: ConditionTypes,
  object: Conditioned,
  update: ConditionUpdate,
  now: string,
): readonly Condition[] {
  return withCondition(types, object, completeConditions(types, object, now), update, now);
}

/** The conditions without one of the independent ones. Throws ConditionError for the root and its dependents. */
export function clearCondition(types: ConditionTypes, object: Conditioned, type: string): readonly Condition[] {
  if (isDependent(types, type)) throw new ConditionError(type);
  const conditions = object.status?.conditions ?? [];
  if (!conditionIn(conditions, type)) return conditions;
  return conditions.filter((condition) => condition.type !== type).sort(order(types));
}

function isDependent(types: ConditionTypes, type: string): boolean {
  return type === types.root || types.dependents.includes(type);
}

function withCondition(
  types: ConditionTypes,
  object: Conditioned,
  conditions: readonly Condition[],
  update: ConditionUpdate,
  now: string,
): readonly Condition[] {
  const generation = object.metadata.generation ?? 0;
  const old = conditionIn(conditions, update.type);
  if (old && says(old, update, generation)) return conditions;
  const since = old
    ? old.status === update.status
      ? old.lastTransitionTime
      : now
    : firstSeen(types, object, update, now);
  const next: Condition = {
    type: update.type,
    status: update.status,
    lastTransitionTime: since,
    reason: update.reason,
    message: update.message ?? '',
    observedGeneration: generation,
  };
  // Nothing reconciles the other conditions of an object that is going away: they count as up to date.
  const deleting = object.metadata.deletionTimestamp !== undefined;
  const others = conditions
    .filter((condition) => condition.type !== update.type)
    .map((condition) => (deleting ? { ...condition, observedGeneration: generation } : condition));
  const all = [...others, next].sort(order(types));
  return update.type === types.root ? all : withCondition(types, object, all, rootOf(types, all, generation), now);
}

function firstSeen(types: ConditionTypes, object: Conditioned, update: ConditionUpdate, now: string): string {
  return isDependent(types, update.type) ? (object.metadata.creationTimestamp ?? now) : now;
}

/** Whether a condition says already what it is to say. */
function says(condition: Condition, update: ConditionUpdate, generation: number): boolean {
  return (
    condition.status === update.status &&
    condition.reason === update.reason &&
    (condition.message ?? '') === (update.message ?? '') &&
    (condition.observedGeneration ?? 0) === generation
  );
}

function rootOf(types: ConditionTypes, conditions: readonly Condition[], generation: number): ConditionUpdate {
  const unhealthy = conditions
    .filter(
      (condition) =>
        types.dependents.includes(condition.type) &&
        (condition.status !== 'True' || (condition.observedGeneration ?? 0) !== generation),
    )
    .sort(chain((a, b) => timeOf(b) - timeOf(a), byType));
  if (unhealthy.length === 0) return trueCondition(types.root);
  const failed = unhealthy.some(
    (condition) => condition.status === 'False' && (condition.observedGeneration ?? 0) === generation,
  );
  const message = unhealthy.map((condition) => `${condition.type}=${condition.status}`).join(', ');
  return failed
    ? falseCondition(types.root, 'UnhealthyDependents', message)
    : unknownCondition(types.root, 'ReconcilingDependents', message);
}

type ByOrder = (a: Condition, b: Condition) => number;

/** Of each set of types. There are few, and conditions are sorted whenever one changes. */
const orders = new WeakMap<ConditionTypes, ByOrder>();

/** By time of transition, the root last; by type where the times are equal. */
function order(types: ConditionTypes): ByOrder {
  let known = orders.get(types);
  if (!known) {
    const rootLast = (condition: Condition): number => (condition.type === types.root ? 1 : 0);
    known = (a, b) => rootLast(a) - rootLast(b) || timeOf(a) - timeOf(b) || byType(a, b);
    orders.set(types, known);
  }
  return known;
}

function byType(a: Condition, b: Condition): number {
  return compareStrings(a.type, b.type);
}

/** Times that were read before: conditions are sorted by them whenever one changes. */
const readBefore = new Map<string, number>();
const mostReadBefore = 10_000;

function timeOf({ lastTransitionTime }: Condition): number {
  let time = readBefore.get(lastTransitionTime);
  if (time === undefined) {
    const read = Date.parse(lastTransitionTime);
    time = Number.isNaN(read) ? 0 : read;
    if (readBefore.size >= mostReadBefore) readBefore.clear();
    readBefore.set(lastTransitionTime, time);
  }
  return time;
}
