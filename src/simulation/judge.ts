// SPDX-License-Identifier: Apache-2.0
// Shows every invariant what happens, and keeps what they find.

import type { FeatureGates } from '../runtime/settings.ts';
import type { Change, Coverage, Facts, Invariant, Report, Violation } from './contract.ts';
import { allInvariants } from './invariants/index.ts';
import type { Fleet } from './process/fleet.ts';

export interface JudgeParts {
  readonly facts: Facts;
  readonly coverage: Coverage;
  readonly fleet: Fleet;
  readonly gates: FeatureGates;
  /** Promises that come with the clouds. */
  readonly more?: readonly Invariant[];
}

interface Seat {
  readonly invariant: Invariant;
  readonly report: Report;
}

export class Judge {
  readonly violations: Violation[] = [];
  readonly #facts: Facts;
  readonly #onChange: readonly Seat[];
  readonly #onMinute: readonly Seat[];
  readonly #onQuiet: readonly Seat[];

  constructor({ facts, coverage, fleet, gates, more = [] }: JudgeParts) {
    this.#facts = facts;
    const seats = [...allInvariants({ fleet, gates }), ...more].map((invariant): Seat => {
      coverage.count('invariant', invariant.name, 0);
      const report: Report = {
        violated: (message) => this.violations.push({ invariant: invariant.name, at: facts.now, message }),
        checked: () => coverage.count('invariant', invariant.name),
      };
      return { invariant, report };
    });
    this.#onChange = seats.filter(({ invariant }) => 'onChange' in invariant);
    this.#onMinute = seats.filter(({ invariant }) => 'onMinute' in invariant);
    this.#onQuiet = seats.filter(({ invariant }) => 'onQuiet' in invariant);
  }

  changed(change: Change): void {
    for (const { invariant, report } of this.#onChange) invariant.onChange!(change, this.#facts, report);
  }

  minute(): void {
    for (const { invariant, report } of this.#onMinute) invariant.onMinute!(this.#facts, report);
  }

  async quiet(): Promise<void> {
    for (const { invariant, report } of this.#onQuiet) await invariant.onQuiet!(this.#facts, report);
  }
}
