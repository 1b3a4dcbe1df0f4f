// SPDX-License-Identifier: Apache-2.0
// What only some pools ask of a node: enough different values of a label, and a reservation where there is one.
import type { View } from './catalog.ts';
import type { NewNode } from './in-flight.ts';
import { missingValues, typesOf } from './min-values.ts';
import type { SetId } from './requirement-space.ts';
import type { Reservations } from './reservations.ts';
import type { Template } from './templates.ts';
import type { World } from './world.ts';

export class PoolTerms {
  readonly #world: World;
  readonly #reservations: Reservations;
  readonly #strictReservations: boolean;
  readonly #strictValues: boolean;
  #holding: readonly string[] = [];

  constructor(world: World, reservations: Reservations) {
    this.#world = world;
    this.#reservations = reservations;
    const { reservedOfferingMode = 'Strict', minValuesPolicy = 'Strict' } = world.problem.settings ?? {};
    this.#strictReservations = reservedOfferingMode === 'Strict';
    this.#strictValues = minValuesPolicy === 'Strict';
  }

  /**
   * What only some pools ask: enough different values, and a reservation where there is one. Remembers what would be
   * held, for `hold`; undefined when the answer is yes.
   */
  refusal(
    node: NewNode | undefined,
    template: Template,
    set: SetId,
    view: View,
    total: Float64Array,
  ): 'wait' | 'no' | undefined {
    this.#holding = [];
    const { catalog, minValueKeys } = template;
    if (minValueKeys.length === 0 && !catalog.hasReserved) return undefined;
    const rows = catalog.fitting(view, total);
    const asked = this.#world.space.get(set);
    const enough = (some: Iterable<number>): boolean =>
      minValueKeys.length === 0 || missingValues(catalog, typesOf(catalog, some), asked).size === 0;
    if (!enough(rows)) return 'no';
    if (!catalog.hasReserved) return undefined;
    const held = node?.reservations ?? [];
    const answer = this.#reservations.ask(catalog, view, rows, held, this.#strictReservations, enough);
    if (typeof answer === 'string') return answer;
    this.#holding = answer;
    return undefined;
  }

  /** Lets a node hold what the last answer was yes to. */
  hold(node: NewNode): void {
    this.#reservations.exchange(node.reservations, this.#holding);
    node.reservations = this.#holding;
  }

  /** The set with minValues lowered to what can be had, where the policy allows it; undefined when it does not. */
  minValuesFor(template: Template, set: SetId, view: View, request: Float64Array): SetId | undefined {
    if (template.minValueKeys.length === 0) return set;
    const { catalog } = template;
    const requirements = this.#world.space.get(set);
    const missing = missingValues(catalog, typesOf(catalog, catalog.fitting(view, request)), requirements);
    if (missing.size === 0) return set;
    if (this.#strictValues) return undefined;
    const lowered = new Map(requirements);
    for (const [key, found] of missing) lowered.set(key, requirements.get(key)!.withMinValues(found));
    return this.#world.space.intern(lowered);
  }
}
