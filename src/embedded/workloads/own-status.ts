// SPDX-License-Identifier: Apache-2.0
// What a controller wrote itself into the status of its objects: to hear of it again is no news.
import { deepEqual } from '../../base/freeze.ts';
import type { KubeObject, ObjectMeta } from '../../kube/object.ts';
import type { ChangeSource } from '../../runtime/controller.ts';

type WithStatus = KubeObject & { readonly spec?: unknown; readonly status?: unknown };

export class OwnStatus<T extends WithStatus> {
  /** The last status by the uid of its object. */
  readonly #written = new Map<string, unknown>();

  constructor(source: ChangeSource<T>) {
    source.addHandler({
      added: () => undefined,
      updated: () => undefined,
      deleted: ({ metadata }) => this.#written.delete(metadata.uid!),
    });
  }

  /** This is about to be written: the answer may come later than the news of it. */
  note({ metadata }: T, status: unknown): void {
    this.#written.set(metadata.uid!, status);
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
