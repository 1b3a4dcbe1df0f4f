// SPDX-License-Identifier: Apache-2.0
// CEL behind one function: the language and the libraries that Kubernetes gives to CRD rules, admission and device selection.

import { CelCompiler, type Evaluate } from './cel-compiler.ts';
import { type CelInputSchema, celInput } from './cel-input.ts';
import { parseCel } from './cel-parser.ts';
import {
  CelDouble,
  CelDuration,
  CelError,
  CelOptional,
  CelTimestamp,
  CelUint,
  isMap,
  mapGet,
  mapKeys,
} from './cel-values.ts';

export { celInput } from './cel-input.ts';
export { CelError } from './cel-values.ts';

export interface CelOptions {
  /** The names an expression may use; by default `self` and `oldSelf`. Naming another is an error when compiling. */
  readonly variables?: readonly string[];
  /** The schema of `self` and `oldSelf`: a `number` becomes a double, `date-time` a timestamp, names are escaped. */
  readonly schema?: CelInputSchema;
}

/** A compiled expression. Safe to share and to evaluate any number of times. */
export interface CelProgram {
  readonly expression: string;
  /** Whether the expression mentions a variable. */
  uses(variable: string): boolean;
  /** Evaluates with plain JSON for variables; the result is plain too (an int beyond the safe range is a bigint). Throws CelError. */
  evaluate(variables: Readonly<Record<string, unknown>>): unknown;
}

const defaultVariables = ['self', 'oldSelf'] as const;
/** Steps of loops one evaluation may take: what the API server's cost limit is for. */
const maxSteps = 1_000_000;
const maxCached = 2000;
const cache = new Map<string, Compiled>();

interface Compiled {
  readonly evaluate: Evaluate;
  readonly used: ReadonlySet<string>;
}

/** Compiles an expression, or takes it from the cache. Throws CelError for what is not CEL or names what is not there. */
export function compileCel(expression: string, options: CelOptions = {}): CelProgram {
  const names = options.variables ?? defaultVariables;
  const { schema } = options;
  const compiled = compiledFor(expression, names);
  return {
    expression,
    uses: (variable) => compiled.used.has(variable),
    evaluate(variables) {
      const slots: unknown[] = [];
      for (const [slot, name] of names.entries()) {
        const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
        slots[slot] = schema !== undefined && (name === 'self' || name === 'oldSelf') ? input(value, schema) : value;
      }
      return toPlain(run(compiled, slots));
    },
  };
}

/** A value for a variable that may be missing (`optionalOldSelf`). */
export function celOptional(value: unknown): unknown {
  return value === undefined ? CelOptional.none : new CelOptional(value);
}

function input(value: unknown, schema: CelInputSchema): unknown {
  if (!(value instanceof CelOptional)) return celInput(value, schema);
  return value.hasValue ? new CelOptional(celInput(value.value, schema)) : value;
}

function compiledFor(expression: string, names: readonly string[]): Compiled {
  const key = `${names.join(',')}\n${expression}`;
  const known = cache.get(key);
  if (known !== undefined) return known;
  const compiler = new CelCompiler(names);
  const evaluate = compiler.compile(parseCel(expression));
  const compiled = { evaluate, used: compiler.used };
  if (cache.size >= maxCached) cache.clear();
  cache.set(key, compiled);
  return compiled;
}

function run({ evaluate }: Compiled, slots: unknown[]): unknown {
  try {
    return evaluate({ slots, budget: maxSteps });
  } catch (error) {
    if (error instanceof RangeError) throw new CelError('the value is nested too deeply');
    throw error;
  }
}

/** The result without our classes. */
function toPlain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof CelDouble || value instanceof CelUint) return value.value;
  if (Array.isArray(value)) return value.map(toPlain);
  if (value instanceof CelOptional) return toPlain(value.value);
  if (value instanceof CelTimestamp || value instanceof CelDuration || !isMap(value)) return value;
  if (value instanceof Map)
    return Object.fromEntries(mapKeys(value).map((key) => [String(key), toPlain(mapGet(value, key))]));
  return value;
}
