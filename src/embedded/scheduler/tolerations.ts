// SPDX-License-Identifier: Apache-2.0
// Taints against tolerations.
import type { Taint, Toleration } from '../../kube/kinds.ts';

/** Whether one toleration covers one taint. An empty key with Exists covers all, an empty effect every effect. */
export function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false;
  if (toleration.key && toleration.key !== taint.key) return false;
  if ((toleration.operator ?? 'Equal') === 'Exists') return true;
  return Boolean(toleration.key) && (toleration.value ?? '') === (taint.value ?? '');
}

/** The first taint with one of `effects` that no toleration covers. */
export function untoleratedTaint(
  taints: readonly Taint[] | undefined,
  tolerations: readonly Toleration[],
  effects: readonly string[],
): Taint | undefined {
  return taints?.find((taint) => effects.includes(taint.effect) && !tolerations.some((t) => tolerates(t, taint)));
}

/** The effects that keep a pod from being placed. */
export const blockingEffects = ['NoSchedule', 'NoExecute'] as const;

/** Whether every taint given is covered. */
export function toleratesAll(tolerations: readonly Toleration[], taints: readonly Taint[]): boolean {
  return taints.every((taint) => tolerations.some((toleration) => tolerates(toleration, taint)));
}
