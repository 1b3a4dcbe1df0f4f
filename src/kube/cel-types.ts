// SPDX-License-Identifier: Apache-2.0
// The types that CEL expressions have before they run, and how they are made to agree: the rules of cel-go's checker.

/** A type. Two types are the same when kind, name and parameters are. */
export interface CelStaticType {
  readonly kind:
    | 'dyn'
    | 'error'
    | 'null'
    | 'bool'
    | 'int'
    | 'uint'
    | 'double'
    | 'string'
    | 'bytes'
    | 'timestamp'
    | 'duration'
    | 'list'
    | 'map'
    | 'type'
    | 'struct'
    | 'opaque'
    | 'param';
  /** Of structs, opaque types and parameters. */
  readonly name: string;
  readonly params: readonly CelStaticType[];
  /** Of structs whose fields are known. */
  readonly fields?: ReadonlyMap<string, CelStaticType>;
}

type Kind = CelStaticType['kind'];

const simple = (kind: Kind): CelStaticType => ({ kind, name: kind, params: [] });

export const dynType: CelStaticType = simple('dyn');
export const errorType: CelStaticType = simple('error');
export const boolType: CelStaticType = simple('bool');
export const stringType: CelStaticType = simple('string');
export const intType: CelStaticType = simple('int');

const simpleTypes: ReadonlyMap<string, CelStaticType> = new Map(
  [
    dynType,
    boolType,
    stringType,
    intType,
    ...(['null', 'uint', 'double', 'bytes', 'timestamp', 'duration'] as const).map(simple),
  ].map((type) => [type.name, type]),
);

/** The type of that name without parameters: `int`, `timestamp`. */
export function simpleType(name: string): CelStaticType {
  const found = simpleTypes.get(name);
  if (found === undefined) throw new Error(`no simple type ${name}`);
  return found;
}

export function listOf(item: CelStaticType): CelStaticType {
  return { kind: 'list', name: 'list', params: [item] };
}

export function mapOf(key: CelStaticType, value: CelStaticType): CelStaticType {
  return { kind: 'map', name: 'map', params: [key, value] };
}

export function optionalOf(item: CelStaticType): CelStaticType {
  return { kind: 'opaque', name: 'optional_type', params: [item] };
}

export function typeOf(type: CelStaticType): CelStaticType {
  return { kind: 'type', name: 'type', params: [type] };
}

export function structType(name: string, fields: ReadonlyMap<string, CelStaticType>): CelStaticType {
  return { kind: 'struct', name, params: [], fields };
}

/** What is in an optional; undefined when the type is none. */
export function insideOptional(type: CelStaticType): CelStaticType | undefined {
  return type.kind === 'opaque' && type.name === 'optional_type' ? type.params[0] : undefined;
}

const opaqueNames = new Set(['net.IP', 'net.CIDR']);

