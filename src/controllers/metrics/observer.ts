// SPDX-License-Identifier: Apache-2.0
// What watches and measures while the program leads, and changes nothing.
import { aborted } from '../../runtime/controller.ts';
import type { Runnable } from '../../runtime/manager.ts';

/** Runs `begin` at the start, and when the time is over every undo it gave. */
export function observer(name: string, begin: () => readonly (() => void)[]): Runnable {
  return {
    name,
    async start(signal) {
      if (signal.aborted) return;
      const undos = begin();
      await aborted(signal);
      for (const undo of undos) undo();
    },
  };
}
