// SPDX-License-Identifier: Apache-2.0
// What is wrong with values that are written out in an expression: patterns, times, formats, and lists of mixed types. Looked at
// once the types agree.

import { toDuration, toTimestamp } from './cel-conversions.ts';
import type { CelCore } from './cel-expand.ts';
import { functions } from './cel-library.ts';
import { type CelStaticType, insideOptional, sameCelType, showCelType } from './cel-types.ts';
import { CelError } from './cel-values.ts';
import { compileRegexp, RegexpError } from './regexp.ts';

type Report = (at: number, message: string) => void;
type TypeOf = (node: CelCore) => CelStaticType;

/** Reports what is wrong with the literals of a tree. */
export function checkCelLiterals(tree: CelCore, typeOf: TypeOf, report: Report): void {
  walk(tree, typeOf, report, false);
}

function walk(node: CelCore, typeOf: TypeOf, report: Report, mixed: boolean): void {
  let free = mixed;
  if (node.kind === 'call') {
    checkArgument(node, report);
    // What is formatted may be of any types.
    if (node.name === 'format' && node.target !== undefined) {
      checkFormat(node, typeOf, report);
      free = true;
    }
  } else if (!mixed && node.kind === 'list') {
    const [odd] = unlike(node.items, typeOf);
    if (odd !== undefined) report(odd.at, odd.message);
  } else if (!mixed && node.kind === 'map') {
    const keys = node.entries.map(({ key }) => ({ value: key, optional: false }));
    for (const { at, message } of [...unlike(keys, typeOf), ...unlike(node.entries, typeOf)]) report(at, message);
  }
  for (const child of childrenOf(node)) walk(child, typeOf, report, free);
}

interface Member {
  readonly value: CelCore;
  readonly optional: boolean;
}

/** The members that are not of the first one's type. */
function unlike(members: readonly Member[], typeOf: TypeOf): { at: number; message: string }[] {
  const types = members.map(({ value, optional }) => {
    const type = typeOf(value);
    return optional ? (insideOptional(type) ?? type) : type;
  });
  return members.flatMap(({ value }, i) =>
    sameCelType(types[0]!, types[i]!)
      ? []
      : [{ at: value.at, message: `expected type '${showCelType(types[0]!)}' but found '${showCelType(types[i]!)}'` }],
  );
}

const argumentChecks: ReadonlyMap<string, (text: string) => unknown> = new Map<string, (text: string) => unknown>([
  ['duration', toDuration],
  ['timestamp', toTimestamp],
  ['matches', (text) => compileRegexp(text)],
]);

function checkArgument({ name, args }: Extract<CelCore, { kind: 'call' }>, report: Report): void {
  const [argument] = args;
  const check = argumentChecks.get(name);
  if (check === undefined || argument?.kind !== 'literal' || typeof argument.value !== 'string') return;
  try {
    check(argument.value);
  } catch (error) {
    if (!(error instanceof CelError || error instanceof RegexpError)) throw error;
    report(argument.at, `invalid ${name} argument`);
  }
}

/** What each clause of a format takes, and how it is called. */
const clauses: Readonly<Record<string, { readonly takes?: readonly string[]; readonly sentence: string }>> = {
  s: { sentence: '' },
  d: { takes: ['int', 'uint'], sentence: 'decimal clause can only be used on integers' },
  f: { takes: ['double', 'string'], sentence: 'fixed-point clause can only be used on doubles' },
  e: { takes: ['double', 'string'], sentence: 'scientific clause can only be used on doubles' },
  b: { takes: ['int', 'uint', 'bool'], sentence: 'only integers and bools can be formatted as binary' },
  o: { takes: ['int', 'uint'], sentence: 'octal clause can only be used on integers' },
  x: {
    takes: ['int', 'uint', 'string', 'bytes'],
    sentence: 'only integers, byte buffers, and strings can be formatted as hex',
  },
  X: {
    takes: ['int', 'uint', 'string', 'bytes'],
    sentence: 'only integers, byte buffers, and strings can be formatted as hex',
  },
};

function checkFormat(node: Extract<CelCore, { kind: 'call' }>, typeOf: TypeOf, report: Report): void {
  const { target, args } = node;
  const [list] = args;
  if (target?.kind !== 'literal' || typeof target.value !== 'string' || list?.kind !== 'list') return;
  let next = 0;
  for (const [clause, verb] of target.value.matchAll(/%(?:%|(?:\.\d+)?([a-zA-Z]))|%/g)) {
    if (clause === '%%') continue;
    const known = verb === undefined ? undefined : clauses[verb];
    if (known === undefined) {
      report(
        node.at,
        verb === undefined
          ? 'unexpected end of string'
          : `could not parse formatting clause: unrecognized formatting clause "${verb}"`,
      );
      return;
    }
    const argument = list.items[next++];
    if (argument === undefined) {
      report(node.at, `index ${next - 1} out of range`);
      return;
    }
    const type = typeOf(argument.value);
    if (known.takes !== undefined && type.kind !== 'dyn' && !known.takes.includes(type.name)) {
      report(argument.value.at, `error during formatting: ${known.sentence}, was given ${type.name}`);
      return;
    }
  }
  if (list.items.length > next) {
    report(node.at, `too many arguments supplied to string.format (expected ${next}, got ${list.items.length})`);
  }
}

const conversions = new Set(['bool', 'bytes', 'double', 'duration', 'int', 'string', 'timestamp', 'uint']);

/** The problem of a conversion of something written out, which is done once, before the expression runs. */
export function constantProblem(node: CelCore): string | undefined {
  if (node.kind === 'call' && node.target === undefined && conversions.has(node.name)) {
    const [argument] = node.args;
    try {
      if (argument?.kind === 'literal') functions.get(node.name)?.(argument.value);
    } catch (error) {
      if (!(error instanceof CelError)) throw error;
      return error.message;
    }
  }
  for (const child of childrenOf(node)) {
    const found = constantProblem(child);
    if (found !== undefined) return found;
  }
  return undefined;
}

function childrenOf(node: CelCore): readonly CelCore[] {
  switch (node.kind) {
    case 'select':
      return [node.operand];
    case 'call':
      return node.target === undefined ? node.args : [node.target, ...node.args];
    case 'list':
      return node.items.map(({ value }) => value);
    case 'map':
      return node.entries.flatMap(({ key, value }) => [key, value]);
    case 'loop':
      return [node.range, node.start, node.condition, node.step, node.result];
    case 'literal':
    case 'identifier':
      return [];
  }
}
