// SPDX-License-Identifier: Apache-2.0
// Which firewalls Linodes have. Asked for seldom: it costs a call for each machine.
import type { Clock } from '../../base/clock.ts';
import type { LinodeClient } from './client.ts';

const maxAgeMs = 10 * 60_000;

export class Firewalls {
  readonly #client: LinodeClient;
  readonly #clock: Clock;
  readonly #known = new Map<number, { readonly ids: readonly number[]; readonly at: number }>();

  constructor(client: LinodeClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** The firewalls of a Linode as of at most ten minutes ago. */
  async of(linodeId: number, signal: AbortSignal): Promise<readonly number[]> {
    const now = this.#clock.monotonic();
    const known = this.#known.get(linodeId);
    if (known && now - known.at < maxAgeMs) return known.ids;
    const found = await this.#client.list<{ id: number }>(`linode/instances/${linodeId}/firewalls`, { signal });
    const ids = found.map(({ id }) => id);
    for (const [id, { at }] of this.#known) if (now - at >= maxAgeMs) this.#known.delete(id);
    this.#known.set(linodeId, { ids, at: now });
    return ids;
  }
}
