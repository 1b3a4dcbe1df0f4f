// SPDX-License-Identifier: Apache-2.0
// Hostile values from a seed.
import type { Random } from '../../src/base/random.ts';

/** Picks and mutates; the same seed gives the same run. */
export class Chance {
  readonly random: Random;

  constructor(random: Random) {
    this.random = random;
  }

  int(below: number): number {
    return this.random.int(below);
  }

  often(percent: number): boolean {
    return this.random.int(100) < percent;
  }

  pick<T>(from: readonly T[]): T {
    return from[this.random.int(from.length)]!;
  }

  /** A value that nobody expects where it will stand. */
  value(depth = 0): unknown {
    const simple = (): unknown => structuredClone(this.pick(hostile));
    if (depth > 3 || this.often(70)) return simple();
    const many = this.int(4);
    if (this.often(50)) return Array.from({ length: many }, () => this.value(depth + 1));
    return Object.fromEntries(Array.from({ length: many }, () => [this.pick(keys), this.value(depth + 1)]));
  }

  /** The same object with a few fields changed, added or taken away. */
  mutant(object: unknown, changes = 1 + this.int(3)): unknown {
    const copy = structuredClone(object);
    for (let i = 0; i < changes; i++) this.#change(copy);
    return copy;
  }

  /** As `mutant`, but each field is as likely as any other, however deep it lies. */
  deepMutant(object: unknown, changes = 1 + this.int(2)): unknown {
    const copy = structuredClone(object);
    for (let i = 0; i < changes; i++) {
      const places = placesIn(copy);
      if (places.length === 0) return copy;
      const [parent, name] = this.pick(places);
      if (this.often(25) && !Array.isArray(parent)) delete (parent as Record<string, unknown>)[name];
      else if (Array.isArray(parent)) parent[Number(name)] = this.value();
      else define(parent, name, this.value());
    }
    return copy;
  }

  #change(root: unknown): void {
    let at = root;
    for (;;) {
      if (typeof at !== 'object' || at === null) return;
      const names = Object.keys(at);
      const name = names.length > 0 && this.often(85) ? this.pick(names) : this.pick(keys);
      const child = Object.hasOwn(at, name) ? (at as Record<string, unknown>)[name] : undefined;
      const deeper = typeof child === 'object' && child !== null && this.often(70);
      if (deeper) {
        at = child;
        continue;
      }
      if (this.often(20) && !Array.isArray(at)) delete (at as Record<string, unknown>)[name];
      else define(at, name, this.value());
      return;
    }
  }

  /** A text with bytes flipped, cut, doubled or put in. */
  damaged(text: string): string {
    const at = this.int(text.length + 1);
    switch (this.int(4)) {
      case 0:
        return text.slice(0, at);
      case 1:
        return text.slice(0, at) + this.pick(noise) + text.slice(at);
      case 2:
        return text.slice(0, at) + text.slice(this.int(text.length + 1));
      default:
        return text + text.slice(0, at);
    }
  }

  /** Tokens in any order. */
  words(tokens: readonly string[], most: number, glue = ''): string {
    return Array.from({ length: 1 + this.int(most) }, () => this.pick(tokens)).join(glue);
  }
}

/** Every field and entry of a value, with what it is in. */
function placesIn(value: unknown): (readonly [parent: object, name: string])[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, child]) => [[value, name] as const, ...placesIn(child)]);
}

/** Sets a field also when its name means something to JavaScript. */
function define(object: object, name: string, value: unknown): void {
  if (Array.isArray(object)) {
    object.push(value);
    return;
  }
  Object.defineProperty(object, name, { value, enumerable: true, writable: true, configurable: true });
}

export const keys: readonly string[] = [
  'metadata',
  'spec',
  'status',
  'name',
  'namespace',
  'labels',
  'annotations',
  'finalizers',
  'ownerReferences',
  'containers',
  'data',
  'kind',
  'apiVersion',
  'replicas',
  'selector',
  'matchExpressions',
  'managedFields',
  'items',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'length',
  '',
  ' ',
  'a.b',
  'a/b',
  '$patch',
  '$retainKeys',
  'resourceVersion',
  'uid',
  'deletionTimestamp',
  'generation',
  'x-kubernetes-validations',
  'properties',
  'type',
];

const noise = [
  '"',
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '\\',
  '\u0000',
  '\uFEFF',
  '\uD800',
  '💥',
  'null',
  '1e999',
  '-',
  '0x',
  '\n',
];

const hostile: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1,
  0.5,
  -0,
  1e21,
  2 ** 53,
  -(2 ** 63),
  Number.MAX_VALUE,
  Number.MIN_VALUE,
  '',
  ' ',
  'a',
  '0',
  '-1',
  '1e3',
  '99999999999999999999',
  '../..',
  '%00',
  '\u0000',
  '\uD800',
  'ﷺ'.repeat(40),
  'x'.repeat(300),
  'x'.repeat(20_000),
  '2026-01-01T00:00:00Z',
  '9999999-99-99',
  '100m',
  '1e',
  '١',
  '(a+)+$',
  '*',
  '$',
  '~1~0',
  [],
  {},
  [[]],
  [null],
  { a: null },
  [{}],
  { '': '' },
  [1, 'a', null],
  { name: 'x' },
  [{ name: 'x' }],
];
