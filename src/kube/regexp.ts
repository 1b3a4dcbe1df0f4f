// SPDX-License-Identifier: Apache-2.0
// Go's regular expressions (RE2): linear time on any input, unanchored, compiled once.

import { RE2JS, RE2JSException } from 're2js';
import { KarpenterError } from '../base/errors.ts';

/** A pattern that RE2 does not accept. The message is Go's. */
export class RegexpError extends KarpenterError {
  constructor(message: string, pattern: string) {
    super('KRP_REGEXP_INVALID', message, { details: { pattern } });
  }
}

const compiled = new Map<string, RE2JS>();
const maxCompiled = 1000;

/** Compiles a pattern, or takes it from the cache. Throws RegexpError. */
export function compileRegexp(pattern: string): RE2JS {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  try {
    const regexp = RE2JS.compile(pattern);
    if (compiled.size >= maxCompiled) compiled.clear();
    compiled.set(pattern, regexp);
    return regexp;
  } catch (error) {
    if (error instanceof RE2JSException) throw new RegexpError(error.message, pattern);
    throw error;
  }
}
