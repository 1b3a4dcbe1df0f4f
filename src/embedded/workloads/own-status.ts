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

  /** This is about to be written: the answer may come later than the news of it. */
  note({ metadata }: T, status: unknown): void {
    this.#written.set(metadata.uid!, { status, at: this.#plane.clock.monotonic() });
  }

  /** For how long another status is to wait; 0: it is written now. */
  waitMs({ metadata }: T): number {
    const at = this.#plane.lean ? this.#written.get(metadata.uid!)?.at : undefined;
    return at === undefined ? 0 : Math.max(0, at + paceMs - this.#plane.clock.monotonic());
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
