// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { splitLines } from './line-splitter.ts';
import { collect } from './testing/collect.ts';

async function* from(chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

test('cuts at newlines, whatever the chunks, and keeps characters whole', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text))),
      fc.array(fc.nat()),
      fc.boolean(),
      async (lines, cuts, endsWithNewline) => {
        const bytes = Buffer.from(lines.join('\n') + (endsWithNewline ? '\n' : ''));
        const places = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort(
          (a, b) => a - b,
        );
        const chunks = places.slice(1).map((end, i) => bytes.subarray(places[i], end));
        expect(await collect(splitLines(from(chunks)))).toEqual(lines);
      },
    ),
  );
});

test('skips empty lines and carriage returns', async () => {
  expect(await collect(splitLines(from([Buffer.from('a\r\n\n\r\nb')])))).toEqual(['a', 'b']);
});

test('takes plain byte arrays as well', async () => {
  const bytes = new Uint8Array(Buffer.from('xxa\nbxx')).subarray(2, 5);
  expect(await collect(splitLines(from([bytes])))).toEqual(['a', 'b']);
});
