// SPDX-License-Identifier: Apache-2.0
// Resource arithmetic of the validator: exact, on whole nano units, by resource name.
import { Quantity } from '../../kube/quantity.ts';

export type Amounts = ReadonlyMap<string, bigint>;

/** A Kubernetes resource list as exact amounts. Text that is no quantity counts as zero: the solver must reject it by itself. */
export function amounts(list: Readonly<Record<string, unknown>> | undefined): Map<string, bigint> {
  const result = new Map<string, bigint>();
  for (const [name, text] of Object.entries(list ?? {})) result.set(name, Quantity.tryParse(text)?.nano ?? 0n);
  return result;
}

export function add(...lists: Amounts[]): Map<string, bigint> {
  const sum = new Map<string, bigint>();
  for (const list of lists) for (const [name, value] of list) sum.set(name, (sum.get(name) ?? 0n) + value);
  return sum;
}

/** `from` minus `what`, for the resources of `from` alone. */
export function subtract(from: Amounts, what: Amounts): Map<string, bigint> {
  return new Map([...from].map(([name, value]) => [name, value - (what.get(name) ?? 0n)]));
}

export function atLeastZero(list: Amounts): Map<string, bigint> {
  return new Map([...list].map(([name, value]) => [name, value < 0n ? 0n : value]));
}

/** The larger of each resource. */
export function largest(...lists: Amounts[]): Map<string, bigint> {
  const result = new Map<string, bigint>();
  for (const list of lists)
    for (const [name, value] of list) {
      const current = result.get(name);
      if (current === undefined || value > current) result.set(name, value);
    }
  return result;
}

/** The smaller of each resource that all lists have. */
export function smallestCommon(lists: readonly Amounts[]): Map<string, bigint> {
  const [first, ...rest] = lists;
  const result = new Map<string, bigint>();
  for (const [name, value] of first ?? []) {
    if (!rest.every((l) => l.has(name))) continue;
    result.set(
      name,
      rest.reduce((least, l) => (l.get(name)! < least ? l.get(name)! : least), value),
    );
  }
  return result;
}

/** The resources of `wanted` that exceed `room`, as readable text; empty when all fits. A resource nobody offers is zero. */
export function excess(wanted: Amounts, room: Amounts): string[] {
  const found: string[] = [];
  for (const [name, value] of wanted) {
    const there = room.get(name) ?? 0n;
    // Kubernetes does not look at a resource of which nothing is asked, even on an overcommitted node.
    if (value > 0n && value > there) found.push(`${name} ${show(value)} > ${show(there)}`);
  }
  return found;
}

export function show(nano: bigint): string {
  return String(Number(nano) / 1e9);
}
