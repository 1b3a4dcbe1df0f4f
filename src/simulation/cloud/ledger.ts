// SPDX-License-Identifier: Apache-2.0
// The books of a scripted cloud: every machine that was ever launched and what became of it. No fault touches them, so
// they are what the product's own view is judged by.
import type { Ledger, LedgerInstance } from '../contract.ts';
import type { Place } from './market.ts';

/** A machine with all that the cloud itself knows of it. */
export interface Machine extends LedgerInstance {
  /** The name of its Node. */
  readonly name: string;
  readonly place: Place;
  /** What whoever asks for it is told about it. */
  readonly labels: Readonly<Record<string, string>>;
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
  /** What it was booted from. */
  image: number;
  /** The Nodes it has become: two when it joined twice. */
  readonly nodes: string[];
  leavingAt?: number;
  deletingAt?: number;
  goneAt?: number;
  goneBecause?: string;
  isBroken?: boolean;
}

export class Books implements Ledger {
  readonly #all: Machine[] = [];
  readonly #alive = new Map<string, Machine>();
  readonly #byUid = new Map<string, Machine>();

  alive(): readonly Machine[] {
    return [...this.#alive.values()];
  }

  all(): readonly Machine[] {
    return this.#all;
  }

  get(providerID: string): Machine | undefined {
    return this.#alive.get(providerID);
  }

  /** The machine that was launched last under this token, while it exists. */
  ofToken(token: string): Machine | undefined {
    return this.#byUid.get(token);
  }

  launched(machine: Machine, token: string): void {
    this.#all.push(machine);
    this.#alive.set(machine.providerID, machine);
    this.#byUid.set(token, machine);
  }

  gone(machine: Machine, now: number, because?: string): void {
    if (!this.#alive.delete(machine.providerID)) return;
    machine.goneAt = now;
    if (because) machine.goneBecause = because;
    for (const [token, held] of this.#byUid) if (held === machine) this.#byUid.delete(token);
  }
}
