// SPDX-License-Identifier: Apache-2.0
// How pods are moved: they are asked by the eviction API, which knows their budgets; protected ones are left alone; and
// nobody's time to end is cut short before the node's own time is over.
import type { NodeClaim } from '../../api/node-claim.ts';
import type { Node, Pod } from '../../kube/kinds.ts';
import { collections } from '../collections.ts';
import type { Change, Facts, Invariant, Report } from '../contract.ts';
import { beginsDeletion, drainDeadline, hasEnded, isOurs, isProtected, minute, nameOf, second } from './reading.ts';

/** Clocks of processes may be off by two minutes while that fault is on. */
const wrongClockMs = 3 * minute;

export function podsMovedGently(): Invariant {
  /** By the id of the machine: the earliest it was given. Somebody may take the NodeClaim away; its drain goes on as it began. */
  const deadlines = new Map<string, number>();
  /** By name of a Node that is gone: its machine. The last of its pods may be deleted a moment after it. */
  const machines = new Map<string, string>();
  return {
    name: 'pods/moved-gently',
    onChange(change, facts, report) {
      if (change.collection === collections.claims) noteDeadline(deadlines, change.event.object as NodeClaim);
      if (change.collection === collections.nodes) noteEnd(machines, change);
      if (change.collection !== collections.pods || !isOurs(change) || !beginsDeletion(change)) return;
      report.checked();
      const pod = (change.event.previous ?? change.event.object) as Pod;
      const { nodeName = '' } = pod.spec;
      const node = facts.get<Node>(collections.nodes, '', nodeName);
      const machine = node ? node.spec?.providerID : machines.get(nodeName);
      judge(change, pod, deadlines.get(machine ?? ''), facts, report);
    },
  };
}

/** `deadline`: when its node must be empty; undefined where nothing says so. */
function judge(change: Change, pod: Pod, deadline: number | undefined, facts: Facts, report: Report): void {
  const tolerance = facts.calmSince === undefined ? wrongClockMs : 2 * second;
  const grace = (pod.spec.terminationGracePeriodSeconds ?? 30) * second;
  const timeIsOver = deadline !== undefined && deadline - grace <= facts.now + tolerance;
  // Also by a clock that is ahead.
  if (isProtected(pod, facts.now + tolerance) && !timeIsOver) {
    report.violated(`pod ${nameOf(pod)} was moved although it is protected (${change.request})`);
  }
  const asked = change.request.startsWith('POST') && change.request.endsWith('/eviction');
  if (!asked && !timeIsOver) {
    report.violated(`pod ${nameOf(pod)} was deleted without asking its budget (${change.request})`);
  }
  const left = deadline === undefined ? grace : Math.min(grace, Math.max(0, deadline - facts.now));
  const given = givenToEnd(change, pod);
  if (given !== undefined && given < left - tolerance) {
    report.violated(`pod ${nameOf(pod)} got ${given / second} s to end, not ${left / second}`);
  }
}

function noteDeadline(deadlines: Map<string, number>, claim: NodeClaim): void {
  const at = drainDeadline(claim);
  const id = claim.status?.providerID;
  if (at === undefined || !id) return;
  deadlines.set(id, Math.min(at, deadlines.get(id) ?? at));
}

function noteEnd(machines: Map<string, string>, { event }: Change): void {
  const { metadata, spec } = (event.previous ?? event.object) as Node;
  if (event.type === 'DELETED' && spec?.providerID) machines.set(nameOf({ metadata }), spec.providerID);
}

/** How long the pod was given, in ms; undefined for one that has ended or not begun, and needs no time. */
function givenToEnd({ event }: Change, pod: Pod): number | undefined {
  if (event.type !== 'MODIFIED' || hasEnded(pod) || pod.status?.phase === 'Pending') return undefined;
  return (event.object.metadata.deletionGracePeriodSeconds ?? 0) * second;
}
