// SPDX-License-Identifier: Apache-2.0
// Taints and tolerations, by Kubernetes' rules.
import type { Taint, Toleration } from './objects.ts';

/** The taint that nobody may place a preference against: tolerated by a pod as the last step of relaxation. */
export const preferNoSchedule = 'PreferNoSchedule';

/** What relaxation adds as its last step. */
export const toleratePreferences: Toleration = { operator: 'Exists', effect: preferNoSchedule };

/** Whether one toleration covers one taint. */
export function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false;
  if (toleration.key && toleration.key !== taint.key) return false;
  switch (toleration.operator ?? 'Equal') {
    case '':
    case 'Equal':
      // An empty key with Equal matches nothing but what Kubernetes' validation lets through.
      return toleration.key !== undefined && toleration.key !== '' && (toleration.value ?? '') === (taint.value ?? '');
    case 'Exists':
      return true;
    case 'Gt':
    case 'Lt':
      return comparesTo(toleration, taint);
    default:
      return false;
  }
}

function comparesTo(toleration: Toleration, taint: Taint): boolean {
  if (!/^-?[0-9]+$/.test(toleration.value ?? '') || !/^-?[0-9]+$/.test(taint.value ?? '')) return false;
  const bound = BigInt(toleration.value ?? '');
  const value = BigInt(taint.value ?? '');
  return toleration.operator === 'Gt' ? value > bound : value < bound;
}

/** The first taint that no toleration covers; undefined when all are tolerated. Preferences count as demands. */
export function untolerated(taints: readonly Taint[], tolerations: readonly Toleration[]): Taint | undefined {
  return taints.find((taint) => !tolerations.some((toleration) => tolerates(toleration, taint)));
}

/** `key=value:Effect`, as kubectl writes it. */
export function taintText(taint: Taint): string {
  return `${taint.key}${taint.value ? `=${taint.value}` : ''}:${taint.effect}`;
}
