// SPDX-License-Identifier: Apache-2.0
// Something was asked for that there is not: the program ends with exit code 2 instead of 1.
import { KarpenterError } from '../base/errors.ts';

/** The command line names something that nobody knows. */
export class UsageError extends KarpenterError {
  constructor(message: string) {
    super('KRP_USAGE', message);
  }
}
