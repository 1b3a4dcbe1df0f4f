// SPDX-License-Identifier: Apache-2.0
// What the server knows of a kind: how it is served, what is filled in, what is refused, what is printed. Built-in
// kinds come from the tables in `registry/`, custom ones from their definitions.
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import type { KubeObject } from '../kube/object.ts';
import type { FieldError } from '../kube/schema/field-error.ts';
import type { Admitted } from './shapes/admit.ts';
import type { FieldIndexer, Store } from './store.ts';

/** One column of `kubectl get`. `priority` above 0 shows with `-o wide` only. */
export interface Column<T extends KubeObject = KubeObject> {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly format?: string;
  readonly description: string;
  readonly priority: number;
  /** The cell; `now` is for ages. Must not throw for any object that may be stored. */
  readonly cell: (object: T, now: number) => unknown;
}

/** Where the scale subresource finds its parts; paths in JSONPath form (`.spec.replicas`). */
export interface ScalePaths {
  readonly specReplicas: string;
  readonly statusReplicas: string;
  /** Path of a selector in text form, if any. */
  readonly selector?: string;
}

/** What strategies may look at beyond the object. */
export interface StrategyContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly store: Store;
}

/**
 * What is particular to a kind. Objects passed to the changing functions are private copies; those passed to the
 * checking ones are complete and defaulted.
 */
export interface Strategy<T extends KubeObject = KubeObject> {
  /** Fills in what the writer left out; runs on every create and update. */
  readonly default?: (object: T) => void;
  /** Before a create: drops what writers may not set, computes what the server sets. Throws StatusError to refuse. */
  readonly prepareCreate?: (object: T, context: StrategyContext) => void;
  /** Before an update of the main resource: carries over what that may not change. */
  readonly prepareUpdate?: (object: T, old: Readonly<T>, context: StrategyContext) => void;
  /** What is wrong with a complete object; `old` is what it replaces, if anything. */
  readonly validate?: (object: T, context: StrategyContext, old?: Readonly<T>) => FieldError[];
  readonly validateUpdate?: (object: T, old: Readonly<T>, context: StrategyContext) => FieldError[];
  readonly validateStatus?: (object: T, old: Readonly<T>) => FieldError[];
  /** Problems with a name; the default is an RFC 1123 subdomain. */
  readonly validateName?: (name: string) => string[];
  /** How long a delete waits for the object to wind down; undefined: it does not. */
  readonly gracePeriod?: (object: Readonly<T>, asked: number | undefined) => number | undefined;
  /** A delete that does not say otherwise leaves dependents alone (as the oldest kinds did, before there was a choice). */
  readonly orphansByDefault?: boolean;
  /** Says no to a delete with a StatusError. */
  readonly refuseDelete?: (object: Readonly<T>) => void;
  /** Holds the object back although it has no finalizers (namespaces). */
  readonly heldBack?: (object: Readonly<T>) => boolean;
  /** Last touches when a delete marks the object instead of removing it. */
  readonly onDeleting?: (object: T) => void;
}

/** A version under which a kind is served. */
export interface ServedVersion {
  readonly name: string;
  /** Turns a private copy of what a client sent into the stored form. */
  readonly decode?: (object: KubeObject) => KubeObject;
  /** The stored object in this version; the same frozen answer for the same object. */
  readonly encode?: (object: KubeObject) => KubeObject;
  /**
   * Checks and prunes a body: gives what is left of it, private to the request, and the unknown fields. A body that is owned
   * may be changed, others are copied, but for parts that are those of `stored`. Throws StatusError on wrong types.
   */
  readonly admit?: (object: KubeObject, owned: boolean, stored?: KubeObject) => Admitted;
  readonly columns: readonly Column[];
  /** Of this version's OpenAPI document; undefined: a free-form object. */
  readonly openApi?: () => unknown;
  readonly status: boolean;
  readonly scale?: ScalePaths;
  readonly deprecated?: string;
}

export type Verb = 'create' | 'delete' | 'deletecollection' | 'get' | 'list' | 'patch' | 'update' | 'watch';

export interface Subresource {
  readonly name: string;
  readonly kind: string;
  /** Group and version of the kind when they are not those of the resource. */
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly Verb[];
}

/** A kind as it is served. */
export interface Resource {
  /** Name of its collection in the store: `deployments.apps`. */
  readonly id: string;
  readonly group: string;
  readonly kind: string;
  readonly listKind: string;
  readonly plural: string;
  readonly singular: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly Verb[];
  /** In the order of preference. */
  readonly versions: readonly ServedVersion[];
  readonly storageVersion: string;
  readonly subresources: readonly Subresource[];
  readonly strategy: Strategy;
  /** Selectable fields besides metadata.name and metadata.namespace. */
  readonly fields: Readonly<Record<string, FieldIndexer>>;
  /** Fields of `fields` worth an index. */
  readonly indexed: readonly string[];
  /** Whether `metadata.generation` counts changes of what the user wants. */
  readonly generation: boolean;
  /** Whether an update without resourceVersion is taken as it is. */
  readonly unconditionalUpdate: boolean;
  /** Whether an update of an object that is not there creates it. */
  readonly createOnUpdate: boolean;
  /** Whether a delete that takes effect at once answers with the object instead of a Status. */
  readonly returnsDeleted: boolean;
  /** Whether status writes may also change labels, annotations and finalizers. */
  readonly statusKeepsMetadata: boolean;
  /** Whether its strategy replaces parts of an object and never changes them: then updates share the rest with what is stored. */
  readonly sharesParts: boolean;
  readonly custom: boolean;
}

/** The version of that name, if it is served. */
export function versionOf(resource: Resource, name: string): ServedVersion | undefined {
  return resource.versions.find((version) => version.name === name);
}
