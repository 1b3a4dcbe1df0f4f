// SPDX-License-Identifier: Apache-2.0
// Keeps what is served in step with the CustomResourceDefinitions that are stored.

import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { deepClone } from '../../base/freeze.ts';
import type { CustomResourceDefinition } from '../../kube/kinds.ts';
import { formatTime } from '../../kube/time.ts';
import type { Registry } from '../registry.ts';
import type { Collection, Store } from '../store.ts';
import { customResource } from './custom-resource.ts';

export const definitionsId = 'customresourcedefinitions.apiextensions.k8s.io';
const cleanupFinalizer = 'customresourcecleanup.apiextensions.k8s.io';

type Condition = NonNullable<NonNullable<CustomResourceDefinition['status']>['conditions']>[number];

/** Serves custom kinds. `reconcile` runs right after each request, so a definition is served when its create returns. */
export class Definitions {
  readonly #store: Store;
  readonly #registry: Registry;
  readonly #clock: Clock;
  readonly #collection: Collection;
  readonly #dirty = new Set<string>();
  /** Generation each served definition was compiled from. */
  readonly #served = new Map<string, string>();

  constructor(store: Store, registry: Registry, clock: Clock) {
    this.#store = store;
    this.#registry = registry;
    this.#clock = clock;
    this.#collection = store.collection(definitionsId);
    store.listen((collection, event) => {
      if (collection === this.#collection) this.#dirty.add(event.object.metadata.name!);
      // The last object of a kind that is being removed has gone.
      else if (event.type === 'DELETED' && this.#served.has(collection.name)) this.#dirty.add(collection.name);
    });
  }

  /** Brings the served kinds up to date with what has been written since the last call. */
  reconcile(): void {
    while (this.#dirty.size > 0) {
      const names = [...this.#dirty];
      this.#dirty.clear();
      for (const name of names) this.#reconcileOne(name);
    }
  }

  #reconcileOne(name: string): void {
    const definition = this.#collection.get('', name) as CustomResourceDefinition | undefined;
    if (!definition) {
      this.#stopServing(name);
      // Names that it had are free for those who wait for them.
      for (const other of this.#collection.list().items) {
        if (!this.#served.has(other.metadata.name!)) this.#dirty.add(other.metadata.name!);
      }
      return;
    }
    if (definition.metadata.deletionTimestamp !== undefined) this.#cleanUp(definition);
    else this.#serve(definition);
  }

  #serve(definition: CustomResourceDefinition): void {
    const name = definition.metadata.name!;
    const conflict = this.#nameConflict(definition);
    const compiledFrom = `${definition.metadata.uid} ${definition.metadata.generation}`;
    let problem: string | undefined;
    if (conflict === undefined && this.#served.get(name) !== compiledFrom) {
      try {
        const resource = customResource(definition);
        this.#store.collection(resource.id);
        this.#registry.add(resource);
        this.#served.set(name, compiledFrom);
      } catch (error) {
        problem = messageOf(error);
      }
    }
    this.#writeStatus(definition, conflict, problem);
  }

  /** Another kind of the group that already has one of the names. */
  #nameConflict(definition: CustomResourceDefinition): NameConflict | undefined {
    const { group, names } = definition.spec;
    const listKind = names.listKind ?? `${names.kind}List`;
    for (const other of this.#registry.inGroup(group)) {
      if (other.plural === names.plural) continue;
      const taken = [other.plural, other.singular, ...other.shortNames];
      const kinds = [other.kind, other.listKind];
      const short = names.shortNames?.find((name) => taken.includes(name));
      if (taken.includes(names.plural)) return inUse('PluralConflict', names.plural);
      if (taken.includes(names.singular ?? '')) return inUse('SingularConflict', names.singular!);
      if (short !== undefined) return inUse('ShortNamesConflict', short);
      if (kinds.includes(names.kind)) return inUse('KindConflict', names.kind);
      if (kinds.includes(listKind)) return inUse('ListKindConflict', listKind);
    }
    return undefined;
  }

  #writeStatus(old: CustomResourceDefinition, conflict: NameConflict | undefined, problem: string | undefined): void {
    const definition = deepClone(old);
    const accepted = conflict === undefined;
    const now = formatTime(this.#clock.now());
    const conditions = conditionsOf(conflict, problem, now);
    const before = definition.status?.conditions ?? [];
    const storage = definition.spec.versions.find((version) => version.storage)!.name;
    const stored = definition.status?.storedVersions ?? [];
    definition.status = {
      ...definition.status,
      conditions: [
        ...before.filter((item) => !conditions.some((other) => other.type === item.type)),
        ...conditions.map((item) => {
          const previous = before.find((other) => other.type === item.type);
          const since = previous?.status === item.status ? previous.lastTransitionTime : undefined;
          return since === undefined ? item : { ...item, lastTransitionTime: since };
        }),
      ],
      acceptedNames: accepted ? definition.spec.names : (definition.status?.acceptedNames ?? { plural: '', kind: '' }),
      storedVersions: stored.includes(storage) ? stored : [...stored, storage],
    };
    if (!definition.metadata.finalizers?.includes(cleanupFinalizer)) {
      definition.metadata.finalizers = [...(definition.metadata.finalizers ?? []), cleanupFinalizer];
    }
    const same =
      JSON.stringify([definition.status, definition.metadata.finalizers]) ===
      JSON.stringify([old.status, old.metadata.finalizers]);
    if (!same) this.#collection.replace('', definition.metadata.name!, definition);
  }

  /** A definition that goes takes its objects with it; those with finalizers hold it up. */
  #cleanUp(definition: CustomResourceDefinition): void {
    const name = definition.metadata.name!;
    if (!definition.metadata.finalizers?.includes(cleanupFinalizer)) return;
    const objects = this.#served.has(name) ? this.#store.collection(name) : undefined;
    const now = formatTime(this.#clock.now());
    for (const object of objects?.list().items ?? []) {
      const { namespace = '', name: objectName = '', finalizers = [], deletionTimestamp } = object.metadata;
      if (finalizers.length === 0) objects!.remove(namespace, objectName);
      else if (deletionTimestamp === undefined) {
        const marked = deepClone(object);
        marked.metadata.deletionTimestamp = now;
        marked.metadata.deletionGracePeriodSeconds = 0;
        objects!.replace(namespace, objectName, marked);
      }
    }
    if ((objects?.size ?? 0) > 0) return;
    const finalizers = definition.metadata.finalizers.filter((finalizer) => finalizer !== cleanupFinalizer);
    const released = deepClone(definition);
    if (finalizers.length > 0) released.metadata.finalizers = finalizers;
    else delete released.metadata.finalizers;
    this.#collection.replace('', name, released);
    if (finalizers.length === 0) this.#collection.remove('', name);
  }

  #stopServing(name: string): void {
    if (!this.#served.delete(name)) return;
    const dot = name.indexOf('.');
    this.#registry.remove(name.slice(dot + 1), name.slice(0, dot));
    this.#store.drop(name);
  }
}

/** Why a name cannot be had, as a condition says it. */
interface NameConflict {
  readonly reason: string;
  readonly message: string;
}

function conditionsOf(conflict: NameConflict | undefined, problem: string | undefined, now: string): Condition[] {
  const accepted = conflict === undefined;
  const served = accepted && problem === undefined;
  const why = problem ?? (accepted ? 'the initial names have been accepted' : 'not all names are accepted');
  return [
    condition(
      'NamesAccepted',
      accepted,
      conflict?.reason ?? 'NoConflicts',
      conflict?.message ?? 'no conflicts found',
      now,
    ),
    condition('Established', served, served ? 'InitialNamesAccepted' : 'NotAccepted', why, now),
  ];
}

function inUse(reason: string, name: string): NameConflict {
  return { reason, message: `${JSON.stringify(name)} is already in use` };
}

function condition(type: string, holds: boolean, reason: string, message: string, now: string): Condition {
  return { type, status: holds ? 'True' : 'False', reason, message, lastTransitionTime: now };
}
