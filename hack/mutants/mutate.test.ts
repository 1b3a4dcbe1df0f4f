// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from 'node:fs';
import { parseSync } from 'oxc-parser';
import { describe, expect, test } from 'vitest';
import { chosenMutants, readShard, shardOf } from './choose.ts';
import { applied, described, mutantsOf } from './mutate.ts';

const texts = (source: string): string[] => mutantsOf('x.ts', source).map((mutant) => applied(source, mutant));

describe('mutants', () => {
  test('change one operator', () => {
    expect(texts('f(a < b, c ?? d);')).toEqual(['f(a <= b, c ?? d);', 'f(a < b, (c));']);
    expect(texts('f(a && b);')).toEqual(['f((a || b));']);
    expect(texts('left -= 1;')).toEqual(['left += 1;']);
    expect(texts('f(!a);')).toEqual(['f((a));']);
  });

  test('drop an await', () => {
    expect(texts('async () => { await save(x); };')).toEqual(['async () => { (save(x)); };']);
  });

  test('swap branches', () => {
    expect(texts('const x = a ? b : c;')).toEqual(['const x = a ? c : b;']);
    expect(texts('if (a) b();')).toEqual(['if (!(a)) b();']);
  });

  test('leave alone what is only told, joined texts, types and planted defects', () => {
    expect(texts("log.info('x', { n: a - b });")).toEqual([]);
    expect(texts("const s = 'a' + b;")).toEqual([]);
    expect(texts("type T = A extends B ? C : D; planted('a' as never);")).toEqual([]);
  });

  test('say where they are', () => {
    const source = 'const a = 1;\nif (a > 2) f();\n';
    expect(mutantsOf('src/x.ts', source).map((mutant) => described(source, mutant))).toEqual([
      'src/x.ts:2: branch: if (a > 2) f(); → if (!(a > 2)) f();',
      'src/x.ts:2: operator: if (a > 2) f(); → if (a >= 2) f();',
    ]);
  });
});

describe('the chosen mutants', () => {
  const chosen = chosenMutants(process.cwd(), 200, 1);

  test('are 200 of all kinds, the same every time, all of which can be parsed', () => {
    expect(chosen).toHaveLength(200);
    expect(chosenMutants(process.cwd(), 200, 1)).toEqual(chosen);
    expect(new Set(chosen.map(({ kind }) => kind))).toEqual(new Set(['operator', 'await', 'branch']));
    for (const mutant of chosen) {
      const { errors } = parseSync(mutant.path, applied(readFileSync(mutant.path, 'utf8'), mutant));
      expect(errors, described(readFileSync(mutant.path, 'utf8'), mutant)).toEqual([]);
    }
  });

  test('come in shards that leave none out', () => {
    const shards = [1, 2, 3].map((index) => shardOf(chosen, { index, of: 3 }));
    expect(shards.flat().length).toBe(200);
    expect(new Set(shards.flat()).size).toBe(200);
    expect(readShard('2/7')).toEqual({ index: 2, of: 7 });
    expect(() => readShard('8/7')).toThrow('a shard is written 1/4, not 8/7');
  });
});
