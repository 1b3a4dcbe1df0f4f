// SPDX-License-Identifier: Apache-2.0
// Which nodes belong to which NodePool and what they have in sum, kept by differences.
import { type Amounts, addTo, noAmounts, type ReadonlyAmounts, subtractFrom } from './amounts.ts';
import type { StateNode } from './state-node.ts';

interface Pool {
  readonly nodes: Set<StateNode>;
  readonly usage: Amounts;
}

interface Share {
  readonly pool: string;
  readonly amounts: ReadonlyAmounts;
}

/** Nodes and resources by NodePool. Nodes that go away still belong to their pool, but count nothing. */
export class PoolTotals {
  readonly #pools = new Map<string, Pool>();
  readonly #shares = new Map<StateNode, Share>();
  readonly #onChange: (pool: string) => void;

  /** `onChange` hears of every pool whose nodes or sum changed. */
  constructor(onChange: (pool: string) => void = () => undefined) {
    this.#onChange = onChange;
  }

  /** Counts a node anew after it changed; `gone` when it no longer exists. */
  recount(node: StateNode, gone = false): void {
    const before = this.#shares.get(node);
    const pool = gone ? undefined : node.nodePool;
    const amounts = pool === undefined || node.markedForDeletion ? noAmounts : node.capacity;
    if (before && before.pool === pool && areSame(before.amounts, amounts)) return;
    if (before) this.#remove(node, before);
    if (pool !== undefined) this.#add(node, { pool, amounts });
    if (before && before.pool !== pool) this.#onChange(before.pool);
    if (pool !== undefined) this.#onChange(pool);
  }

  nodesOf(pool: string): ReadonlySet<StateNode> {
    return this.#pools.get(pool)?.nodes ?? nobody;
  }

  usageOf(pool: string): ReadonlyAmounts {
    return this.#pools.get(pool)?.usage ?? noAmounts;
  }

  #add(node: StateNode, share: Share): void {
    let pool = this.#pools.get(share.pool);
    if (!pool) {
      pool = { nodes: new Set(), usage: new Map() };
      this.#pools.set(share.pool, pool);
    }
    pool.nodes.add(node);
    addTo(pool.usage, share.amounts);
    this.#shares.set(node, share);
  }

  #remove(node: StateNode, share: Share): void {
    const pool = this.#pools.get(share.pool);
    this.#shares.delete(node);
    if (!pool) return;
    pool.nodes.delete(node);
    subtractFrom(pool.usage, share.amounts);
    for (const name of share.amounts.keys()) if (pool.usage.get(name) === 0n) pool.usage.delete(name);
    if (pool.nodes.size === 0) this.#pools.delete(share.pool);
  }
}

/** A node is read anew whenever it or its NodeClaim changes; what it has is hardly ever different. */
function areSame(a: ReadonlyAmounts, b: ReadonlyAmounts): boolean {
  if (a === b) return true;
  if (a.size !== b.size) return false;
  for (const [name, amount] of a) if (b.get(name) !== amount) return false;
  return true;
}

const nobody: ReadonlySet<StateNode> = new Set();
