// SPDX-License-Identifier: Apache-2.0
// A call to a cloud that never ends would hold up whoever made it for ever: after a while it counts as failed.
import type { Clock } from '../base/clock.ts';
import { KarpenterError } from '../base/errors.ts';
import { formatDuration } from '../kube/time.ts';

/** The cloud did not answer in time. What it did is not known: the call is made again. */
export class CloudTimeoutError extends KarpenterError {
  constructor(what: string, ms: number) {
    super('KRP_CLOUD_TIMEOUT', `${what} did not answer within ${formatDuration(ms)}`);
  }
}

/**
 * Makes a call that ends in time: with its result, with CloudTimeoutError, or with the reason of the signal. The call is
 * told through its own signal, but not waited for.
 */
export function withDeadline<R>(
  options: { readonly clock: Clock; readonly ms: number; readonly what: string; readonly signal: AbortSignal },
  call: (signal: AbortSignal) => Promise<R>,
): Promise<R> {
  const { clock, ms, what, signal } = options;
  if (signal.aborted) return Promise.reject(signal.reason as Error);
  return new Promise<R>((resolve, reject) => {
    const inner = new AbortController();
    const release = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', onAbort);
    };
    const end = (reason: unknown): void => {
      release();
      inner.abort(reason);
      reject(reason as Error);
    };
    const onAbort = (): void => end(signal.reason);
    const timer = clock.after(ms, () => end(new CloudTimeoutError(what, ms)));
    signal.addEventListener('abort', onAbort, { once: true });
    const made = new Promise<R>((settle) => settle(call(inner.signal)));
    made.then(resolve, reject).finally(release);
  });
}
