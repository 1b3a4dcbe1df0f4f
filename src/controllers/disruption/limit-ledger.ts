// SPDX-License-Identifier: Apache-2.0
// What is left of the limits of NodePools while parts of a plan are chosen. A plan keeps to them when all of it happens; a part that
// buys for nodes which go later may not.
import type { NewNodeClaim } from '../../scheduling/problem.ts';
import { type Amounts, one, type ReadonlyAmounts, readAmounts } from '../../state/amounts.ts';
import { TypesByName } from './candidates.ts';
import type { MethodView, Proposal } from './method.ts';

export class LimitLedger {
  readonly #types: TypesByName;
  /** By pool that has limits: what it may have besides. */
  #left = new Map<string, Amounts>();

  constructor({ catalog, snapshot: { machines } }: Pick<MethodView, 'catalog' | 'snapshot'>) {
    this.#types = new TypesByName(catalog);
    for (const { metadata, spec } of catalog.pools) {
      if (!spec.limits) continue;
      const left = readAmounts(spec.limits);
      for (const machine of machines.nodesOfPool(metadata.name ?? ''))
        if (!machine.markedForDeletion) change(left, machine.capacity, -1n);
      this.#left.set(metadata.name ?? '', left);
    }
  }

  /** Lets machines be bought in place of others; false, and nothing taken, where that is more than a pool may have. */
  take({ candidates, replacements }: Pick<Proposal, 'candidates' | 'replacements'>): boolean {
    const after = new Map([...this.#left].map(([pool, left]) => [pool, new Map(left)]));
    for (const { machine } of candidates) change(after.get(machine.nodePool ?? ''), machine.capacity, 1n);
    for (const claim of replacements) change(after.get(claim.nodePool), this.#largest(claim), -1n);
    for (const { nodePool } of replacements)
      for (const left of after.get(nodePool)?.values() ?? []) if (left < 0n) return false;
    this.#left = after;
    return true;
  }

  /**
   * Those that may happen together. A plan keeps to limits as a whole: where some of it is given up, what that would have made room
   * for may be too much.
   */
  keeping<T extends Pick<Proposal, 'candidates' | 'replacements'>>(proposals: readonly T[]): T[] {
    const kept = new Set<T>();
    for (let before = -1; before < kept.size; ) {
      before = kept.size;
      for (const proposal of proposals) if (!kept.has(proposal) && this.take(proposal)) kept.add(proposal);
    }
    return proposals.filter((proposal) => kept.has(proposal));
  }

  /** The most of everything that a machine may turn out to have. */
  #largest({ nodePool, instanceTypes }: NewNodeClaim): ReadonlyAmounts {
    const most: Amounts = new Map([['nodes', one]]);
    for (const name of instanceTypes)
      for (const [resource, nano] of readAmounts(this.#types.get(nodePool, name)?.capacity))
        if (nano > (most.get(resource) ?? 0n)) most.set(resource, nano);
    return most;
  }
}

/** Only what is limited counts. */
function change(left: Amounts | undefined, by: ReadonlyAmounts, sign: bigint): void {
  for (const [name, nano] of left ?? []) left!.set(name, nano + sign * (by.get(name) ?? 0n));
}
