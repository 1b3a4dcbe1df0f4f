// SPDX-License-Identifier: Apache-2.0
// Whether the nodes of a NodePool register: the outcomes of its last four, in memory. The condition
// NodeRegistrationHealthy of the pool keeps the verdict over a restart.

export type Health = 'healthy' | 'unhealthy' | 'unknown';

/** How many outcomes are remembered. */
const remembered = 4;
/** The share of failures, of all that can be remembered, from which a pool is unhealthy. */
const unhealthyShare = 0.5;

/** The last outcomes of each NodePool, by its UID. */
export class PoolHealth {
  readonly #outcomes = new Map<string, readonly boolean[]>();
  readonly #turns = new Map<string, Promise<void>>();

  of(pool: string): Health {
    return judge(this.#outcomes.get(pool) ?? []);
  }

  /** What the verdict would be after one more outcome. */
  after(pool: string, registered: boolean): Health {
    return judge(this.#with(pool, registered));
  }

  record(pool: string, registered: boolean): void {
    this.#outcomes.set(pool, this.#with(pool, registered));
  }

  /** Begins anew, with as few outcomes as give the verdict. */
  reset(pool: string, health: Health): void {
    if (health === 'unknown') this.#outcomes.delete(pool);
    else this.#outcomes.set(pool, health === 'healthy' ? [true] : [false, false]);
  }

  /** The pool is gone. */
  forget(pool: string): void {
    this.#outcomes.delete(pool);
  }

  /** Does the work about one pool when that before it is done. */
  async inTurn(name: string, work: () => Promise<void>): Promise<void> {
    const before = this.#turns.get(name) ?? Promise.resolve();
    const turn = before.then(work);
    // The next one does not care how this one ended.
    const ended = turn.catch(() => undefined);
    this.#turns.set(name, ended);
    try {
      await turn;
    } finally {
      if (this.#turns.get(name) === ended) this.#turns.delete(name);
    }
  }

  #with(pool: string, registered: boolean): readonly boolean[] {
    return [...(this.#outcomes.get(pool) ?? []), registered].slice(-remembered);
  }
}

function judge(outcomes: readonly boolean[]): Health {
  if (outcomes.length === 0) return 'unknown';
  const failures = outcomes.filter((registered) => !registered).length;
  return failures / remembered >= unhealthyShare ? 'unhealthy' : 'healthy';
}
