// SPDX-License-Identifier: Apache-2.0
// How the generated types of `kubernetes-types` become ours: mutable, with our metadata, outdated fields replaced.
import type { KubeObject } from '../object.ts';

/** A generated type without the fields in `Dropped` (which the caller declares anew) and without `readonly`. */
export type Part<T, Dropped extends PropertyKey = never> = {
  -readonly [K in keyof T as Exclude<K, Dropped>]: T[K];
};

/** A generated kind as we hold it: `metadata` is ours and always there; the fields in `Dropped` are declared anew. */
export type Kind<T, Dropped extends PropertyKey = never> = KubeObject & Part<T, keyof KubeObject | Dropped>;
