// SPDX-License-Identifier: Apache-2.0
// Small mistakes, one at a time: every place in a source file where an operator can be another, an await can be missing or
// two branches can be swapped. Pure.
import { type Node, parseSync, visitorKeys } from 'oxc-parser';

export type MutantKind = 'operator' | 'await' | 'branch';

/** One changed place. */
export interface Mutant {
  readonly path: string;
  readonly kind: MutantKind;
  readonly start: number;
  readonly end: number;
  /** What stands there instead. */
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
    const start = left.end + source.slice(left.end, right.start).indexOf(operator);
    add('operator', start, start + operator.length, other);
  } else if (node.type === 'UnaryExpression' && node.operator === '!') {
    add('operator', node.start, node.end, `(${textOf(node.argument)})`);
  } else if (node.type === 'AwaitExpression') {
    add('await', node.start, node.end, `(${textOf(node.argument)})`);
  } else if (node.type === 'ConditionalExpression') {
    const { consequent, alternate } = node;
    add('branch', consequent.start, alternate.end, `${textOf(alternate)} : ${textOf(consequent)}`);
  } else if (node.type === 'IfStatement') {
    add('branch', node.test.start, node.test.end, `!(${textOf(node.test)})`);
  }
}

/** The file with the mistake in it. */
export function applied(source: string, { start, end, text }: Mutant): string {
  return source.slice(0, start) + text + source.slice(end);
}

/** Where it is and what it does, for people: `path:line: kind: before → after`. */
export function described(source: string, mutant: Mutant): string {
  const { path, kind, start, end, text } = mutant;
  const lineStart = source.lastIndexOf('\n', start) + 1;
  const line = source.slice(0, start).split('\n').length;
  const lineEnd = source.indexOf('\n', end) < 0 ? source.length : source.indexOf('\n', end);
  const before = source.slice(lineStart, lineEnd).trim();
  const after = (source.slice(lineStart, start) + text + source.slice(end, lineEnd)).trim();
  return `${path}:${line}: ${kind}: ${before} → ${after}`;
}
