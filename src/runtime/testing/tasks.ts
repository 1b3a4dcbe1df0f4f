// SPDX-License-Identifier: Apache-2.0
// Tasks for the tests of the executors.
import { isMainThread } from 'node:worker_threads';
import { KarpenterError } from '../../base/errors.ts';
import { defineTask, type TaskRef } from '../executor.ts';

export class NoFitError extends KarpenterError {
  readonly pod: string;

  constructor(pod: string) {
    super('KRP_NO_FIT', `pod ${pod} does not fit`, { details: { pod } });
    this.pod = pod;
  }
}

export function add(numbers: readonly number[]): { sum: number; inMainThread: boolean } {
  return { sum: numbers.reduce((a, b) => a + b, 0), inMainThread: isMainThread };
}

export function fail(kind: 'own' | 'unlisted' | 'type' | 'string'): never {
  if (kind === 'own' || kind === 'unlisted') throw new NoFitError('web-1');
  if (kind === 'type') throw new TypeError('not a function');
  // oxlint-disable-next-line no-throw-literal -- the point of the test
  throw 'just text';
}

export function spin(): never {
  for (;;);
}

export function crash(): never {
  return process.exit(3);
}

export function unclonable(): () => void {
  return () => undefined;
}

export const addTask: TaskRef<readonly number[], { sum: number; inMainThread: boolean }> = defineTask(
  import.meta.url,
  'add',
  add,
);
export const failTask: TaskRef<'own' | 'type' | 'string', never> = defineTask(import.meta.url, 'fail', fail, {
  errors: [NoFitError],
});
export const failUnlistedTask: TaskRef<'unlisted', never> = defineTask(import.meta.url, 'fail', fail);
export const spinTask: TaskRef<undefined, never> = defineTask(import.meta.url, 'spin', spin);
export const crashTask: TaskRef<undefined, never> = defineTask(import.meta.url, 'crash', crash);
export const unclonableTask: TaskRef<undefined, () => void> = defineTask(import.meta.url, 'unclonable', unclonable);
export const missingTask: TaskRef<undefined, void> = defineTask(import.meta.url, 'missing', () => undefined);
