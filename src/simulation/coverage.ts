// SPDX-License-Identifier: Apache-2.0
import { compareStrings } from '../base/order.ts';
import type { Coverage, CoverageKind } from './contract.ts';

/** Counts in memory. */
export class CoverageCounts implements Coverage {
  /** By kind, then by name: a text made of both would be hashed anew for each of the many checks of a minute. */
  readonly #counts = new Map<CoverageKind, Map<string, number>>();

  count(kind: CoverageKind, name: string, times = 1): void {
    let counts = this.#counts.get(kind);
    if (!counts) this.#counts.set(kind, (counts = new Map()));
    counts.set(name, (counts.get(name) ?? 0) + times);
  }

  counts(): ReadonlyMap<string, number> {
    const all = [...this.#counts].flatMap(([kind, counts]) =>
      Array.from(counts, ([name, count]): [string, number] => [`${kind}/${name}`, count]),
    );
    return new Map(all.sort(([a], [b]) => compareStrings(a, b)));
  }
}

/** The sum of many runs. */
export function sumOfCounts(all: Iterable<Readonly<Record<string, number>>>): Record<string, number> {
  const sum = new Map<string, number>();
  for (const counts of all) {
    for (const [key, count] of Object.entries(counts)) sum.set(key, (sum.get(key) ?? 0) + count);
  }
  return Object.fromEntries([...sum].sort(([a], [b]) => compareStrings(a, b)));
}

/**
 * Every controller that the program can have, those behind feature gates and of providers included: one that no world runs does
 * not count itself.
 */
export const expectedControllers: readonly string[] = [
  'cluster-api.nodeclass',
  'disruption',
  'disruption.queue',
  'eviction-queue',
  'kwok.resumption',
  'linode.nodeclass',
  'linode.tagging',
  'node.health',
  'node.hydration',
  'node.termination',
  'nodeclaim.consistency',
  'nodeclaim.disruption',
  'nodeclaim.expiration',
  'nodeclaim.garbagecollection',
  'nodeclaim.hydration',
  'nodeclaim.lifecycle',
  'nodeclaim.podevents',
  'nodeoverlay.controller',
  'nodepool.counter',
  'nodepool.hash',
  'nodepool.readiness',
  'nodepool.registrationhealth',
  'nodepool.validation',
  'provisioner',
  'provisioner.trigger.node',
  'provisioner.trigger.pod',
  'state.pricing',
  'static.deprovisioning',
  'static.provisioning',
];

/**
 * What was never exercised: faults, happenings and invariants that were counted and came to nothing, and controllers that
 * never reconciled anything, whatever the result.
 */
export function neverExercised(counts: Readonly<Record<string, number>>): string[] {
  const never = Object.keys(counts).filter((name) => !name.startsWith('path/') && counts[name] === 0);
  const controllers = new Map(expectedControllers.map((name) => [`path/reconcile/${name}`, 0]));
  for (const [name, count] of Object.entries(counts)) {
    const controller = /^(path\/reconcile\/.*)\/[^/]+$/.exec(name)?.[1];
    if (controller !== undefined) controllers.set(controller, (controllers.get(controller) ?? 0) + count);
  }
  for (const [controller, count] of controllers) if (count === 0) never.push(controller);
  return never;
}
