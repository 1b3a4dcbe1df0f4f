// SPDX-License-Identifier: Apache-2.0
// Which Machines of a MachineSet go first: those already going, the marked, the unhealthy, then by policy.
import { chain, compareStrings } from '../../../base/order.ts';
import { parseTime } from '../../../kube/time.ts';
import { type Machine, names } from './objects.ts';

const [going, marked, unhealthy, indifferent] = [100, 75, 50, 20] as const;
const tenDaysMs = 10 * 24 * 3_600_000;

/** The higher, the sooner it goes. */
export function deletePriority(machine: Machine, policy: string | undefined, now: number): number {
  if (machine.metadata.deletionTimestamp !== undefined) return going;
  if (machine.metadata.annotations?.[names.deleteMachine] !== undefined) return marked;
  if (isUnhealthy(machine)) return unhealthy;
  if (policy !== 'Oldest' && policy !== 'Newest') return indifferent;
  const age = Math.max(0, now - parseTime(machine.metadata.creationTimestamp ?? ''));
  const grown = 50 * (1 - Math.exp(-age / tenDaysMs));
  return policy === 'Oldest' ? grown : 50 - grown;
}

function isUnhealthy({ status }: Machine): boolean {
  if (!status?.nodeRef || status.failureReason || status.failureMessage) return true;
  return status.conditions?.some((c) => c.type === 'NodeHealthy' && c.status !== 'True') ?? false;
}

/** The Machines in the order they go. */
export function byDeletePriority(machines: readonly Machine[], policy: string | undefined, now: number): Machine[] {
  const priorities = new Map(machines.map((machine) => [machine, deletePriority(machine, policy, now)]));
  return [...machines].sort(
    chain(
      (a, b) => priorities.get(b)! - priorities.get(a)!,
      (a, b) => compareStrings(a.metadata.name ?? '', b.metadata.name ?? ''),
    ),
  );
}
