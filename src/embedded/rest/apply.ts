// SPDX-License-Identifier: Apache-2.0
// Server-side apply.
import { unsupportedMediaType } from '../status.ts';
import type { RequestContext } from './context.ts';
import type { WriteOptions } from './options.ts';
import type { ApiResponse } from './request.ts';

export function handleApply(_context: RequestContext, _options: WriteOptions): ApiResponse {
  throw unsupportedMediaType('server-side apply is not served');
}
