// SPDX-License-Identifier: Apache-2.0
// Reading a request's body: every field that is wrong is named, all of them at once, as the API does.
import type { Json } from './exchange.ts';
import { type Problem, Refusal } from './refusal.ts';

/** Collects what is wrong with a body; `done` refuses (400) when anything was. */
export class Fields {
  readonly #body: Json;
  readonly #problems: Problem[] = [];

  constructor(body: Json) {
    this.#body = body;
  }

  wrong(field: string, reason: string): void {
    this.#problems.push({ reason, field });
  }

  has(name: string): boolean {
    return this.#body[name] !== undefined && this.#body[name] !== null;
  }

  raw(name: string): unknown {
    return this.#body[name] ?? undefined;
  }

  text(name: string, options: { required?: boolean } = {}): string | undefined {
    return this.#typed(name, 'string', 'a string', options.required);
  }

  flag(name: string): boolean | undefined {
    return this.#typed(name, 'boolean', 'a boolean');
  }

  whole(name: string, options: { required?: boolean; min?: number; max?: number } = {}): number | undefined {
    const value = this.#typed<number>(name, 'number', 'an integer', options.required);
    if (value === undefined) return undefined;
    const { min = 0, max = Number.MAX_SAFE_INTEGER } = options;
    if (!Number.isInteger(value)) this.wrong(name, 'Must be of type Integer');
    else if (value < min || value > max) {
      this.wrong(name, max === Number.MAX_SAFE_INTEGER ? `Must be ${min} or greater` : `Must be ${min}-${max}`);
    }
    return value;
  }

  oneOf<T extends string>(name: string, values: readonly T[]): T | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    if ((values as readonly string[]).includes(value)) return value as T;
    this.wrong(name, `Must be one of ${values.join(', ')}`);
    return undefined;
  }

  object(name: string): Json | undefined {
    const value = this.raw(name);
    if (value === undefined) return undefined;
    if (typeof value === 'object' && !Array.isArray(value)) return value as Json;
    this.wrong(name, 'Must be of type Object');
    return undefined;
  }

  list(name: string): readonly unknown[] | undefined {
    const value = this.raw(name);
    if (value === undefined) return undefined;
    if (Array.isArray(value)) return value as readonly unknown[];
    this.wrong(name, 'Must be of type Array');
    return undefined;
  }

  texts(name: string): readonly string[] | undefined {
    const values = this.list(name);
    if (values === undefined) return undefined;
    values.forEach((value, index) => {
      if (typeof value !== 'string') this.wrong(`${name}[${index}]`, 'Must be of type String');
    });
    return values.filter((value) => typeof value === 'string');
  }

  /** Without doubles, in the order given. */
  tags(name = 'tags'): string[] | undefined {
    const values = this.texts(name);
    if (values === undefined) return undefined;
    for (const tag of values) {
      if (tag.length < 3 || tag.length > 50) {
        this.wrong(name, 'Length must be 3-50 characters');
        break;
      }
    }
    return [...new Set(values)];
  }

  done(): void {
    if (this.#problems.length > 0) throw new Refusal(400, this.#problems);
  }

  #typed<T>(name: string, type: string, what: string, required = false): T | undefined {
    const value = this.raw(name);
    if (value === undefined) {
      if (required) this.wrong(name, `${name} is required`);
      return undefined;
    }
    if (typeof value === type) return value as T;
    this.wrong(name, `Must be ${what}`);
    return undefined;
  }
}

const labelCharacters = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?$/;

/** What is wrong with the label of a Linode; undefined when nothing is. */
export function labelProblem(label: string, { min = 3, max = 64 } = {}): string | undefined {
  if (label.length < min || label.length > max) return `Length must be ${min}-${max} characters`;
  if (!labelCharacters.test(label)) return 'Must only use ASCII letters, numbers, underscores, periods, and dashes';
  if (/--|__|\.\./.test(label)) return 'Must not contain two dashes, underscores or periods in a row';
  return undefined;
}
