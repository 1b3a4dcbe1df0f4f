// SPDX-License-Identifier: Apache-2.0
// Requirement sets as numbers. A pass meets few distinct sets and combines them over and over: each set is interned once,
// each combination is computed once, and the packing loop only compares integers.
import { absent, PairTable } from './pair-table.ts';
import { compatible, impossibleKey, mergeRequirements, type Requirement, type Requirements } from './requirements.ts';

/** The id of an interned set. */
export type SetId = number;

/** The two cannot hold together. */
export const incompatible = -1;

export class RequirementSpace {
  readonly #sets: Requirements[] = [];
  readonly #ids = new Map<string, SetId>();
  readonly #combined: PairTable[] = [];

  /** The empty set: asks for nothing. */
  readonly empty: SetId = this.intern(new Map());

  intern(set: Requirements): SetId {
    const parts: string[] = [];
    for (const requirement of set.values()) parts.push(requirement.signature);
    parts.sort();
    const signature = parts.join(';');
    let id = this.#ids.get(signature);
    if (id === undefined) {
      id = this.#sets.length;
      this.#sets.push(set);
      this.#ids.set(signature, id);
    }
    return id;
  }

  get(id: SetId): Requirements {
    return this.#sets[id]!;
  }

  /** One requirement as a set. */
  single(requirement: Requirement): SetId {
    return this.intern(new Map([[requirement.key, requirement]]));
  }

  /**
   * What a node that offers `given` offers once a pod that asks for `asked` is on it; `incompatible` when it cannot be.
   * `memoOf` numbers `mayBeUndefined`: the labels that need not be decided yet.
   */
  combine(given: SetId, asked: SetId, memoOf: number, mayBeUndefined: ReadonlySet<string>): SetId {
    if (asked === this.empty || given === asked) return given;
    let memo = this.#combined[memoOf];
    if (!memo) {
      memo = new PairTable();
      this.#combined[memoOf] = memo;
    }
    let result = memo.get(given, asked);
    if (result === absent) {
      result = this.#merge(this.#sets[given]!, this.#sets[asked]!, mayBeUndefined);
      memo.add(given, asked, result);
    }
    return result;
  }

  #merge(given: Requirements, asked: Requirements, mayBeUndefined: ReadonlySet<string>): SetId {
    if (!compatible(given, asked, mayBeUndefined)) return incompatible;
    const merged = mergeRequirements(given, asked);
    return impossibleKey(merged) === undefined ? this.intern(merged) : incompatible;
  }
}
