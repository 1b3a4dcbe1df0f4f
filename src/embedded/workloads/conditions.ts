// SPDX-License-Identifier: Apache-2.0
// Lists of conditions: one per type, changed only when something about them changed.

interface ConditionLike {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
}

/**
 * The list with `next` in it. A condition with the same status and reason stays as it is; one with the same status
 * keeps its transition time.
 */
export function withCondition<C extends ConditionLike>(conditions: readonly C[] | undefined, next: C): C[] {
  const list = conditions ?? [];
  const current = list.find((condition) => condition.type === next.type);
  if (current && current.status === next.status && current.reason === next.reason) return [...list];
  const kept = current?.status === next.status ? current.lastTransitionTime : undefined;
  const entry = kept === undefined ? next : { ...next, lastTransitionTime: kept };
  return [...list.filter((condition) => condition.type !== next.type), entry];
}

export function withoutCondition<C extends ConditionLike>(conditions: readonly C[] | undefined, type: string): C[] {
  return (conditions ?? []).filter((condition) => condition.type !== type);
}

export function findCondition<C extends ConditionLike>(
  conditions: readonly C[] | undefined,
  type: string,
): C | undefined {
  return conditions?.find((condition) => condition.type === type);
}
