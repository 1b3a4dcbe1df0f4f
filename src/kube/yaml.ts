// SPDX-License-Identifier: Apache-2.0
// YAML from outside: one way to read it, whose cost grows with the text and not with its square.
import { type Document, parseAllDocuments } from 'yaml';
import { KarpenterError } from '../base/errors.ts';

/** A text that is no YAML, or that says more than a text of its size should. */
export class YamlError extends KarpenterError {
  constructor(message: string) {
    super('KRP_YAML', message);
  }
}

/** Aliases can make a small text a huge value. */
const maxAliasCount = 100;

/** Deeper than any manifest; the library's time grows far faster than depth. */
const deepest = 500;

/** The values of all documents in a text; none for an empty one. Throws YamlError. */
export function parseYamlDocuments(text: string): unknown[] {
  if (nestingOf(text) > deepest) throw new YamlError('nested too deeply');
  try {
    // The library's own pretty messages cost a walk through the text for each of many errors.
    const documents = parseAllDocuments(text, { prettyErrors: false, logLevel: 'error' });
    return 'empty' in documents ? [] : documents.map((document) => valueOf(document, text));
  } catch (error) {
    if (error instanceof YamlError) throw error;
    // Nesting beyond the stack, aliases beyond the limit.
    throw new YamlError(error instanceof RangeError ? 'nested too deeply' : (error as Error).message);
  }
}

/** The value of a text of one document; null for an empty one. Throws YamlError. */
export function parseYaml(text: string): unknown {
  const [value = null, ...more] = parseYamlDocuments(text);
  if (more.length > 0) throw new YamlError('holds several documents where one is expected');
  return value;
}

function valueOf(document: Document.Parsed, text: string): unknown {
  const [wrong] = document.errors;
  if (!wrong) return document.toJS({ maxAliasCount });
  const before = text.slice(0, wrong.pos[0]).split('\n');
  throw new YamlError(`${wrong.message} at line ${before.length}, column ${before.at(-1)!.length + 1}`);
}

/**
 * How deep a text may be nested at most: by brackets, by lines that go further in, by `- - -` on one line. Brackets in
 * quotes count as well: it is a bound, not the truth.
 */
function nestingOf(text: string): number {
  const indents: number[] = [];
  let brackets = 0;
  let most = 0;
  for (const line of text.split('\n')) {
    const indent = /^ */.exec(line)![0].length;
    while (indents.length > 0 && indents.at(-1)! >= indent) indents.pop();
    indents.push(indent);
    const compact = /^(?:[-?:] *)*/.exec(line.slice(indent))![0].replaceAll(' ', '').length;
    let here = 0;
    for (const character of line) {
      if (character === '[' || character === '{') here = Math.max(here, ++brackets);
      else if ((character === ']' || character === '}') && brackets > 0) brackets--;
    }
    most = Math.max(most, indents.length + compact + Math.max(here, brackets));
  }
  return most;
}
