// SPDX-License-Identifier: Apache-2.0
// Sees every Machine that ever comes: one that was made too many and removed again does not escape it.
import type { Clock } from '../../../base/clock.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { Informer } from '../../../kube/informer.ts';
import { capiKinds } from '../kinds.ts';

export class MachineWitness {
  readonly #uids = new Set<string>();
  readonly #informer;

  constructor(hub: KubeClient, clock: Clock) {
    this.#informer = new Informer({ client: hub, type: capiKinds('v1beta1').machine, clock });
    this.#informer.addHandler({ added: ({ metadata }) => void this.#uids.add(metadata.uid ?? '') });
  }

  get seen(): ReadonlySet<string> {
    return this.#uids;
  }

  start(signal: AbortSignal): void {
    this.#informer.start(signal);
  }

  /** Forgets what was: the next scenario begins. */
  begin(): void {
    this.#uids.clear();
  }
}
