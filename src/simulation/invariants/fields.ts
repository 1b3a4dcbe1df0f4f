// SPDX-License-Identifier: Apache-2.0
// What others wrote stays: a write changes only what its writer owns.
import type { Node } from '../../kube/kinds.ts';
import type { KubeObject } from '../../kube/object.ts';
import { collections } from '../collections.ts';
import type { Invariant, Report } from '../contract.ts';
import { isOurs, nameOf } from './reading.ts';

const watched = new Set<string>([collections.nodes, collections.claims, collections.pools, collections.pods]);
/** Of these the autoscaler owns what it says; of all others nothing. */
const own = /(?:^|\.|\/)(?:karpenter\.sh|kubernetes\.io|k8s\.io|karpenter\.kwok\.sh|karpenter-ts\.dev)(?:\/|$)/;

export function fieldsKept(): Invariant {
  return {
    name: 'fields/kept',
    onChange(change, _facts, report) {
      if (change.event.type !== 'MODIFIED' || !watched.has(change.collection) || !isOurs(change)) return;
      const { object, previous } = change.event;
      report.checked();
      mapKept('label', object, previous!.metadata.labels, object.metadata.labels, report);
      mapKept('annotation', object, previous!.metadata.annotations, object.metadata.annotations, report);
      holdersKept(object, previous!, report);
      if (change.collection === collections.nodes) nodeKept(object as Node, previous as Node, report);
      if (change.collection === collections.pools && !same((object as Specced).spec, (previous as Specced).spec)) {
        report.violated(`the spec of NodePool ${nameOf(object)} was changed (${change.request})`);
      }
    },
  };
}

interface Specced extends KubeObject {
  readonly spec?: unknown;
}

function mapKept(
  what: string,
  object: KubeObject,
  before: Readonly<Record<string, string>> = {},
  after: Readonly<Record<string, string>> = {},
  report: Report,
): void {
  for (const [key, value] of Object.entries(before)) {
    if (after[key] !== value && !own.test(key.split('/')[0] ?? '')) {
      report.violated(`${what} ${key} of ${object.kind} ${nameOf(object)} was ${value} and is ${after[key]}`);
    }
  }
}

/** Whoever else has something to do before the object goes, or takes it along, is still named in it. */
function holdersKept(object: KubeObject, { metadata: before }: KubeObject, report: Report): void {
  for (const finalizer of before.finalizers ?? []) {
    if (own.test(finalizer.split('/')[0] ?? '') || object.metadata.finalizers?.includes(finalizer)) continue;
    report.violated(`finalizer ${finalizer} of ${object.kind} ${nameOf(object)} was taken away`);
  }
  for (const owner of before.ownerReferences ?? []) {
    if (own.test(owner.apiVersion.split('/')[0] ?? '')) continue;
    if (!object.metadata.ownerReferences?.some((one) => same(one, owner)))
      report.violated(
        `owner ${owner.kind} ${owner.name} of ${object.kind} ${nameOf(object)} was taken away or changed`,
      );
  }
}

function nodeKept(node: Node, before: Node, report: Report): void {
  if (before.spec?.unschedulable !== node.spec?.unschedulable) {
    report.violated(`spec.unschedulable of Node ${nameOf(node)} was changed`);
  }
  for (const taint of before.spec?.taints ?? []) {
    if (own.test(taint.key.split('/')[0] ?? '')) continue;
    if (!node.spec?.taints?.some(({ key, effect }) => key === taint.key && effect === taint.effect)) {
      report.violated(`taint ${taint.key} of Node ${nameOf(node)} was taken away`);
    }
  }
  if (!same(before.status, node.status)) report.violated(`the status of Node ${nameOf(node)} was changed`);
}

function same(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
