// SPDX-License-Identifier: Apache-2.0
// Pods sit where they may, and machines are what their NodeClaims asked for.
import type { NodeClaim } from '../../api/node-claim.ts';
import type { Node, Pod, Taint } from '../../kube/kinds.ts';
import { Quantity } from '../../kube/quantity.ts';
import { collections } from '../collections.ts';
import type { Facts, Invariant } from '../contract.ts';
import { affinityBroken } from './affinity.ts';
import { conditionTrue, hasEnded, nameOf, nodeOfClaim, podsOn } from './reading.ts';

export function placementInvariants(): Invariant[] {
  return [podsFit(), machinesAsAsked()];
}

const resources = ['cpu', 'memory', 'pods'] as const;

/** Whether one more pod fits beside those that are on a node. */
export function hasRoom(facts: Facts, node: Node, pod: Pod): boolean {
  const sum = requested([...podsOn(facts, node), pod]);
  return resources.every((name) => sum[name]! <= Quantity.parse(node.status?.allocatable?.[name] ?? 0).toNumber());
}

/** What the requests of pods come to, by resource. */
export function requested(pods: readonly Pod[]): Record<string, number> {
  const sum: Record<string, number> = { cpu: 0, memory: 0, pods: 0 };
  for (const pod of pods) {
    if (hasEnded(pod)) continue;
    sum['pods']! += 1;
    for (const { resources: of } of pod.spec.containers) {
      for (const name of ['cpu', 'memory'] as const) {
        const asked = of?.requests?.[name];
        if (asked !== undefined) sum[name]! += Quantity.parse(asked).toNumber();
      }
    }
  }
  return sum;
}

export function tolerates({ spec }: Pod, taint: Taint): boolean {
  const matches = (wanted: string | undefined, is: string): boolean => !wanted || wanted === is;
  return (spec.tolerations ?? []).some(({ key, operator, value = '', effect }) => {
    const alike = operator === 'Exists' || value === (taint.value ?? '');
    return alike && matches(key, taint.key) && matches(effect, taint.effect);
  });
}

/** What selector and taints say against a pod on a node. */
function nodeRefuses(pod: Pod, node: Node): string[] {
  const wanted = Object.entries(pod.spec.nodeSelector ?? {}).filter(
    ([key, value]) => node.metadata.labels?.[key] !== value,
  );
  const taints = (node.spec?.taints ?? []).filter(
    (taint) => taint.effect !== 'PreferNoSchedule' && !tolerates(pod, taint),
  );
  return [
    ...wanted.map(([key, value]) => `wants ${key}=${value}, and is on ${nameOf(node)}`),
    ...taints.map(({ key }) => `does not tolerate ${key} of ${nameOf(node)}`),
  ];
}

/** A pod that is placed tolerates the taints of its node, is where its selector, affinities and volumes allow, and fits. */
function podsFit(): Invariant {
  return {
    name: 'pods/fit',
    onChange(change, facts, report) {
      if (change.collection !== collections.pods || change.event.type !== 'MODIFIED') return;
      const pod = change.event.object as Pod;
      if (!pod.spec.nodeName || (change.event.previous as Pod).spec.nodeName) return;
      const node = facts.get<Node>(collections.nodes, '', pod.spec.nodeName);
      if (!node) return;
      report.checked();
      for (const why of [...nodeRefuses(pod, node), ...affinityBroken(facts, pod, node)])
        report.violated(`pod ${nameOf(pod)} ${why}`);
      const sum = requested(podsOn(facts, node));
      for (const name of resources) {
        const there = node.status?.allocatable?.[name];
        if (there !== undefined && sum[name]! > Quantity.parse(there).toNumber() + 1e-9) {
          report.violated(`node ${nameOf(node)} has ${there} ${name}, and its pods ask for ${sum[name]}`);
        }
      }
    },
  };
}

/** A node that is registered has the labels that its NodeClaim requires. */
function machinesAsAsked(): Invariant {
  return {
    name: 'machines/as-asked',
    onChange(change, facts, report) {
      if (change.collection !== collections.claims || change.event.type !== 'MODIFIED') return;
      const claim = change.event.object as NodeClaim;
      if (!conditionTrue(claim, 'Registered') || conditionTrue(change.event.previous as NodeClaim, 'Registered'))
        return;
      const node = nodeOfClaim(facts, claim);
      if (!node) return;
      report.checked();
      for (const { key, operator, values = [] } of claim.spec.requirements) {
        const value = node.metadata.labels?.[key];
        if (operator === 'In' && (value === undefined || !values.includes(value))) {
          report.violated(
            `node ${nameOf(node)} has ${key}=${value}, and its NodeClaim wants one of ${values.join(', ')}`,
          );
        }
        if (operator === 'NotIn' && value !== undefined && values.includes(value)) {
          report.violated(`node ${nameOf(node)} has ${key}=${value}, and its NodeClaim wants another`);
        }
      }
    },
  };
}