/** Reads a type as cel-go writes it: `map(string, list(A))`; one capital letter is a parameter. */
export function parseCelType(text: string): CelStaticType {
  const [, name = '', inner] = /^([^(]+)(?:\((.*)\))?$/.exec(text.trim()) ?? [];
  if (inner === undefined) {
    if (simpleTypes.has(name)) return simpleTypes.get(name)!;
    if (/^[A-Z]$/.test(name)) return { kind: 'param', name, params: [] };
    if (name === 'type') return simple('type');
    return { kind: opaqueNames.has(name) ? 'opaque' : 'struct', name, params: [] };
  }
  const params = splitTypes(inner).map(parseCelType);
  if (name === 'list' || name === 'map' || name === 'type') return { kind: name, name, params };
  return { kind: 'opaque', name, params };
}

/** Splits at the commas that are not in parentheses. */
export function splitTypes(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (const [i, letter] of Array.from(text).entries()) {
    if (letter === '(') depth++;
    else if (letter === ')') depth--;
    else if (letter === ',' && depth === 0) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  const last = text.slice(start).trim();
  return last === '' && parts.length === 0 ? [] : [...parts, last];
}

/** `map(string, list(int))`. */
export function showCelType(type: CelStaticType): string {
  if (type.kind === 'error') return '!error!';
  return type.params.length === 0 ? type.name : `${type.name}(${type.params.map(showCelType).join(', ')})`;
}

function sameType(a: CelStaticType, b: CelStaticType): boolean {
  return (
    a === b ||
    (a.kind === b.kind &&
      a.name === b.name &&
      a.params.length === b.params.length &&
      a.params.every((param, i) => sameType(param, b.params[i]!)))
  );
}

function isWild({ kind }: CelStaticType): boolean {
  return kind === 'dyn' || kind === 'error';
}

const nullable: ReadonlySet<Kind> = new Set(['opaque', 'struct', 'duration', 'timestamp', 'null']);

/** What type parameters stand for, learned step by step. */
export class Unifier {
  #bound: ReadonlyMap<string, CelStaticType> = new Map();
  #free = 0;

  /** A parameter that stands for nothing yet. */
  fresh(): CelStaticType {
    return { kind: 'param', name: `_var${this.#free++}`, params: [] };
  }

  /** Whether values of the first types can stand where the second are wanted. What is learned on the way is kept only if so. */
  agree(given: readonly CelStaticType[], wanted: readonly CelStaticType[]): boolean {
    const trial = new Map(this.#bound);
    const fits = given.length === wanted.length && given.every((type, i) => assignable(trial, type, wanted[i]!));
    if (fits) this.#bound = trial;
    return fits;
  }

  /** The type with all that is known put in; with `final`, what stays unknown is dyn. */
  resolve(type: CelStaticType, final = false): CelStaticType {
    return resolve(this.#bound, type, final);
  }

  /** The more general of two types that agree; undefined when they do not. */
  join(a: CelStaticType, b: CelStaticType): CelStaticType | undefined {
    return this.agree([a], [b]) ? mostGeneral(a, b) : undefined;
  }
}

type Bindings = Map<string, CelStaticType>;

function assignable(bound: Bindings, a: CelStaticType, b: CelStaticType): boolean {
  if (b.kind === 'param') {
    const { valid, known } = substitutes(bound, a, b);
    if (valid) return true;
    if (known) return false;
  }
  if (a.kind === 'param') return substitutes(bound, b, a).valid;
  if (isWild(a) || isWild(b)) return true;
  if (a.kind === 'null') return nullable.has(b.kind);
  if (b.kind === 'null') return nullable.has(a.kind);
  switch (a.kind as string) {
    case 'type':
      return b.kind === 'type';
    case 'opaque':
    case 'list':
    case 'map':
      return (
        a.kind === b.kind &&
        a.name === b.name &&
        a.params.length === b.params.length &&
        a.params.every((param, i) => assignable(bound, param, b.params[i]!))
      );
    default:
      return sameType(a, b);
  }
}

/** Whether a parameter can stand for a type, and whether it already stood for something. */
function substitutes(
  bound: Bindings,
  type: CelStaticType,
  param: CelStaticType,
): { readonly valid: boolean; readonly known: boolean } {
  if (sameType(type, param)) return { valid: true, known: true };
  const current = bound.get(param.name);
  if (current === undefined) {
    const valid = !mentions(bound, type, param);
    if (valid) bound.set(param.name, type);
    return { valid, known: false };
  }
  if (sameType(type, current)) return { valid: true, known: true };
  if (!assignable(bound, type, current)) return { valid: false, known: true };
  const general = mostGeneral(type, current);
  if (!mentions(bound, general, param)) bound.set(param.name, general);
  return { valid: true, known: true };
}

function mentions(bound: ReadonlyMap<string, CelStaticType>, type: CelStaticType, param: CelStaticType): boolean {
  if (sameType(type, param)) return true;
  if (type.kind === 'param') {
    const current = bound.get(type.name);
    return current !== undefined && mentions(bound, current, param);
  }
  return type.params.some((inner) => mentions(bound, inner, param));
}

function mostGeneral(a: CelStaticType, b: CelStaticType): CelStaticType {
  return lessSpecific(a, b) ? a : b;
}

function lessSpecific(a: CelStaticType, b: CelStaticType): boolean {
  if (a.kind === 'dyn' || a.kind === 'param') return true;
  if (b.kind === 'dyn' || b.kind === 'param' || a.kind !== b.kind) return false;
  if (a.kind === 'type') return true;
  return (
    a.name === b.name &&
    a.params.length === b.params.length &&
    a.params.every((param, i) => lessSpecific(param, b.params[i]!))
  );
}

function resolve(bound: ReadonlyMap<string, CelStaticType>, type: CelStaticType, final: boolean): CelStaticType {
  if (type.kind === 'param') {
    const current = bound.get(type.name);
    if (current !== undefined) return resolve(bound, current, final);
    return final ? dynType : type;
  }
  if (type.params.length === 0) return type;
  return { ...type, params: type.params.map((param) => resolve(bound, param, final)) };
}

/** Whether two results are the same type, for the one an ambiguous call gives. */
export const sameCelType: (a: CelStaticType, b: CelStaticType) => boolean = sameType;
