// SPDX-License-Identifier: Apache-2.0
// One thing that every provider must do.
import type { Subject } from './subject.ts';

/** A part of the contract, under the names that upstream and the metrics use. */
export const methods = [
  'Identity',
  'GetInstanceTypes',
  'Create',
  'Get',
  'List',
  'Delete',
  'IsDrifted',
  'RepairPolicies',
  'RegistrationHooks',
] as const;
export type Method = (typeof methods)[number];

export interface ConformanceCase {
  /** Stable: reports and exceptions name it. */
  readonly id: string;
  readonly method: Method;
  /** Reads on from the name of the method. */
  readonly title: string;
  /** Throws what is wrong, or NotApplicable. */
  readonly run: (subject: Subject) => Promise<void>;
}

/** The cases of one method. */
export function casesOf(
  method: Method,
  cases: Readonly<Record<string, readonly [title: string, run: (subject: Subject) => Promise<void>]>>,
): ConformanceCase[] {
  const prefix = method.replace(/(?!^)([A-Z])/g, '-$1').toLowerCase();
  return Object.entries(cases).map(([id, [title, run]]) => ({ id: `${prefix}/${id}`, method, title, run }));
}
