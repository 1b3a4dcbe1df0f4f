// SPDX-License-Identifier: Apache-2.0
// JSON as text, where a parser's result does not say enough: what Go's decoder says to a text that is none, and which
// keys of an object come twice.

/** What a look at a text finds. */
export interface JsonFindings {
  /** Why it is no JSON, in the words of Go's decoder; undefined when it is. */
  readonly problem: string | undefined;
  /** The paths of keys that come more than once, as far as the text could be read. */
  readonly duplicates: readonly string[];
}

interface Open {
  readonly isObject: boolean;
  readonly keys: Set<string>;
  key: string;
  index: number;
}

const literals: Readonly<Record<string, string>> = { t: 'true', f: 'false', n: 'null' };
const numberPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const spacePattern = /[ \t\r\n]*/y;
const plainText = /[^"\\\p{Cc}]*/uy;

/** Reads a text from left to right, without recursion: nesting costs a client nothing and us neither. */
export function readJsonText(text: string): JsonFindings {
  const reader = new Reader(text);
  const problem = reader.read();
  return { problem, duplicates: reader.duplicates };
}

class Reader {
  readonly duplicates: string[] = [];
  readonly #text: string;
  readonly #open: Open[] = [];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): string | undefined {
    let step: string | undefined = 'value';
    while (step === 'value') step = this.#value() ?? this.#afterValue();
    return step === 'done' ? undefined : step;
  }

  /** Reads a value, or the beginning of one that holds others: `value` when another follows right away. */
  #value(): string | undefined {
    const first = this.#next();
    if (first === '{' || first === '[') return this.#openUp(first === '{');
    if (first === '"') return this.#string() === undefined ? this.#stringProblem() : undefined;
    const literal = literals[first ?? ''];
    if (literal !== undefined) return this.#literal(literal);
    numberPattern.lastIndex = this.#at;
    const number = numberPattern.exec(this.#text)?.[0];
    if (number === undefined) {
      if (first === '-') {
        this.#at++;
        return this.#unexpected('in numeric literal');
      }
      return this.#unexpected('looking for beginning of value');
    }
    this.#at += number.length;
    return undefined;
  }

  #openUp(isObject: boolean): string | undefined {
    this.#at++;
    this.#open.push({ isObject, keys: new Set(), key: '', index: 0 });
    const next = this.#next();
    if (next === (isObject ? '}' : ']')) {
      // The next step closes it.
      return undefined;
    }
    return isObject ? this.#key() : 'value';
  }

  #key(): string | undefined {
    if (this.#next() !== '"') return this.#unexpected('looking for beginning of object key string');
    const key = this.#string();
    if (key === undefined) return this.#stringProblem();
    const open = this.#open.at(-1)!;
    open.key = key;
    if (open.keys.has(key)) this.duplicates.push(this.#path());
    open.keys.add(key);
    if (this.#next() !== ':') return this.#unexpected('after object key');
    this.#at++;
    return 'value';
  }

  /** Closes what ends here: `value` when another one follows, `done` at the end of all. */
  #afterValue(): string {
    for (;;) {
      const next = this.#next();
      const open = this.#open.at(-1);
      if (!open) return next === undefined ? 'done' : this.#unexpected('after top-level value');
      if (next === (open.isObject ? '}' : ']')) {
        this.#at++;
        this.#open.pop();
      } else if (next === ',') {
        this.#at++;
        open.index++;
        return open.isObject ? this.#key()! : 'value';
      } else return this.#unexpected(open.isObject ? 'after object key:value pair' : 'after array element');
    }
  }

  /** The text of a string; undefined when it does not end well. */
  #string(): string | undefined {
    const from = this.#at++;
    for (;;) {
      plainText.lastIndex = this.#at;
      this.#at += plainText.exec(this.#text)![0].length;
      const end = this.#text[this.#at];
      if (end === '"') break;
      if (end !== '\\' || !/^\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/.test(this.#text.slice(this.#at, this.#at + 6))) {
        return undefined;
      }
      this.#at += this.#text[this.#at + 1] === 'u' ? 6 : 2;
    }
    this.#at++;
    return JSON.parse(this.#text.slice(from, this.#at)) as string;
  }

  #stringProblem(): string {
    if (this.#text[this.#at] !== '\\') return this.#unexpected('in string literal', false);
    this.#at++;
    return this.#unexpected('in string escape code', false);
  }

  #literal(word: string): string | undefined {
    for (let i = 0; i < word.length; i++, this.#at++) {
      if (this.#text[this.#at] !== word[i])
        return this.#unexpected(`in literal ${word} (expecting '${word[i]}')`, false);
    }
    return undefined;
  }

  /** The next character that is no space; undefined at the end. */
  #next(): string | undefined {
    spacePattern.lastIndex = this.#at;
    this.#at += spacePattern.exec(this.#text)![0].length;
    return this.#text[this.#at];
  }

  #unexpected(where: string, skipSpace = true): string {
    const found = skipSpace ? this.#next() : this.#text[this.#at];
    if (found === undefined) return 'unexpected end of JSON input';
    const shown = found === "'" ? "'\\''" : found === '"' ? `'"'` : `'${JSON.stringify(found).slice(1, -1)}'`;
    return `invalid character ${shown} ${where}`;
  }

  #path(): string {
    return this.#open
      .map(({ isObject, key, index }, i) => (isObject ? `${i === 0 ? '' : '.'}${key}` : `[${index}]`))
      .join('');
  }
}
