// SPDX-License-Identifier: Apache-2.0
// The taints we put on nodes, and those a young node carries for a while whoever put them there.
import type { Taint } from './shared-schemas.ts';

/** On a node that is being disrupted: nothing new is placed there. */
export const disruptedTaint: Readonly<Taint> = { key: 'karpenter.sh/disrupted', effect: 'NoSchedule' };

/** On a node that is going to be disrupted as soon as a budget allows: pods had better go elsewhere. */
export const leavingTaint: Readonly<Taint> = { key: 'karpenter.sh/leaving', effect: 'PreferNoSchedule' };

/** On a machine from its birth until we have seen it register. */
export const unregisteredTaint: Readonly<Taint> = { key: 'karpenter.sh/unregistered', effect: 'NoExecute' };

/** Taints that come and go while a node starts. They do not stop a plan, and must be gone before it counts as initialised. */
export const knownEphemeralTaints: readonly Readonly<Taint>[] = [
  { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' },
  { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' },
  unregisteredTaint,
];

// The node readiness controller names its taints after its rules.
const ephemeralKeyPrefixes = ['readiness.k8s.io/'] as const;

/** What identifies a taint on a node: there is at most one per key and effect. */
type TaintIdentity = { readonly key: string; readonly effect: string };

/** Whether two taints are the same one; their values may differ. */
export function isSameTaint(a: TaintIdentity, b: TaintIdentity): boolean {
  return a.key === b.key && a.effect === b.effect;
}

/** Whether a taint is expected to go away by itself while a node starts. */
export function isKnownEphemeralTaint(taint: TaintIdentity): boolean {
  return (
    knownEphemeralTaints.some((known) => isSameTaint(known, taint)) ||
    ephemeralKeyPrefixes.some((prefix) => taint.key.startsWith(prefix))
  );
}

/** The first list, and what the second adds to it: where both have a taint, the first wins. */
export function mergeTaints<T extends TaintIdentity>(first: readonly T[], second: readonly T[]): T[] {
  const merged = [...first];
  for (const taint of second) if (!merged.some((known) => isSameTaint(known, taint))) merged.push(taint);
  return merged;
}
