// SPDX-License-Identifier: Apache-2.0
// Selectors, durations, times and JSON patches against Go (hack/vectors/text).

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { KarpenterError } from '../base/errors.ts';
import { parseFieldSelector } from './fields.ts';
import { applyJsonPatch } from './json-patch.ts';
import { parseLabelSelector } from './labels.ts';
import { formatDurationNanos, formatTimeNanos, parseDurationNanos, parseTimeNanos } from './time.ts';

type Row = [kind: string, input: string, error: string, output?: string];
const rows = JSON.parse(readFileSync(new URL('./text.vectors.json', import.meta.url), 'utf8')) as Row[];
const document: unknown = { a: 1, l: [1, { x: 2 }, 3], o: { k: 'v' }, 'a/b': 5, 'm~n': 6 };

// Go's order of requirements on the same key is not fixed.
const sorted = (selector: string): string => selector.split(',').sort().join();
const readers: Record<string, { read: (text: string) => unknown; expected: (output: string) => unknown }> = {
  label: { read: (text) => sorted(parseLabelSelector(text).toString()), expected: sorted },
  field: { read: (text) => sorted(parseFieldSelector(text).toString()), expected: sorted },
  duration: { read: (text) => formatDurationNanos(parseDurationNanos(text)), expected: (output) => output },
  time: { read: (text) => formatTimeNanos(parseTimeNanos(text)), expected: (output) => output },
  patch: {
    read: (text) => applyJsonPatch(document, JSON.parse(text)),
    expected: (output) => JSON.parse(output) as unknown,
  },
};

describe('what Go reads', () => {
  test.each(Object.entries(readers))('%s', (kind, { read, expected }) => {
    const own = rows.filter(([of]) => of === kind);
    expect(own.length).toBeGreaterThan(150);
    for (const [, input, error, output] of own) {
      if (output !== undefined) {
        expect(read(input), input).toEqual(expected(output));
        continue;
      }
      let thrown: unknown;
      try {
        read(input);
      } catch (caught) {
        thrown = caught;
      }
      expect(thrown, input).toBeInstanceOf(KarpenterError);
      expect((thrown as Error).message, input).toContain(error);
    }
  });
});
