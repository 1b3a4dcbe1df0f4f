// SPDX-License-Identifier: Apache-2.0
// The operating system's word to stop, as an AbortSignal.
import type { Logger } from './logging.ts';

/** The part of `process` that is needed. */
export interface SignalSource {
  on(event: 'SIGTERM' | 'SIGINT', listener: () => void): unknown;
  off(event: 'SIGTERM' | 'SIGINT', listener: () => void): unknown;
}

/**
 * Aborts at the first SIGTERM or SIGINT; at the second, `exit` is called: whoever asks twice means it. `dispose` takes
 * the listeners off.
 */
export function stopOnSignals(
  source: SignalSource,
  options: { readonly log: Logger; readonly exit: () => void },
): { readonly signal: AbortSignal; readonly dispose: () => void } {
  const stop = new AbortController();
  const listeners = (['SIGTERM', 'SIGINT'] as const).map((name) => {
    const listener = (): void => {
      if (stop.signal.aborted) return options.exit();
      options.log.info('shutting down', { signal: name });
      stop.abort(new Error(`received ${name}`));
    };
    source.on(name, listener);
    return { name, listener };
  });
  return {
    signal: stop.signal,
    dispose: () => {
      for (const { name, listener } of listeners) source.off(name, listener);
    },
  };
}
