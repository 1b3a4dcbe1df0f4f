// SPDX-License-Identifier: Apache-2.0
// Which faults of a scripted cloud are on, and whether they bite now. Every bite is drawn from the chance that came with
// the fault and counted.
import type { Random } from '../../base/random.ts';
import type { Coverage, Fault } from '../contract.ts';

/** What may go wrong at a scripted cloud, each with how likely it is, once per call or per machine, while it is on. */
export const mishaps = {
  /** A call takes half a minute, which is longer than some callers wait. */
  slow: 0.3,
  /** A call is not answered for as long as the fault is on. */
  silent: 0.2,
  unreachable: 0.7,
  throttled: 0.6,
  failing: 0.5,
  /** The machine was launched, and the answer is lost. */
  'lost-create-response': 0.6,
  /** The machine was launched, and its cloud takes minutes to say so. */
  'late-create-response': 0.4,
  /** The machine is on its way out, and the answer is lost. */
  'lost-delete-response': 0.6,
  /** A launch is refused as invalid. */
  'launch-refused': 0.3,
  /** A list leaves machines out. */
  'partial-list': 0.5,
  /** A list has machines twice. */
  'duplicated-list': 0.5,
  /** A new machine is neither found nor listed for a while. */
  'not-found-yet': 0.7,
  'never-joins': 0.3,
  'joins-late': 0.4,
  /** A second Node appears for the same machine. */
  'joins-twice': 0.3,
  /** Its Node has less of everything than the cloud promised. */
  'lies-about-capacity': 0.4,
} as const satisfies Readonly<Record<string, number>>;

export type Mishap = keyof typeof mishaps;

interface On<M> {
  readonly mishap: M;
  readonly chance: number;
  readonly random: Random;
  /** Resolves when it is over. */
  readonly over: Promise<void>;
}

export class Mishaps<M extends string> {
  readonly #coverage: Coverage;
  readonly #prefix: string;
  readonly #chances: Readonly<Record<M, number>>;
  readonly #on = new Set<On<M>>();

  /**
   * @param prefix what stands before the names of its faults in coverage: `cloud/`.
   * @param chances what may go wrong, and how likely it is while it is on.
   */
  constructor(coverage: Coverage, prefix: string, chances: Readonly<Record<M, number>>) {
    this.#coverage = coverage;
    this.#prefix = prefix;
    this.#chances = chances;
  }

  /** All of them, for a world to draw from. */
  faults(): Fault[] {
    return (Object.keys(this.#chances) as M[]).map((mishap) => ({
      name: `${this.#prefix}${mishap}`,
      // What an answer that got lost leads to is what most goes wrong in earnest; what befalls a new machine bites only while
      // one is bought.
      weight: mishap.startsWith('lost-') ? 3 : /joins|capi-/.test(mishap) ? 2 : 1,
      inject: (random) => this.begin(mishap, this.#chances[mishap], random),
    }));
  }

  /** Turns one on; what it gives turns it off again. */
  begin(mishap: M, chance: number, random: Random): () => void {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const on: On<M> = { mishap, chance, random, over };
    this.#on.add(on);
    return () => {
      this.#on.delete(on);
      resolve();
    };
  }

  /** Whether this mishap happens now; counted when it does. Costs nothing while it is off. */
  happens(mishap: M): boolean {
    return this.#biting(mishap) !== undefined;
  }

  /** Resolves when a mishap that happens now is over; undefined when it does not happen. */
  untilOver(mishap: M): Promise<void> | undefined {
    return this.#biting(mishap)?.over;
  }

  #biting(mishap: M): On<M> | undefined {
    for (const on of this.#on) {
      if (on.mishap !== mishap || on.random.next() >= on.chance) continue;
      this.#coverage.count('fault', `${this.#prefix}${mishap}`);
      return on;
    }
    return undefined;
  }
}
