// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Heap, type HeapEntry } from './heap.ts';

interface Entry extends HeapEntry {
  readonly value: number;
  readonly id: number;
}

const before = (a: Entry, b: Entry): boolean => a.value < b.value || (a.value === b.value && a.id < b.id);
const entry = (value: number, id: number): Entry => ({ value, id, heapIndex: -1 });

test('entries come out in order, whatever was taken out between', () => {
  const step = fc.oneof(
    fc.record({ push: fc.integer({ min: 0, max: 20 }) }),
    fc.record({ remove: fc.nat(50) }),
    fc.constant('pop' as const),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const heap = new Heap<Entry>(before);
      let model: Entry[] = [];
      const all: Entry[] = [];
      for (const action of steps) {
        if (action === 'pop') {
          const first = model.toSorted((a, b) => (before(a, b) ? -1 : 1))[0];
          expect(heap.peek()).toBe(first);
          expect(heap.pop()).toBe(first);
          model = model.filter((e) => e !== first);
        } else if ('push' in action) {
          const added = entry(action.push, all.length);
          all.push(added);
          model.push(added);
          heap.push(added);
        } else {
          const target = all[action.remove % Math.max(1, all.length)];
          if (!target) continue;
          expect(heap.remove(target)).toBe(model.includes(target));
          model = model.filter((e) => e !== target);
        }
        expect(heap.size).toBe(model.length);
      }
    }),
  );
});

test('an empty heap has nothing to give', () => {
  const heap = new Heap<Entry>(before);
  expect([heap.pop(), heap.peek(), heap.remove(entry(1, 1))]).toEqual([undefined, undefined, false]);
});
