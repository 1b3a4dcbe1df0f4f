// SPDX-License-Identifier: Apache-2.0
// What a controller wrote itself into the status of its objects: to hear of it again is no news, and to write it again soon is
// for those who read along, of whom a lean control plane has none.
import { deepEqual } from '../../base/freeze.ts';
import type { KubeObject, ObjectMeta } from '../../kube/object.ts';
import type { ChangeSource, Result } from '../../runtime/controller.ts';
import type { ControlPlane } from './context.ts';

type WithStatus = KubeObject & { readonly spec?: unknown; readonly status?: unknown };

/**
 * For so long a lean control plane lets a status be wrong: a pod whose place another takes meanwhile leaves no trace, and pods that
 * come together are counted together.
 */
const usualPaceMs = 5000;
/** For so long where only people would read it. */
export const unreadPaceMs = 60_000;

export class OwnStatus<T extends WithStatus> {
  /** The last status by the uid of its object. */
  readonly #written = new Map<string, unknown>();
  /** Since when, by the monotonic clock, objects by their uid have had another status than they should. */
  readonly #wrongSince = new Map<string, number>();
  readonly #plane: Pick<ControlPlane, 'clock' | 'lean'>;
  readonly #paceMs: number;

  constructor(source: ChangeSource<T>, plane: Pick<ControlPlane, 'clock' | 'lean'>, paceMs = usualPaceMs) {
    this.#plane = plane;
    this.#paceMs = paceMs;
    source.addHandler({
      added: () => undefined,
      updated: () => undefined,
      deleted: ({ metadata }) => {
        this.#written.delete(metadata.uid!);
        this.#wrongSince.delete(metadata.uid!);
      },
    });
  }

  /**
   * Writes a status that is another than the object has. Gives for how long it has to wait; 0 when it is written. What is urgent does not
   * wait.
   */
  async write(object: T, status: unknown, put: () => Promise<unknown>, isUrgent = false): Promise<number> {
    const uid = object.metadata.uid!;
    if (deepEqual(status, object.status)) {
      this.#wrongSince.delete(uid);
      return 0;
    }
    if (this.#plane.lean && !isUrgent) {
      const now = this.#plane.clock.monotonic();
      const since = this.#wrongSince.get(uid) ?? now;
      this.#wrongSince.set(uid, since);
      if (since + this.#paceMs > now) return since + this.#paceMs - now;
    }
    // Before it is: the answer may come later than the news of it.
    this.#written.set(uid, status);
    await put();
    this.#wrongSince.delete(uid);
    return 0;
  }

  /** Whether all that changed is the status, to what was written last. */
  isEcho(object: T, old: T | undefined): boolean {
    return (
      old !== undefined &&
      isSameMetadata(object.metadata, old.metadata) &&
      deepEqual(object.spec, old.spec) &&
      deepEqual(object.status, this.#written.get(object.metadata.uid!))
    );
  }
}

/** To look again as soon as either wants; a wait of 0 wants nothing. */
export function sooner(next: Result | void, waitMs: number): Result | void {
  if (waitMs === 0) return next;
  return { ...next, requeueAfterMs: Math.min(waitMs, next?.requeueAfterMs ?? Number.POSITIVE_INFINITY) };
}

/** But for the version, which every write changes. */
function isSameMetadata(a: ObjectMeta, b: ObjectMeta): boolean {
  return (
    a.uid === b.uid &&
    a.generation === b.generation &&
    a.deletionTimestamp === b.deletionTimestamp &&
    deepEqual(a.labels, b.labels) &&
    deepEqual(a.annotations, b.annotations) &&
    deepEqual(a.ownerReferences, b.ownerReferences) &&
    deepEqual(a.finalizers, b.finalizers)
  );
}
