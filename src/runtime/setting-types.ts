// SPDX-License-Identifier: Apache-2.0
// The kinds of values a setting can have: how each is read from text, checked, and shown again.
import { KarpenterError } from '../base/errors.ts';
import { formatDuration, parseDuration } from '../kube/time.ts';

/** What a value may not be, in words that follow "must be" or stand alone. Thrown by `parse` only. */
export class SettingError extends KarpenterError {
  constructor(message: string, cause?: unknown) {
    super('KRP_SETTING', message, cause === undefined ? {} : { cause });
  }
}

/** Collects what is odd about a value but does not stop the program. */
export type Warn = (message: string) => void;

/** One line of the settings table. Everything about a setting is here and nowhere else. */
export interface Setting<V = unknown> {
  /** Without the dashes; none for what only the environment gives. */
  readonly flag?: string;
  readonly env: string;
  readonly default: V;
  readonly help: string;
  /** The chart's values that give it, ours first; the others are names that other charts have. None: not in the chart. */
  readonly chart?: readonly [string, ...string[]];
  /** A credential: the chart keeps it in a Secret, not in the pod. */
  readonly secret?: boolean;
  /** For the reference: `int`, `bool`, `duration`, … */
  readonly type: string;
  /** A JSON schema of the value, for the chart's values.schema.json. */
  readonly schema: Readonly<Record<string, unknown>>;
  /** The value of a text. Throws `SettingError` when the text is not of the type. */
  parse(text: string, from: 'flag' | 'env', warn: Warn): V;
  /** Why a value of the right type is refused, or undefined. */
  check(value: V): string | undefined;
  /** The text that gives the value. */
  format(value: V): string;
  /** What the program uses for a value that was given or defaulted. */
  adjust?(value: V): V;
  /** No default can stand in for what the author meant: an unreadable variable is a problem, not a warning. */
  readonly strict?: boolean;
}

interface Common<V> {
  readonly flag?: string;
  readonly env: string;
  readonly chart?: readonly [string, ...string[]];
  readonly secret?: boolean;
  readonly default: V;
  readonly help: string;
  readonly adjust?: (value: V) => V;
}

const accept = (): undefined => undefined;

export function text(setting: Common<string>): Setting<string> {
  return { ...setting, type: 'string', schema: { type: 'string' }, parse: (value) => value, check: accept, format };
}

/** A whole number from `min` to `max`. */
export function int(setting: Common<number> & { readonly min?: number; readonly max?: number }): Setting<number> {
  const { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER, ...common } = setting;
  const bounds = {
    ...(setting.min === undefined ? {} : { minimum: min }),
    ...(setting.max === undefined ? {} : { maximum: max }),
  };
  return {
    ...common,
    type: 'int',
    schema: { type: 'integer', ...bounds },
    parse(value) {
      if (!/^[+-]?\d+$/.test(value) || !Number.isSafeInteger(Number(value))) {
        throw new SettingError('must be a whole number');
      }
      return Number(value);
    },
    check(value) {
      if (value >= min && value <= max) return undefined;
      if (setting.min === undefined) return `must be at most ${max}`;
      return setting.max === undefined ? `must be at least ${min}` : `must be from ${min} to ${max}`;
    },
    format,
  };
}

/** A number of at least `min`, with or without a fraction. */
export function decimal(setting: Common<number> & { readonly min: number; readonly max?: number }): Setting<number> {
  const { min, max = Number.MAX_VALUE, ...common } = setting;
  return {
    ...common,
    type: 'number',
    schema: { type: 'number', minimum: min, ...(setting.max === undefined ? {} : { maximum: max }) },
    parse(value) {
      if (!/^[+-]?(\d+\.?\d*|\.\d+)$/.test(value)) throw new SettingError('must be a number');
      return Number(value);
    },
    check(value) {
      if (value >= min && value <= max) return undefined;
      return setting.max === undefined ? `must be at least ${min}` : `must be from ${min} to ${max}`;
    },
    format,
  };
}

// What Go's strconv.ParseBool takes: charts and manifests written for upstream rely on it in the environment.
const environmentBooleans: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'TRUE', 'true', 'True'].map((word) => [word, true] as const),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map((word) => [word, false] as const),
]);

/** On the command line only `true` and `false` count, as upstream has it. */
export function bool(setting: Common<boolean>): Setting<boolean> {
  return {
    ...setting,
    type: 'bool',
    schema: { type: 'boolean' },
    parse(value, from) {
      if (from === 'flag' && value !== 'true' && value !== 'false') throw new SettingError('must be true or false');
      const known = environmentBooleans.get(value);
      if (known === undefined) throw new SettingError('must be true or false');
      return known;
    },
    check: accept,
    format,
  };
}

