// SPDX-License-Identifier: Apache-2.0
// The shape of one verdict: an object (or an update), and whether an API server with our CRDs takes it.

export type VerdictKind =
  | 'NodePool'
  | 'NodeClaim'
  | 'NodeOverlay'
  | 'CapacityBuffer'
  | 'KWOKNodeClass'
  | 'ClusterAPINodeClass'
  | 'LinodeNodeClass';

/** An object as a user would send it, right or wrong. */
export interface CandidateObject {
  readonly apiVersion: string;
  readonly kind: VerdictKind;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

export interface VerdictCase {
  /** Unique, and the name of the object. */
  readonly id: string;
  readonly kind: VerdictKind;
  /** What is sent: to create it, or with `old` to update it. */
  readonly object: CandidateObject;
  /** What is there before. Valid by itself. */
  readonly old?: CandidateObject;
  /** The update goes to this subresource. */
  readonly subresource?: 'status';
  readonly valid: boolean;
  /** The verdict of upstream's v1.14.1 CRDs, where it is another one; the reference lists these differences. */
  readonly upstreamValid?: boolean;
  /** The API server knows this by something other than the schema of the CRD. */
  readonly beyondSchema?: boolean;
  /** What the case is about, as a sentence. */
  readonly why: string;
}

type Fields = Readonly<Record<string, unknown>>;

const apiVersions: Readonly<Record<VerdictKind, string>> = {
  NodePool: 'karpenter.sh/v1',
  NodeClaim: 'karpenter.sh/v1',
  NodeOverlay: 'karpenter.sh/v1alpha1',
  CapacityBuffer: 'autoscaling.x-k8s.io/v1beta1',
  KWOKNodeClass: 'karpenter.kwok.sh/v1alpha1',
  ClusterAPINodeClass: 'karpenter.cluster.x-k8s.io/v1alpha1',
  LinodeNodeClass: 'karpenter.k8s.linode/v1',
};

/** Collects the cases of one kind. `Fields` are the top-level fields of the object: spec, and status or metadata where they matter. */
export class CaseList {
  readonly cases: VerdictCase[] = [];
  readonly #kind: VerdictKind;
  readonly #apiVersion: string;
  readonly #prefix: string;

  /** `apiVersion` is another served version than the main one. */
  constructor(kind: VerdictKind, apiVersion?: string) {
    this.#kind = kind;
    this.#apiVersion = apiVersion ?? apiVersions[kind];
    this.#prefix = [kind.toLowerCase(), ...(apiVersion?.split('/').slice(1) ?? [])].join('-');
  }

  valid(name: string, fields: Fields, why: string, options: { upstreamValid?: boolean } = {}): void {
    this.#add({ name, fields, why, valid: true, ...options });
  }

  invalid(name: string, fields: Fields, why: string, options: { beyondSchema?: boolean } = {}): void {
    this.#add({ name, fields, why, valid: false, ...options });
  }

  validUpdate(name: string, old: Fields, fields: Fields, why: string): void {
    this.#add({ name, old, fields, why, valid: true });
  }

  invalidUpdate(name: string, old: Fields, fields: Fields, why: string): void {
    this.#add({ name, old, fields, why, valid: false });
  }

  /** Updates of the status alone, of an object that is valid otherwise. */
  validStatus(name: string, fields: Fields, status: unknown, why: string): void {
    this.#add({ name, old: fields, fields: { ...fields, status }, why, valid: true, subresource: 'status' });
  }

  invalidStatus(name: string, fields: Fields, status: unknown, why: string): void {
    this.#add({ name, old: fields, fields: { ...fields, status }, why, valid: false, subresource: 'status' });
  }

  #add(
    entry: { name: string; fields: Fields; old?: Fields } & Omit<VerdictCase, 'id' | 'kind' | 'object' | 'old'>,
  ): void {
    const { name, fields, old, ...rest } = entry;
    const id = `${this.#prefix}-${name}`;
    this.cases.push({
      id,
      kind: this.#kind,
      object: this.#object(id, fields),
      ...(old && { old: this.#object(id, old) }),
      ...rest,
    });
  }

  #object(name: string, fields: Fields): CandidateObject {
    const { metadata, ...rest } = fields;
    return {
      apiVersion: this.#apiVersion,
      kind: this.#kind,
      metadata: {
        name,
        ...(this.#kind === 'CapacityBuffer' && { namespace: 'default' }),
        ...(metadata as Fields | undefined),
      },
      ...rest,
    };
  }
}

/** A condition that every kind takes. */
export function condition(fields: Fields = {}): Fields {
  return {
    type: 'Ready',
    status: 'True',
    lastTransitionTime: '2026-01-01T00:00:00Z',
    reason: 'Ready',
    message: '',
    ...fields,
  };
}

/** The same without one of its fields. */
export function without(fields: Fields, name: string): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => key !== name));
}
