// SPDX-License-Identifier: Apache-2.0
// The text form of label selectors: tokens and grammar, with the API server's words for what it does not understand.

import { compareStrings } from '../base/order.ts';

/** How a requirement was written: `a=b` and `a in (b)` mean the same and print differently. */
export type SelectorSymbol = '=' | '==' | '!=' | 'in' | 'notin' | '>' | '<' | 'exists' | '!';

/** What the parser asks of its caller: how to fail, how to check a key, how to build a requirement. */
export interface SelectorBuilder<R> {
  fail(message: string): Error;
  checkKey(key: string): void;
  build(key: string, symbol: SelectorSymbol, values: readonly string[]): R;
}

interface Token {
  readonly kind: 'end' | 'word' | 'symbol';
  readonly text: string;
}

const end: Token = { kind: 'end', text: '' };

/** The requirements of a selector in the order they are written. */
export function parseSelectorText<R>(text: string, builder: SelectorBuilder<R>): R[] {
  return new Parser(tokenize(text), builder).parse();
}

function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  // A NUL byte ends the text, as it does for Go's lexer.
  const source = text.split('\0', 1)[0] ?? '';
  const pattern = /[ \t\r\n]*(?:(==|!=|[=!(),><])|([^ \t\r\n=!(),><]+))/y;
  for (let match = pattern.exec(source); match !== null; match = pattern.exec(source)) {
    const [, symbol, word = ''] = match;
    tokens.push(symbol === undefined ? { kind: 'word', text: word } : { kind: 'symbol', text: symbol });
  }
  return tokens;
}

class Parser<R> {
  readonly #tokens: readonly Token[];
  readonly #builder: SelectorBuilder<R>;
  #position = 0;

  constructor(tokens: readonly Token[], builder: SelectorBuilder<R>) {
    this.#tokens = tokens;
    this.#builder = builder;
  }

  parse(): R[] {
    const requirements: R[] = [];
    for (;;) {
      const first = this.#peek();
      if (first.kind === 'end') return requirements;
      if (!startsRequirement(first))
        throw this.#fail(`found '${first.text}', expected: !, identifier, or 'end of string'`);
      requirements.push(this.#requirement());
      const next = this.#take();
      if (next.kind === 'end') return requirements;
      if (next.text !== ',') throw this.#fail(`found '${next.text}', expected: ',' or 'end of string'`);
      const after = this.#peek();
      if (!startsRequirement(after)) throw this.#fail(`found '${after.text}', expected: identifier after ','`);
    }
  }

  #requirement(): R {
    let token = this.#take();
    const negated = is(token, '!');
    if (negated) token = this.#take();
    if (token.kind !== 'word') throw this.#failInside(`found '${token.text}', expected: identifier`);
    const key = token.text;
    this.#builder.checkKey(key);
    const next = this.#peek();
    const ends = next.kind === 'end' || is(next, ',');
    // `!key` takes no operator: whatever follows is refused by the caller.
    if (negated) return this.#builder.build(key, '!', []);
    if (ends) return this.#builder.build(key, 'exists', []);
    const operator = this.#take();
    switch (operator.text) {
      case 'in':
      case 'notin':
        return this.#builder.build(key, operator.text, this.#values());
      case '=':
      case '==':
      case '!=':
      case '>':
      case '<':
        return this.#builder.build(key, operator.text, [this.#value()]);
      default:
        throw this.#failInside(`found '${operator.text}', expected: in, notin, =, ==, !=, gt, lt`);
    }
  }

  #value(): string {
    const next = this.#peek();
    if (next.kind === 'end' || is(next, ',')) return '';
    const token = this.#take();
    if (token.kind !== 'word') throw this.#failInside(`found '${token.text}', expected: identifier`);
    return token.text;
  }

  /** `(a,b)`; empty items stand for the empty value. */
  #values(): string[] {
    const open = this.#take();
    if (!is(open, '(')) throw this.#failInside(`found '${open.text}' expected: '('`);
    const first = this.#peek();
    if (first.kind !== 'word' && !is(first, ',') && !is(first, ')')) {
      throw this.#failInside(`found '${first.text}', expected: ',', ')' or identifier`);
    }
    const values = new Set<string>();
    for (;;) {
      const token = this.#peek();
      values.add(token.kind === 'word' ? this.#take().text : '');
      const separator = this.#take();
      if (is(separator, ')')) return [...values].sort(compareStrings);
      if (is(separator, ',')) {
        const item = this.#peek();
        if (item.kind === 'word' || is(item, ',') || is(item, ')')) continue;
        throw this.#failInside(`found '${item.text}', expected: ',', or identifier`);
      }
      throw this.#failInside(`found '${separator.text}', expected: ',' or ')'`);
    }
  }

  #peek(): Token {
    return this.#tokens[this.#position] ?? end;
  }

  #take(): Token {
    return this.#tokens[this.#position++] ?? end;
  }

  #fail(message: string): Error {
    return this.#builder.fail(message);
  }

  #failInside(message: string): Error {
    return this.#builder.fail(`unable to parse requirement: ${message}`);
  }
}

function startsRequirement(token: Token): boolean {
  return token.kind === 'word' || is(token, '!');
}

function is(token: Token, symbol: string): boolean {
  return token.kind === 'symbol' && token.text === symbol;
}
