// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LogBuffer } from './log-buffer.ts';

function kept(log: LogBuffer): string[] {
  return Array.from({ length: log.next - log.first }, (_, i) => log.line(log.first + i).text);
}

test('keeps the end of what was written, whatever pieces it came in', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '\n'), maxLength: 12 })), (pieces) => {
      const log = new LogBuffer({ now: () => 0, maxBytes: 20 });
      for (const piece of pieces) log.write(piece);
      log.end();
      const all = pieces.join('').split('\n');
      if (all.at(-1) === '') all.pop();
      const lines = kept(log);
      expect(log.next).toBeGreaterThanOrEqual(lines.length);
      expect(lines.join('').length).toBeLessThanOrEqual(20 + Math.max(0, ...lines.map(({ length }) => length)));
      // A line longer than the log is cut; nothing else is changed, and the last line is always there.
      if (all.every(({ length }) => length <= 20)) {
        expect(lines).toEqual(all.slice(all.length - lines.length));
        if (all.length > 0) expect(lines.length).toBeGreaterThan(0);
      }
    }),
  );
});

test('numbers lines for good, also when the first ones are gone', () => {
  let now = 0;
  const log = new LogBuffer({ now: () => ++now, maxBytes: 10 });
  for (let i = 0; i < 1000; i++) log.write(`line${i % 10}\n`);
  expect([log.first, log.next]).toEqual([998, 1000]);
  expect(log.line(999)).toEqual({ at: 1000, text: 'line9' });
});

test('tells who waits, until it is undone, and of its end', () => {
  const log = new LogBuffer({ now: () => 0, maxBytes: 100 });
  let told = 0;
  const undo = log.onChange(() => told++);
  log.write('half');
  expect(told).toBe(0);
  log.write(' a line\n');
  expect(told).toBe(1);
  log.write('rest');
  log.end();
  log.end();
  expect([told, log.ended, kept(log)]).toEqual([2, true, ['half a line', 'rest']]);
  undo();
  log.write('late\n');
  expect(told).toBe(2);
});
