// SPDX-License-Identifier: Apache-2.0
// The grammar of CEL: text in, tree out. Macros stay calls here; the compiler expands them.

import { CelDouble, CelError, CelUint, int } from './cel-values.ts';

/** A node of the tree. `at` is where it is in the text: of a call its parenthesis, of an operator the operator itself. */
export type CelNode = { readonly at: number } & CelNodeParts;

type CelNodeParts =
  | { readonly kind: 'literal'; readonly value: unknown }
  | { readonly kind: 'identifier'; readonly name: string }
  | { readonly kind: 'select'; readonly operand: CelNode; readonly field: string; readonly optional: boolean }
  | { readonly kind: 'index'; readonly operand: CelNode; readonly key: CelNode; readonly optional: boolean }
  | { readonly kind: 'call'; readonly name: string; readonly receiver?: CelNode; readonly args: readonly CelNode[] }
  | { readonly kind: 'list'; readonly items: readonly { readonly value: CelNode; readonly optional: boolean }[] }
  | {
      readonly kind: 'map';
      readonly entries: readonly { readonly key: CelNode; readonly value: CelNode; readonly optional: boolean }[];
    }
  | { readonly kind: 'unary'; readonly operator: '!' | '-'; readonly operand: CelNode }
  | { readonly kind: 'binary'; readonly operator: string; readonly left: CelNode; readonly right: CelNode }
  | { readonly kind: 'conditional'; readonly test: CelNode; readonly yes: CelNode; readonly no: CelNode };

interface Token {
  readonly type: 'end' | 'identifier' | 'literal' | 'symbol';
  readonly text: string;
  readonly at: number;
  readonly value?: unknown;
}

const reserved = new Set(
  'as break const continue else for function if import let loop package namespace return var void while'.split(' '),
);
const maxDepth = 250;

/** Parses an expression. Throws CelError with the place of the mistake. The tree is never deep: who walks it may recurse. */
export function parseCel(text: string): CelNode {
  const tree = new Parser(text, tokenize(text)).parse();
  // Chains (`a.b.c`, `1 + 1 + 1`) nest without an expression in an expression; the API server refuses them here, too.
  let level: readonly CelNode[] = [tree];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth) throw new CelError('max recursion depth exceeded');
    level = level.flatMap(partsOf);
  }
  return tree;
}

function partsOf(node: CelNode): readonly CelNode[] {
  switch (node.kind) {
    case 'literal':
    case 'identifier':
      return [];
    case 'select':
    case 'unary':
      return [node.operand];
    case 'index':
      return [node.operand, node.key];
    case 'call':
      return node.receiver === undefined ? node.args : [node.receiver, ...node.args];
    case 'list':
      return node.items.map(({ value }) => value);
    case 'map':
      return node.entries.flatMap(({ key, value }) => [key, value]);
    case 'binary':
      return [node.left, node.right];
    case 'conditional':
      return [node.test, node.yes, node.no];
  }
}

