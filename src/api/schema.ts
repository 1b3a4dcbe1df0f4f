// SPDX-License-Identifier: Apache-2.0
// The schema builder of our CRDs: one value gives the static type (by inference), the OpenAPI v3 structural schema
// that the API server enforces, and everything the reference pages print.

/** The part of OpenAPI v3 that a structural schema of a CRD may use. Plain JSON. */
export interface OpenApiSchema {
  type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  format?: string;
  description?: string;
  default?: unknown;
  enum?: readonly unknown[];
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  maxProperties?: number;
  required?: readonly string[];
  properties?: Readonly<Record<string, OpenApiSchema>>;
  additionalProperties?: OpenApiSchema;
  items?: OpenApiSchema;
  anyOf?: readonly OpenApiSchema[];
  'x-kubernetes-int-or-string'?: boolean;
  'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  'x-kubernetes-list-map-keys'?: readonly string[];
  'x-kubernetes-map-type'?: 'atomic' | 'granular';
  'x-kubernetes-preserve-unknown-fields'?: boolean;
  'x-kubernetes-validations'?: readonly ValidationRule[];
}

/** One CEL rule and the sentence a user reads when it is broken. */
export interface ValidationRule {
  readonly rule: string;
  readonly message: string;
}

/** A schema whose values have the static type `T`. */
export interface Schema<T = unknown> {
  readonly openapi: OpenApiSchema;
  /** Never present: carries the type through inference. */
  readonly value?: T;
}

/** The static type of the values of a schema. */
export type TypeOf<S extends Schema> = S extends Schema<infer T> ? T : never;

type Flatten<T> = { [K in keyof T]: T[K] };

/** The type of an object with the given fields, of which those in `R` are always present. */
export type FieldsOf<F extends Readonly<Record<string, Schema>>, R extends keyof F> = Flatten<
  { -readonly [K in R]: TypeOf<F[K]> } & { -readonly [K in Exclude<keyof F, R>]?: TypeOf<F[K]> }
>;

interface Common<T> {
  readonly description?: string;
  /** What the API server fills in when the field is absent. */
  readonly default?: T;
  /** CEL rules over `self` (and `oldSelf` in updates). */
  readonly rules?: readonly ValidationRule[];
}

interface StringOptions<E extends string> extends Common<NoInfer<E>> {
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly enum?: readonly E[];
  readonly format?: 'date-time';
}

/** A text, or one of a closed set of words: then the type is their union. */
export function string<const E extends string = string>(options: StringOptions<E> = {}): Schema<E> {
  return build({ type: 'string' }, options);
}

/** A moment as RFC 3339 text. */
export function dateTime(options: Common<string> = {}): Schema<string> {
  return string({ ...options, format: 'date-time' });
}

interface IntegerOptions extends Common<number> {
  readonly format?: 'int32' | 'int64';
  readonly minimum?: number;
  readonly maximum?: number;
}

/** A whole number. */
export function integer(options: IntegerOptions = {}): Schema<number> {
  return build({ type: 'integer' }, options);
}

/** True or false. */
export function boolean(options: Common<boolean> = {}): Schema<boolean> {
  return build({ type: 'boolean' }, options);
}

interface ArrayOptions<T> extends Common<T[]> {
  /** How server-side apply merges the list, and whether duplicates are refused (`set`, `map`). */
  readonly listType?: 'atomic' | 'set' | 'map';
  /** The fields that identify an item of a `map` list. */
  readonly mapKeys?: readonly (keyof T & string)[];
  readonly maxItems?: number;
}

/** A list of items of one schema. */
export function array<T>(items: Schema<T>, options: ArrayOptions<NoInfer<T>> = {}): Schema<T[]> {
  const { listType, mapKeys, ...rest } = options;
  return build(
    {
      type: 'array',
      items: items.openapi,
      ...(listType && { 'x-kubernetes-list-type': listType }),
      ...(mapKeys && { 'x-kubernetes-list-map-keys': mapKeys }),
    },
    rest,
  );
}

interface MapOptions<T> extends Common<Record<string, T>> {
  readonly mapType?: 'atomic' | 'granular';
  readonly maxProperties?: number;
}

/** An object with free keys, all values of one schema. */
export function map<T>(values: Schema<T>, options: MapOptions<NoInfer<T>> = {}): Schema<Record<string, T>> {
  const { mapType, ...rest } = options;
  return build(
    {
      type: 'object',
      additionalProperties: values.openapi,
      ...(mapType && { 'x-kubernetes-map-type': mapType }),
    },
    rest,
  );
}

interface ObjectOptions<F extends Readonly<Record<string, Schema>>, R extends keyof F> extends Common<unknown> {
  readonly fields: F;
  readonly required?: readonly R[];
}

/** An object with named fields. Those not listed in `required` may be absent, also in the static type. */
export function object<const F extends Readonly<Record<string, Schema>>, const R extends keyof F & string = never>(
  options: ObjectOptions<F, R>,
): Schema<FieldsOf<F, R>> {
  const { fields, required = [], ...rest } = options;
  const properties = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.openapi]));
  return build({ type: 'object', properties, ...(required.length > 0 && { required: [...required] }) }, rest);
}

/** A number or a text that reads as a Kubernetes quantity, such as `2`, `500m` or `4Gi`. */
export const quantity: Schema<string | number> = {
  openapi: {
    anyOf: [{ type: 'integer' }, { type: 'string' }],
    pattern:
      '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$',
    'x-kubernetes-int-or-string': true,
  },
};

function build<T>(base: OpenApiSchema, options: Common<unknown> & OpenApiSchema): Schema<T> {
  const { rules, ...rest } = options;
  return { openapi: ordered({ ...base, ...rest, ...(rules && { 'x-kubernetes-validations': rules }) }) };
}

/** Puts what people read first: generated files keep this order. */
function ordered(schema: OpenApiSchema): OpenApiSchema {
  const { description, type, ...rest } = schema;
  return { ...(description !== undefined && { description }), ...(type && { type }), ...rest };
}
