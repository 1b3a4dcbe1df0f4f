// SPDX-License-Identifier: Apache-2.0
// The replicas of the autoscaler, as a Deployment would keep them: one that ends is started anew.
import { ControllerProcess, type ProcessParts } from './controller-process.ts';

export interface FleetParts extends Omit<ProcessParts, 'name' | 'elects' | 'onEnd'> {
  readonly replicas: number;
  readonly onEnd: (name: string, why: string) => void;
  readonly onStart: (name: string) => void;
}

const restartMs = 5000;

export class Fleet {
  readonly #parts: FleetParts;
  readonly #alive = new Set<ControllerProcess>();
  #count = 0;
  #closed = false;
  /** Ended ones leave their numbers behind. */
  readonly #onGone: (process: ControllerProcess) => void;

  constructor(parts: FleetParts, onGone: (process: ControllerProcess) => void) {
    this.#parts = parts;
    this.#onGone = onGone;
  }

  start(): void {
    for (let i = 0; i < this.#parts.replicas; i++) this.#launch();
  }

  /** Those that are not dead; hung ones included. */
  get alive(): readonly ControllerProcess[] {
    return [...this.#alive];
  }

  /** Counts a death and starts another after a while. */
  replace(process: ControllerProcess, why: string): void {
    if (!this.#alive.delete(process)) return;
    process.kill();
    this.#onGone(process);
    this.#parts.onEnd(process.name, why);
    if (!this.#closed) this.#parts.world.after(restartMs, () => this.#launch());
  }

  close(): void {
    this.#closed = true;
    for (const process of this.#alive) {
      process.kill();
      this.#onGone(process);
    }
    this.#alive.clear();
  }

  #launch(): void {
    if (this.#closed) return;
    const process: ControllerProcess = new ControllerProcess({
      ...this.#parts,
      name: `karpenter-${++this.#count}`,
      elects: this.#parts.replicas > 1,
      onEnd: (why) => this.replace(process, why),
    });
    this.#alive.add(process);
    this.#parts.onStart(process.name);
    process.start();
  }
}
