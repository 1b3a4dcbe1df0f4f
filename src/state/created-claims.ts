// SPDX-License-Identifier: Apache-2.0
// NodeClaims we wrote and have not seen in the watch yet. One that was deleted before the watch showed it would stay in
// the state for ever and stop provisioning: after a while the API server is asked.

import { nodeClaimKind } from '../api/node-claim.ts';
import type { Clock, Timer } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { isNotFound } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Logger } from '../runtime/logging.ts';

/** How long a watch event may take before we ask. */
const patienceMs = 15_000;

export interface CreatedClaimsOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly client: KubeClient;
  /** Whether the watch has shown the claim. */
  readonly seen: (name: string) => boolean;
  /** The claim does not exist. */
  readonly vanished: (name: string) => void;
}

/** Watches over claims until the watch has shown them. */
export class CreatedClaims {
  readonly #options: CreatedClaimsOptions;
  readonly #timers = new Map<string, Timer>();
  readonly #stop = new AbortController();

  constructor(options: CreatedClaimsOptions) {
    this.#options = options;
  }

  track(name: string): void {
    if (this.#stop.signal.aborted) return;
    this.#timers.get(name)?.cancel();
    this.#timers.set(
      name,
      this.#options.clock.after(patienceMs, () => void this.#check(name)),
    );
  }

  close(): void {
    this.#stop.abort(new Error('the state was closed'));
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }

  /** Never rejects. */
  async #check(name: string): Promise<void> {
    const { client, log, seen, vanished } = this.#options;
    this.#timers.delete(name);
    if (seen(name)) return;
    try {
      await client.resource(nodeClaimKind).get(name, { signal: this.#stop.signal });
    } catch (error) {
      if (isNotFound(error)) {
        if (!seen(name)) vanished(name);
        return;
      }
      log.debug('cannot tell whether a nodeclaim exists', { NodeClaim: { name }, error: messageOf(error) });
    }
    // It exists, or we could not tell: the watch is late.
    this.track(name);
  }
}
