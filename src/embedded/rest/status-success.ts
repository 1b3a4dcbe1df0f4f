// SPDX-License-Identifier: Apache-2.0
// The answer of subresources that do something and have nothing to show for it.
import type { Status } from '../../kube/object.ts';

export const success: Status = Object.freeze({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Success',
  code: 201,
});
