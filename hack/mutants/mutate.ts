// SPDX-License-Identifier: Apache-2.0
// Small mistakes, one at a time: every place in a source file where an operator can be another, an await can be missing or
// two branches can be swapped. Pure.
import { type Node, parseSync, visitorKeys } from 'oxc-parser';

export type MutantKind = 'operator' | 'await' | 'branch';

/** One changed expression. */
export interface Mutant {
  readonly path: string;
  readonly kind: MutantKind;
  readonly start: number;
  readonly end: number;
  /** The expression that stands there instead. */
  readonly text: string;
}

/** Each operator with the one that a tired person would write. */
const operators: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '&&': '||',
  '||': '&&',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '+=': '-=',
  '-=': '+=',
  '||=': '&&=',
  '??=': '=',
};

/** What is only told to people is not worth a test: calls of a logger, and the switch of planted defects. */
const untold = /(?:^|[.#])(?:log|logger)\.(?:debug|info|warn|error|with)$|^planted$/;

/** The mutants of a file, in the order of their places. Throws when it cannot be parsed. */
export function mutantsOf(path: string, source: string): Mutant[] {
  const { program, errors } = parseSync(path, source);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]!.message}`);
  const found: Mutant[] = [];
  const add = (kind: MutantKind, start: number, end: number, text: string): void => {
    found.push({ path, kind, start, end, text });
  };
  walk(program as unknown as Node, source, add);
  return found.sort((a, b) => a.start - b.start || a.end - b.end || (a.text < b.text ? -1 : 1));
}

type Add = (kind: MutantKind, start: number, end: number, text: string) => void;

function walk(node: Node, source: string, add: Add): void {
  if (isUntold(node, source)) return;
  mutate(node, source, add);
  for (const key of visitorKeys[node.type] ?? []) {
    const child = (node as unknown as Record<string, unknown>)[key];
    for (const one of Array.isArray(child) ? child : [child]) if (isNode(one)) walk(one, source, add);
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
}

/** Types vanish before anything runs. */
function isUntold(node: Node, source: string): boolean {
  if (/^TS(?!NonNull|As|Satisfies)/.test(node.type)) return true;
  return node.type === 'CallExpression' && untold.test(source.slice(node.callee.start, node.callee.end));
}

function mutate(node: Node, source: string, add: Add): void {
  const textOf = ({ start, end }: { start: number; end: number }): string => source.slice(start, end);
  if (node.type === 'LogicalExpression') {
    const { left, right, operator } = node;
    // In brackets: not every operator may stand beside every other.
    const text = operator === '??' ? textOf(left) : `${textOf(left)} ${operators[operator]} ${textOf(right)}`;
    add('operator', node.start, node.end, `(${text})`);
  } else if (node.type === 'BinaryExpression' || node.type === 'AssignmentExpression') {
    const { left, right, operator } = node;
    const other = operators[operator];
    // Texts are joined with +, and nothing else can be done with them.
    if (other === undefined || (operator === '+' && /['"`]/.test(textOf(node)))) return;
    const between = source.slice(left.end, right.start).replace(operator, other);
    add(
      'operator',
      node.start,
      node.end,
      source.slice(node.start, left.end) + between + source.slice(right.start, node.end),
    );
  } else if (node.type === 'UnaryExpression' && node.operator === '!') {
    add('operator', node.start, node.end, `(${textOf(node.argument)})`);
  } else if (node.type === 'AwaitExpression') {
    add('await', node.start, node.end, `(${textOf(node.argument)})`);
  } else if (node.type === 'ConditionalExpression' && !isNegated(node.test)) {
    const { test, consequent, alternate } = node;
    const question = source.slice(test.end, consequent.start);
    const text = textOf({ start: node.start, end: test.end }) + question + textOf(alternate);
    add('branch', node.start, node.end, `${text} : ${source.slice(consequent.start, consequent.end)}`);
  } else if (node.type === 'IfStatement' && !isNegated(node.test)) {
    add('branch', node.test.start, node.test.end, `!(${textOf(node.test)})`);
  }
}

/** Whether another operator in a test swaps its branches already: two mutants that do the same count once. */
function isNegated(test: Node): boolean {
  if (test.type === 'BinaryExpression') return test.operator === '===' || test.operator === '!==';
  return test.type === 'UnaryExpression' && test.operator === '!';
}

/** The file with the mistake in it. */
export function applied(source: string, { start, end, text }: Mutant): string {
  return source.slice(0, start) + text + source.slice(end);
}

/** The file with all of them in it, none of which is made unless it is the one that `chosen` says. */
export function withAll(source: string, mutants: readonly Mutant[], chosen: (mutant: Mutant) => string): string {
  // From the inside out and from the end to the beginning: places before what is written stay where they are.
  const within = (text: string, start: number, end: number, from: readonly Mutant[]): string => {
    const outer = from.filter((one) => !from.some((other) => other !== one && isWithin(one, other)));
    let written = text.slice(start, end);
    for (const one of outer.sort((a, b) => b.start - a.start)) {
      const inner = from.filter((other) => other !== one && isWithin(other, one));
      const kept = within(text, one.start, one.end, inner);
      written = `${written.slice(0, one.start - start)}(${chosen(one)} ? (${one.text}) : (${kept}))${written.slice(one.end - start)}`;
    }
    return written;
  };
  return within(source, 0, source.length, mutants);
}

/** Of two in the same place the one whose text comes first is within the other. */
function isWithin(inner: Mutant, outer: Mutant): boolean {
  if (inner.start === outer.start && inner.end === outer.end) return inner.text < outer.text;
  return inner.start >= outer.start && inner.end <= outer.end;
}

/** What it does, for people: `path: kind: before → after`, with the whole lines. */
export function told(source: string, { path, kind, start, end, text }: Mutant): string {
  const lineStart = source.lastIndexOf('\n', start) + 1;
  const lineEnd = source.indexOf('\n', end) < 0 ? source.length : source.indexOf('\n', end);
  const onOneLine = (lines: string): string => lines.replace(/\s+/g, ' ').trim();
  const before = onOneLine(source.slice(lineStart, lineEnd));
  const after = onOneLine(source.slice(lineStart, start) + text + source.slice(end, lineEnd));
  return `${path}: ${kind}: ${before} → ${after}`;
}

/** The line it begins in, counted from 1. */
export function lineOf(source: string, { start }: Mutant): number {
  return source.slice(0, start).split('\n').length;
}
