// SPDX-License-Identifier: Apache-2.0
// What a body of a built-in kind must look like before anything else is asked of it.
import type { KubeObject } from '../../kube/object.ts';

/** The check of one kind's bodies; names the fields that are unknown. */
export function builtInAdmission(_group: string, _version: string, _kind: string): (object: KubeObject) => string[] {
  return () => [];
}
