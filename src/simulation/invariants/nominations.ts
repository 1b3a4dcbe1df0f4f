// SPDX-License-Identifier: Apache-2.0
// A machine that was bought for pods is there for them, however long kube-scheduler takes to place them.
import type { NodeClaim } from '../../api/node-claim.ts';
import type { Event, Node, Pod } from '../../kube/kinds.ts';
import { collections } from '../collections.ts';
import type { Change, Facts, Invariant } from '../contract.ts';
import type { Fleet } from '../process/fleet.ts';
import { hasRoom, tolerates } from './placement.ts';
import { claimTold, disruptionReason, isGoing, isOurs, minute, nameOf, nodeOfClaim, voluntary } from './reading.ts';

/** A process that hung, or whose clock was wrong, may have let a promise lapse. */
const surpriseMs = 2 * minute;

interface Promised {
  readonly claim: string;
  readonly by: string;
}

/** A node is not taken away, whatever for, while a pod waits that it was bought for, and that could run there. */
export function keptForPods({ fleet }: { readonly fleet: Fleet }): Invariant {
  const promised = new Map<string, Promised>();
  const told = ({ event, by }: Change): void => {
    const { message = '', involvedObject } = event.object as Event;
    const [uid, claim] = [involvedObject.uid ?? '', claimTold(event.object as Event)];
    if (claim === undefined) return;
    if (!message.includes('node/')) promised.set(uid, { claim, by });
    // Planned onto a node that is there already, it may go elsewhere in the next pass, and waits for no other machine.
    else if (promised.get(uid)?.claim !== claim) promised.delete(uid);
  };
  const placed = ({ event }: Change): void => {
    const { spec, metadata } = event.object as Pod;
    if (spec.nodeName || event.type === 'DELETED') promised.delete(metadata.uid ?? '');
  };
  return {
    name: 'nodes/kept-for-pods',
    onChange(change, facts, report) {
      const { collection, event, by } = change;
      if (collection === collections.pods) return placed(change);
      if (!isOurs(change)) return;
      if (collection === collections.events) return told(change);
      if (collection !== collections.claims || event.type !== 'MODIFIED') return;
      const claim = event.object as NodeClaim;
      const reason = disruptionReason(claim) ?? '';
      if (!voluntary.has(reason) || disruptionReason(event.previous as NodeClaim) !== undefined) return;
      report.checked();
      const process = fleet.alive.find(({ name }) => name === by);
      const node = nodeOfClaim(facts, claim);
      if (!process || !node || !isSteady(process, facts) || !isOpen(node)) return;
      for (const [uid, { claim: name, by: who }] of promised) {
        if (name !== claim.metadata.name || who !== by) continue;
        const pod = facts.list<Pod>(collections.pods).find(({ metadata }) => metadata.uid === uid);
        if (pod && waits(pod) && fits(facts, pod, node))
          report.violated(`NodeClaim ${name} goes (${reason}), and ${nameOf(pod)} was told to wait for it`);
      }
    },
  };
}

function isSteady({ clock, resumedAt, isHung }: Fleet['alive'][number], { now }: Facts): boolean {
  return !isHung && clock.skewMs === 0 && now - clock.correctedAt > surpriseMs && now - resumedAt > surpriseMs;
}

/** Nobody closed it, and its kubelet is there. */
function isOpen({ spec, status }: Node): boolean {
  return !spec?.unschedulable && status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
}

function waits(pod: Pod): boolean {
  return !pod.spec.nodeName && !isGoing(pod);
}

/** Whether it could run there, as far as that is easily told. */
function fits(facts: Facts, pod: Pod, node: Node): boolean {
  const { affinity, topologySpreadConstraints = [], volumes = [], nodeSelector = {} } = pod.spec;
  if (affinity || topologySpreadConstraints.length > 0 || volumes.length > 0) return false;
  const taints = (node.spec?.taints ?? []).filter(({ key }) => !key.startsWith('karpenter.sh/'));
  return (
    taints.every((taint) => taint.effect === 'PreferNoSchedule' || tolerates(pod, taint)) &&
    Object.entries(nodeSelector).every(([key, value]) => node.metadata.labels?.[key] === value) &&
    hasRoom(facts, node, pod)
  );
}