/** A Go duration (`1m30s`), held in milliseconds. */
export function duration(setting: Omit<Common<number>, 'default'> & { readonly default: string }): Setting<number> {
  return {
    ...setting,
    default: parseDuration(setting.default),
    type: 'duration',
    schema: { type: 'string', pattern: '^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$' },
    parse(value) {
      try {
        return parseDuration(value);
      } catch (error) {
        throw new SettingError('must be a duration such as 10s, 1m30s or 500ms', error);
      }
    },
    check: (value) => (value < 0 ? 'must not be negative' : undefined),
    format: formatDuration,
  };
}

/** One of a few words. */
export function oneOf<const W extends string>(setting: Common<W> & { readonly values: readonly W[] }): Setting<W> {
  const { values, ...common } = setting;
  return {
    ...common,
    type: values
      .filter((value) => value !== '')
      .map((value) => `\`${value}\``)
      .join(' or '),
    schema: { type: 'string', enum: [...values] },
    // A word that is not one of them is refused by `check`: it is of the right type, and upstream refuses it too.
    parse: (value) => value as W,
    check: (value) => (values.includes(value) ? undefined : `must be one of ${values.filter(Boolean).join(', ')}`),
    format,
  };
}

/** Words with commas between: at least one of any, or any number of `values`. */
export function list(
  setting: Common<readonly string[]> & { readonly values?: readonly string[] },
): Setting<readonly string[]> {
  const { values, ...common } = setting;
  const unknown = (value: readonly string[]): readonly string[] => value.filter((word) => !values?.includes(word));
  return {
    ...common,
    type: 'comma-separated list',
    schema: {
      type: 'array',
      items: { type: 'string', ...(values ? { enum: [...values] } : { minLength: 1 }) },
      ...(values ? { uniqueItems: true } : { minItems: 1 }),
    },
    parse: (value) =>
      value
        .split(',')
        .map((word) => word.trim())
        .filter(Boolean),
    check: (value) => {
      if (!values) return value.length === 0 ? 'must name at least one' : undefined;
      const wrong = unknown(value);
      return wrong.length === 0 ? undefined : `may only name ${values.join(', ')}; ${wrong.join(', ')} is none of them`;
    },
    format: (value) => value.join(','),
  };
}

/** Named switches, as `Name=true,Other=false`. A name that is not known is warned about and otherwise ignored. */
export function gates<N extends string>(
  setting: Common<Readonly<Record<N, boolean>>>,
): Setting<Readonly<Record<N, boolean>>> {
  type G = Readonly<Record<N, boolean>>;
  const formatGates = (value: G): string =>
    Object.entries<boolean>(value)
      .map(([name, on]) => `${name}=${on}`)
      .join(',');
  return {
    ...setting,
    type: 'list of name=bool',
    strict: true,
    schema: {
      type: 'object',
      properties: Object.fromEntries(Object.keys(setting.default).map((name) => [name, { type: 'boolean' }])),
      additionalProperties: false,
    },
    parse(value, _from, warn) {
      const parsed: Record<string, boolean> = { ...setting.default };
      for (const pair of value.split(',').map((word) => word.trim())) {
        if (pair === '') continue;
        const equals = pair.indexOf('=');
        if (equals < 0) throw new SettingError(`must be a list of name=true and name=false; "${pair}" is not`);
        const name = pair.slice(0, equals).trim();
        const on = environmentBooleans.get(pair.slice(equals + 1).trim());
        if (on === undefined) throw new SettingError(`must give ${name} the value true or false`);
        if (Object.hasOwn(setting.default, name)) parsed[name] = on;
        else warn(`${name} is not known and has no effect; known are ${Object.keys(setting.default).join(', ')}`);
      }
      return parsed as G;
    },
    check: accept,
    format: formatGates,
  };
}

/** A document with a shape of its own; `read` throws with all that is wrong with it. */
export function document<V>(
  setting: Omit<Common<V>, 'default' | 'adjust'> & { readonly empty: V; readonly read: (value: string) => V },
): Setting<V> {
  const { empty, read, ...common } = setting;
  return {
    ...common,
    default: empty,
    type: 'YAML or JSON document',
    strict: true,
    schema: { type: ['object', 'string'] },
    parse: (value) => (value.trim() === '' ? empty : read(value)),
    check: accept,
    format: (value) => (value === empty ? '' : JSON.stringify(value)),
  };
}

function format(value: unknown): string {
  return String(value);
}
