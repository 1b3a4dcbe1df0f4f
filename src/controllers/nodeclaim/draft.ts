// SPDX-License-Identifier: Apache-2.0
// An object that is being worked on: what was read, and what it is to become. Nothing is written before it is saved.
import {
  type Conditioned,
  type ConditionTypes,
  type ConditionUpdate,
  clearCondition,
  completeConditions,
  getCondition,
  setCondition,
} from '../../api/conditions.ts';
import type { Condition } from '../../api/shared-schemas.ts';
import type { Clock } from '../../base/clock.ts';
import type { KubeObject } from '../../kube/object.ts';
import { formatTime } from '../../kube/time.ts';
import type { ObjectStore } from './object-store.ts';

/** A NodeClaim or NodePool with changes that wait to be written. */
export class Draft<T extends KubeObject & Conditioned> {
  readonly before: T;
  readonly #types: ConditionTypes;
  readonly #clock: Clock;
  readonly #effects: (() => Promise<void> | void)[] = [];
  #object: T;

  constructor(object: T, types: ConditionTypes, clock: Clock) {
    this.before = object;
    this.#object = object;
    this.#types = types;
    this.#clock = clock;
  }

  /** The object with the changes so far. */
  get object(): T {
    return this.#object;
  }

  /** Whether there is something to write. */
  get changed(): boolean {
    return this.#object !== this.before;
  }

  /** Replaces the object by one that was derived from it. */
  replace(object: T): void {
    this.#object = object;
  }

  condition(type: string): Condition | undefined {
    return getCondition(this.#object, type);
  }

  isTrue(type: string): boolean {
    return this.condition(type)?.status === 'True';
  }

  /** Makes sure that the root and all conditions it depends on are there. */
  complete(): void {
    this.#setConditions(completeConditions(this.#types, this.#object, this.#now));
  }

  /** Sets a condition; gives whether that changed anything. */
  set(update: ConditionUpdate): boolean {
    return this.#setConditions(setCondition(this.#types, this.#object, update, this.#now));
  }

  /** Says again what a condition says, about the newest generation. */
  refresh(condition: Condition): void {
    const { type, status, reason = '', message = '' } = condition;
    this.set({ type, status, reason, message });
  }

  /** Takes away a condition that the root does not depend on; gives whether it was there. */
  clear(type: string): boolean {
    return this.#setConditions(clearCondition(this.#types, this.#object, type));
  }

  /** Does something once the changes are written: what is told or counted must have happened, and once. */
  onceSaved(effect: () => Promise<void> | void): void {
    this.#effects.push(effect);
  }

  /**
   * Writes the changes, metadata first, only over the version that was read. Gives what is stored, or undefined when
   * the object is gone. Throws a conflict when somebody else wrote meanwhile.
   */
  async save(store: ObjectStore<T>, signal: AbortSignal): Promise<T | undefined> {
    const stored = await store.patch(this.before, this.#object, { signal, lock: true });
    if (!stored) return undefined;
    const { resourceVersion } = stored.metadata;
    // The status goes out as the difference to what was read, over the version that the first write made.
    const base = { ...this.before, metadata: { ...this.before.metadata, resourceVersion } } as T;
    const written = await store.patchStatus(base, this.#object, { signal, lock: true });
    if (!written) return undefined;
    for (const effect of this.#effects.splice(0)) await effect();
    return written === base ? stored : written;
  }

  #setConditions(conditions: readonly Condition[]): boolean {
    const current = this.#object.status?.conditions;
    if (conditions === current || (conditions.length === 0 && !current)) return false;
    this.#object = { ...this.#object, status: { ...this.#object.status, conditions } };
    return true;
  }

  get #now(): string {
    return formatTime(this.#clock.now());
  }
}
