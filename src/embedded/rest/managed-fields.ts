// SPDX-License-Identifier: Apache-2.0
// Who owns which field. Placeholder signature; see below.
import type { KubeObject } from '../../kube/object.ts';
import type { RequestContext } from './context.ts';
import type { WriteOptions } from './options.ts';

/** Records the writer of a change in `metadata.managedFields`. */
export function trackManagers(
  _context: RequestContext,
  object: KubeObject,
  old: KubeObject | undefined,
  _options: WriteOptions,
): void {
  if (old?.metadata.managedFields) object.metadata.managedFields = old.metadata.managedFields;
  else delete object.metadata.managedFields;
}
