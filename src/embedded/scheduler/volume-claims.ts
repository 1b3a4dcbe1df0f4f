// SPDX-License-Identifier: Apache-2.0
// Claims that wait for their first consumer: told the node, then waited for.
import { KarpenterError } from '../../base/errors.ts';
import { kinds } from '../../kube/kinds.ts';
import type { ControlPlane } from '../workloads/context.ts';
import { selectedNodeAnnotation } from '../workloads/volume-binder.ts';
import type { ClusterState } from './cluster-state.ts';
import { isBound } from './filter-volumes.ts';
import type { PodInfo } from './pod-info.ts';

const patienceMs = 10 * 60_000;

export class VolumeClaims {
  readonly #plane: ControlPlane;
  readonly #state: ClusterState;
  #waiters: (() => void)[] = [];
  #closed = false;

  constructor(plane: ControlPlane, state: ClusterState) {
    this.#plane = plane;
    this.#state = state;
  }

  /** Something about claims or volumes changed. */
  changed(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const wake of waiters) wake();
  }

  /** Nobody waits any longer. */
  close(): void {
    this.#closed = true;
    this.changed();
  }

  /** Resolves when all claims of the pod are bound, with volumes made for this node. Throws after ten minutes. */
  async bindFor(pod: PodInfo, node: string): Promise<void> {
    const open = (): string[] =>
      pod.claims.filter((key) => {
        const claim = this.#state.lookups.claim(key);
        return !claim || !isBound(claim);
      });
    for (const key of open()) {
      const [namespace, name] = key.split('/') as [string, string];
      const annotations = { [selectedNodeAnnotation]: node };
      await this.#plane.client
        .resource(kinds.PersistentVolumeClaim)
        .patch(name, { metadata: { annotations } }, { namespace });
    }
    const deadline = this.#plane.clock.monotonic() + patienceMs;
    while (open().length > 0) {
      const left = deadline - this.#plane.clock.monotonic();
      if (left <= 0 || this.#closed) {
        throw new KarpenterError('KRP_VOLUME_TIMEOUT', `volumes were not bound in time: ${open().join(', ')}`);
      }
      await new Promise<void>((resolve) => {
        const timer = this.#plane.clock.after(left, resolve);
        this.#waiters.push(() => {
          timer.cancel();
          resolve();
        });
      });
    }
  }
}
