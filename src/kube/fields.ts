// SPDX-License-Identifier: Apache-2.0
// Field selectors (`status.phase=Running,spec.nodeName!=`): parsed here, the caller says what a field's value is.

import { compareStrings } from '../base/order.ts';
import { SelectorError } from './labels.ts';

export interface FieldRequirement {
  readonly field: string;
  readonly operator: '=' | '!=';
  readonly value: string;
}

/** A parsed field selector. Immutable; all requirements must hold. */
export interface FieldSelector {
  /** `get` gives the value of a field, '' where it is not set. */
  matches(get: (path: string) => string): boolean;
  readonly requirements: readonly FieldRequirement[];
  toString(): string;
}

/** Parses the text form; `\`, `,` and `=` are escaped by a backslash in values. Empty matches everything. Throws SelectorError with the API server's message. */
export function parseFieldSelector(text: string): FieldSelector {
  const requirements: FieldRequirement[] = [];
  for (const term of splitTerms(text).sort(compareStrings)) {
    if (term === '') continue;
    const parts = /^(.*?)(!=|==|=)(.*)$/s.exec(term);
    if (parts === null) throw new SelectorError(`invalid selector: '${text}'; can't understand '${term}'`);
    const [, field = '', operator, value = ''] = parts;
    const unescaped = unescape(value);
    // A term without a field and a value says nothing.
    if (field === '' && unescaped === '') continue;
    requirements.push({ field, operator: operator === '!=' ? '!=' : '=', value: unescaped });
  }
  return {
    requirements: Object.freeze(requirements),
    matches(get) {
      for (const { field, operator, value } of requirements)
        if ((get(field) === value) !== (operator === '=')) return false;
      return true;
    },
    toString: () => requirements.map((r) => `${r.field}${r.operator}${escape(r.value)}`).join(','),
  };
}

/** Splits at commas that are not escaped; escapes stay in. */
function splitTerms(text: string): string[] {
  const terms: string[] = [];
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\') i++;
    else if (text[i] === ',') {
      terms.push(text.slice(start, i));
      start = i + 1;
    }
  }
  terms.push(text.slice(start));
  return terms;
}

function unescape(value: string): string {
  return value.replace(/\\(.?)|[,=]/gsu, (found, escaped: string | undefined) => {
    if (escaped === undefined) {
      throw new SelectorError(`invalid field selector: unescaped character in value: ${found.charCodeAt(0)}`);
    }
    if (escaped === '\\' || escaped === ',' || escaped === '=') return escaped;
    throw new SelectorError(`invalid field selector: invalid escape sequence: ${found}`);
  });
}

function escape(value: string): string {
  return value.replace(/[\\,=]/g, '\\$&');
}