const tokenPattern =
  /(?:\s|\/\/[^\n]*)*(?:(?<string>[rRbB]{0,2}(?:"""[^]*?(?<!\\)(?:\\\\)*"""|'''[^]*?(?<!\\)(?:\\\\)*'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))|(?<number>0[xX][0-9a-fA-F]+[uU]?|(?:[0-9]+\.[0-9]+|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|[0-9]+[uU]?)|(?<identifier>[_a-zA-Z][_a-zA-Z0-9]*|`[^`\n]+`)|(?<symbol>&&|\|\||==|!=|<=|>=|\.\?|\[\?|[-+*/%!<>?:.,()[\]{}])|$)/y;

function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  tokenPattern.lastIndex = 0;
  for (;;) {
    const from = tokenPattern.lastIndex;
    const match = tokenPattern.exec(text);
    if (match === null) {
      const blank = /^\s*/.exec(text.slice(from))![0].length;
      throw syntaxError(text, from + blank, `token recognition error at: '${text.slice(from + blank)}'`);
    }
    const { string, number, identifier, symbol } = match.groups ?? {};
    const at = tokenPattern.lastIndex - (string ?? number ?? identifier ?? symbol ?? '').length;
    if (string !== undefined) tokens.push({ type: 'literal', text: string, at, value: readString(string, text, at) });
    else if (number !== undefined)
      tokens.push({ type: 'literal', text: number, at, value: readNumber(number, text, at) });
    else if (identifier !== undefined) tokens.push({ type: 'identifier', text: identifier, at });
    else if (symbol !== undefined) tokens.push({ type: 'symbol', text: symbol, at });
    else {
      tokens.push({ type: 'end', text: '<EOF>', at: text.length });
      return tokens;
    }
  }
}

function syntaxError(text: string, at: number, message: string): CelError {
  return new CelError(celProblem(text, at, `Syntax error: ${message}`));
}

/** The grammar allows it, but it cannot be. */
function misuse(text: string, at: number, message: string): CelError {
  return new CelError(celProblem(text, at, message));
}

/** A problem as cel-go shows it: the place, the sentence, the line and a mark under it. */
export function celProblem(text: string, at: number, message: string): string {
  const before = text.slice(0, at).split('\n');
  const column = Array.from(before.at(-1) ?? '');
  const line = (text.split('\n')[before.length - 1] ?? '').replaceAll('\t', ' ');
  const wide = (letter: string | undefined): boolean => letter !== undefined && letter > '\u007f';
  const dots = column.map((letter) => (wide(letter) ? '\uff0e' : '.')).join('');
  const mark = wide(Array.from(line)[column.length]) ? '\uff3e' : '^';
  return `ERROR: <input>:${before.length}:${column.length + 1}: ${message}\n | ${line}\n | ${dots}${mark}`;
}

function readNumber(source: string, text: string, at: number): unknown {
  if (/^0[xX]|^[0-9]+[uU]?$/.test(source)) {
    const unsigned = /[uU]$/.test(source);
    const value = BigInt(unsigned ? source.slice(0, -1) : source);
    // The smallest int is written as the negation of one too big for an int.
    if (!unsigned && value === 1n << 63n) return value;
    if (!unsigned && value > 1n << 63n) throw misuse(text, at, 'invalid int literal');
    return unsigned ? new CelUint(value) : int(value);
  }
  return new CelDouble(Number(source));
}

const escapes: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

function readString(source: string, text: string, at: number): unknown {
  const prefix = /^[rRbB]*/.exec(source)?.[0].toLowerCase() ?? '';
  const quoted = source.slice(prefix.length);
  const width = quoted.startsWith('"""') || quoted.startsWith("'''") ? 3 : 1;
  const body = quoted.slice(width, -width);
  const bytes = prefix.includes('b');
  if (prefix.includes('r')) return bytes ? new Uint8Array(Buffer.from(body)) : body;
  const parts: Buffer[] = [];
  const plain = body.replace(
    /\\(?:x([0-9a-fA-F]{2})|X([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|([^]))|[^\\]+/g,
    (whole, x?: string, bigX?: string, u?: string, bigU?: string, octal?: string, single?: string) => {
      const small = x ?? bigX ?? octal;
      let decoded = whole;
      if (small !== undefined) decoded = String.fromCharCode(Number.parseInt(small, octal === undefined ? 16 : 8));
      else if (u !== undefined || bigU !== undefined)
        decoded = codePoint(Number.parseInt(u ?? bigU ?? '', 16), text, at);
      else if (single !== undefined) {
        decoded = escapes[single] ?? single;
        if (escapes[single] === undefined && !/[\\?"'`]/.test(single))
          throw syntaxError(text, at, 'invalid escape sequence');
      }
      if (bytes) parts.push(Buffer.from(decoded, small === undefined ? 'utf8' : 'latin1'));
      return decoded;
    },
  );
  return bytes ? new Uint8Array(Buffer.concat(parts)) : plain;
}

function codePoint(code: number, text: string, at: number): string {
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) throw syntaxError(text, at, 'invalid unicode code point');
  return String.fromCodePoint(code);
}

// Binary operators by how strongly they bind.
const levels: readonly (readonly string[])[] = [
  ['||'],
  ['&&'],
  ['<', '<=', '>', '>=', '==', '!=', 'in'],
  ['+', '-'],
  ['*', '/', '%'],
];

function isNumber(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'bigint' || value instanceof CelDouble;
}

function negative(value: unknown): unknown {
  if (value instanceof CelDouble) return new CelDouble(-value.value);
  return typeof value === 'bigint' ? int(-value) : 0 - (value as number);
}

/** The levels of `||` and `&&`, whose chains may be of any length. */
const logicLevels = 2;

interface Link {
  readonly operator: string;
  readonly at: number;
  readonly right: CelNode;
}

/** A chain of one operator as a tree that is as flat as can be: the order of its sides does not matter. */
function balanced(first: CelNode, links: readonly Link[]): CelNode {
  if (links.length === 0) return first;
  const middle = links.length >> 1;
  const { operator, at, right } = links[middle]!;
  return {
    kind: 'binary',
    at,
    operator,
    left: balanced(first, links.slice(0, middle)),
    right: balanced(right, links.slice(middle + 1)),
  };
}

class Parser {
  readonly #text: string;
  readonly #tokens: readonly Token[];
  /** Numbers with a minus before them. */
  readonly #negated = new Set<Token>();
  #position = 0;
  #depth = 0;

  constructor(text: string, tokens: readonly Token[]) {
    this.#text = text;
    this.#tokens = tokens;
  }

  parse(): CelNode {
    const node = this.#expression();
    const rest = this.#peek();
    if (rest.type !== 'end') throw this.#unexpected(rest);
    return node;
  }

  #expression(): CelNode {
    if (++this.#depth > maxDepth) throw new CelError(`expression recursion limit exceeded: ${maxDepth}`);
    const test = this.#binary(0);
    let node = test;
    const at = this.#peek().at;
    if (this.#takeIf('?')) {
      const yes = this.#binary(0);
      this.#expect(':');
      node = { kind: 'conditional', at, test, yes, no: this.#expression() };
    }
    this.#depth--;
    return node;
  }

  #binary(level: number): CelNode {
    const operators = levels[level];
    if (operators === undefined) return this.#unary();
    let left = this.#binary(level + 1);
    const links: Link[] = [];
    while (operators.includes(this.#peek().text) && this.#peek().type !== 'literal') {
      const { text: operator, at } = this.#take();
      const right = this.#binary(level + 1);
      if (level < logicLevels) links.push({ operator, at, right });
      else left = { kind: 'binary', at, operator, left, right };
    }
    return balanced(left, links);
  }

  /** Of the same signs in a row, two cancel out; a minus before a number is part of it. */
  #unary(): CelNode {
    const { text: operator, at, type } = this.#peek();
    if (type !== 'symbol' || (operator !== '!' && operator !== '-')) return this.#member();
    let count = 0;
    while (this.#takeIf(operator)) count++;
    const next = this.#peek();
    if (count % 2 === 1 && operator === '-' && next.type === 'literal' && isNumber(next.value)) {
      this.#negated.add(next);
      return this.#member();
    }
    const operand = this.#member();
    return count % 2 === 0 ? operand : { kind: 'unary', at, operator, operand };
  }

  #member(): CelNode {
    let node = this.#primary();
    for (;;) {
      const { at } = this.#peek();
      if (this.#takeIf('.') || this.#takeIf('.?')) {
        const optional = this.#tokens[this.#position - 1]?.text === '.?';
        const field = this.#fieldName();
        const open = this.#peek().at;
        if (!optional && this.#takeIf('('))
          node = { kind: 'call', at: open, name: field, receiver: node, args: this.#until(')') };
        else node = { kind: 'select', at, operand: node, field, optional };
      } else if (this.#takeIf('[') || this.#takeIf('[?')) {
        const optional = this.#tokens[this.#position - 1]?.text === '[?';
        const key = this.#expression();
        this.#expect(']');
        node = { kind: 'index', at, operand: node, key, optional };
      } else return node;
    }
  }

  #fieldName(): string {
    const token = this.#take();
    if (token.type !== 'identifier') throw this.#unexpected(token);
    return token.text.startsWith('`') ? token.text.slice(1, -1) : token.text;
  }

  #primary(): CelNode {
    const token = this.#take();
    if (token.type === 'literal') {
      if (this.#negated.has(token)) return { kind: 'literal', at: token.at - 1, value: negative(token.value) };
      if (token.value === 1n << 63n) throw misuse(this.#text, token.at, 'invalid int literal');
      return { kind: 'literal', at: token.at, value: token.value };
    }
    if (token.type === 'identifier') return this.#identifier(token);
    switch (token.text) {
      case '(': {
        const node = this.#expression();
        this.#expect(')');
        return node;
      }
      case '[':
      case '[?':
        return this.#list(token.at, token.text === '[?');
      case '{':
        return this.#map(token.at);
      case '.':
        return this.#identifier(this.#take());
      default:
        throw this.#unexpected(token);
    }
  }

  #identifier(token: Token): CelNode {
    if (token.type !== 'identifier' || token.text.startsWith('`')) throw this.#unexpected(token);
    const { text: name, at } = token;
    if (name === 'true' || name === 'false') return { kind: 'literal', at, value: name === 'true' };
    if (name === 'null') return { kind: 'literal', at, value: null };
    if (name === 'in') throw this.#unexpected(token);
    if (reserved.has(name)) throw misuse(this.#text, token.at, `reserved identifier: ${name}`);
    const open = this.#peek().at;
    if (this.#takeIf('(')) return { kind: 'call', at: open, name, args: this.#until(')') };
    return { kind: 'identifier', at, name };
  }

  #until(end: string): CelNode[] {
    const args: CelNode[] = [];
    while (!this.#takeIf(end)) {
      args.push(this.#expression());
      if (!this.#takeIf(',')) {
        this.#expect(end);
        break;
      }
    }
    return args;
  }

  #list(at: number, startsOptional: boolean): CelNode {
    const items: { value: CelNode; optional: boolean }[] = [];
    let optional = startsOptional;
    while (optional || !this.#takeIf(']')) {
      optional ||= this.#takeIf('?');
      items.push({ value: this.#expression(), optional });
      optional = false;
      if (!this.#takeIf(',')) {
        this.#expect(']');
        break;
      }
    }
    return { kind: 'list', at, items };
  }

  #map(at: number): CelNode {
    const entries: { key: CelNode; value: CelNode; optional: boolean }[] = [];
    while (!this.#takeIf('}')) {
      const optional = this.#takeIf('?');
      const key = this.#expression();
      this.#expect(':');
      entries.push({ key, value: this.#expression(), optional });
      if (!this.#takeIf(',')) {
        this.#expect('}');
        break;
      }
    }
    return { kind: 'map', at, entries };
  }

  #peek(): Token {
    return this.#tokens[this.#position] as Token;
  }

  #take(): Token {
    const token = this.#peek();
    if (token.type !== 'end') this.#position++;
    return token;
  }

  #takeIf(symbol: string): boolean {
    const token = this.#peek();
    if (token.type !== 'symbol' || token.text !== symbol) return false;
    this.#position++;
    return true;
  }

  #expect(symbol: string): void {
    if (!this.#takeIf(symbol)) throw this.#unexpected(this.#peek(), symbol);
  }

  #unexpected(token: Token, wanted?: string): CelError {
    const hint = wanted === undefined ? '' : ` expecting '${wanted}'`;
    return syntaxError(this.#text, token.at, `mismatched input '${token.text}'${hint}`);
  }
}
