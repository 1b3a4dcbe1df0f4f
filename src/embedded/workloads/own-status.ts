// SPDX-License-Identifier: Apache-2.0
// What a controller wrote itself into the status of its objects: to hear of it again is no news, and to write it again soon is
// for those who read along, of whom a lean control plane has none.
import { deepEqual } from '../../base/freeze.ts';
import type { KubeObject, ObjectMeta } from '../../kube/object.ts';
import type { ChangeSource, Result } from '../../runtime/controller.ts';
import type { ControlPlane } from './context.ts';

type WithStatus = KubeObject & { readonly spec?: unknown; readonly status?: unknown };

/** A lean control plane writes the status of an object this often at most: pods of one set seldom start at one moment. */
const paceMs = 5000;

interface Written {
  readonly status: unknown;
  /** Monotonic. */
  readonly at: number;
}

export class OwnStatus<T extends WithStatus> {
  /** The last status by the uid of its object. */
  readonly #written = new Map<string, Written>();
  readonly #plane: Pick<ControlPlane, 'clock' | 'lean'>;

  constructor(source: ChangeSource<T>, plane: Pick<ControlPlane, 'clock' | 'lean'>) {
    this.#plane = plane;
    source.addHandler({
      added: () => undefined,
      updated: () => undefined,
      deleted: ({ metadata }) => this.#written.delete(metadata.uid!),
    });
  }

  /**
   * Writes a status that is another than the object has. Gives for how long it has to wait; 0 when it is written. What is urgent does not
   * wait.
   */
  async write(object: T, status: unknown, put: () => Promise<unknown>, isUrgent = false): Promise<number> {
    if (deepEqual(status, object.status)) return 0;
    const uid = object.metadata.uid!;
    const now = this.#plane.clock.monotonic();
    const at = this.#plane.lean && !isUrgent ? this.#written.get(uid)?.at : undefined;
    const waitMs = at === undefined ? 0 : Math.max(0, at + paceMs - now);
    if (waitMs > 0) return waitMs;
    // Before it is: the answer may come later than the news of it.
    this.#written.set(uid, { status, at: now });
    await put();
    return 0;
  }

  /** Whether all that changed is the status, to what was written last. */
  isEcho(object: T, old: T | undefined): boolean {
    return (
      old !== undefined &&
      isSameMetadata(object.metadata, old.metadata) &&
      deepEqual(object.spec, old.spec) &&
      deepEqual(object.status, this.#written.get(object.metadata.uid!)?.status)
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
