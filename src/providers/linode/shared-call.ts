// SPDX-License-Identifier: Apache-2.0
// One call for many: whoever asks while one is under way gets its answer, or the answer of the next.

/** Everybody who asks while a call is under way gets its outcome. */
export function shared<R>(call: () => Promise<R>): () => Promise<R> {
  let running: Promise<R> | undefined;
  return () => {
    running ??= call().finally(() => {
      running = undefined;
    });
    return running;
  };
}

/**
 * As `shared`, but nobody gets the outcome of a call that began before they asked: they get the next one's, together with
 * all others who wait. What one wrote before asking is in the answer.
 */
export function sharedAfter<R>(call: () => Promise<R>): () => Promise<R> {
  let running: Promise<R> | undefined;
  let next: Promise<R> | undefined;
  const start = (): Promise<R> => {
    const mine = call().finally(() => {
      if (running === mine) running = undefined;
    });
    running = mine;
    return mine;
  };
  return () => {
    if (!running) return start();
    next ??= running
      .then(
        () => undefined,
        () => undefined,
      )
      .then(() => {
        next = undefined;
        return start();
      });
    return next;
  };
}

/** The outcome of a call that others share; gives up waiting when the signal aborts, without ending the call. */
export function waitFor<R>(call: Promise<R>, signal: AbortSignal): Promise<R> {
  if (signal.aborted) return Promise.reject(signal.reason as Error);
  return new Promise<R>((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
    call.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** Work on the same key is done one after the other. */
export class KeyedLock {
  readonly #tails = new Map<string, Promise<unknown>>();

  async hold<R>(key: string, work: () => Promise<R>): Promise<R> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    const tail = mine.catch(() => undefined);
    this.#tails.set(key, tail);
    try {
      return await mine;
    } finally {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    }
  }
}
