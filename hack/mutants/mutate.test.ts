// SPDX-License-Identifier: Apache-2.0
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { candidatesOf, drawn, readShard, shardOf } from './choose.ts';
import { applied, mutantsOf, withAll } from './mutate.ts';
import { hearings, type TestFile } from './witnesses.ts';

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

  test('that do the same count once', () => {
    expect(texts('if (a === b) c();')).toEqual(['if (a !== b) c();']);
    expect(texts('f(!a ? b : c);')).toEqual(['f((a) ? b : c);']);
  });

  test('say where they are', () => {
    const source = 'const a = 1;\nif (a > 2) f();\n';
    expect(candidatesOf('src/x.ts', source, 1).map(({ line, told }) => `${line} ${told}`)).toEqual([
      '2 src/x.ts: branch: if (a > 2) f(); → if (!(a > 2)) f();',
      '2 src/x.ts: operator: if (a > 2) f(); → if (a >= 2) f();',
    ]);
  });

  test('are known by what they do, wherever it stands', () => {
    const ids = (source: string): string[] => candidatesOf('src/x.ts', source, 1).map(({ id }) => id);
    const [first, second] = ids('f(a < b);\nf(a < b);');
    expect(first).not.toBe(second);
    expect(ids('g();\nf(a < b);')).toEqual([first]);
    expect(candidatesOf('src/x.ts', 'f(a < b);', 2)[0]!.id).not.toBe(first);
  });

  test('sleep in one file together, within each other as well, until one is made', () => {
    const source = '(a, b, c) => (a ? b - c : b + c) > 1 && !(a === 3)';
    const mutants = mutantsOf('x.ts', source);
    expect(mutants.length).toBe(7);
    type Answer = (...of: number[]) => unknown;
    const run = (text: string, made?: number): Answer => runInNewContext(text, { made }) as Answer;
    const all = withAll(source, mutants, (one) => `made === ${mutants.indexOf(one)}`);
    const inputs = [0, 1, 2, 3].flatMap((a) => [0, 1, 2].flatMap((b) => [0, 1, 2].map((c) => [a, b, c])));
    const answers = (answer: Answer): unknown[] => inputs.map((input) => answer(...input));
    expect(answers(run(all))).toEqual(answers(run(source)));
    for (const [i, one] of mutants.entries()) {
      expect(answers(run(all, i)), one.text).toEqual(answers(run(applied(source, one))));
    }
  });
});

describe('the draw', () => {
  const all = drawn(process.cwd(), 1);

  test('has mutants of all kinds, each once, in the same order every time', () => {
    expect(all.length).toBeGreaterThan(1_000);
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    expect(new Set(all.slice(0, 200).map(({ kind }) => kind))).toEqual(new Set(['operator', 'await', 'branch']));
    expect(drawn(process.cwd(), 1).slice(0, 200)).toEqual(all.slice(0, 200));
  });

  test('comes in shards that leave none out', () => {
    const chosen = all.slice(0, 200);
    const shards = [1, 2, 3].map((index) => shardOf(chosen, { index, of: 3 }));
    expect(shards.flat().length).toBe(200);
    expect(new Set(shards.flat()).size).toBe(200);
    expect(readShard('2/7')).toEqual({ index: 2, of: 7 });
    expect(() => readShard('8/7')).toThrow('a shard is written 1/4, not 8/7');
  });
});

describe('the tests that hear about a mutant', () => {
  const mutant = { id: 'm', path: 'src/a/x.ts' };
  const file = (path: string, ...tests: [name: string, ms: number, passes?: string[]][]): TestFile => ({
    path,
    digest: '',
    tests: tests.map(([name, ms, passes = ['m']]) => ({ name, ms, passes })),
  });

  test('are those that pass its place: its own, then those beside it, then others, quick before slow', () => {
    const files = [
      file('src/b/y.test.ts', ['elsewhere', 1]),
      file('src/a/w.test.ts', ['beside', 1]),
      file('src/a/x.test.ts', ['slow', 2_500], ['quick', 10], ['not here', 1, ['n']]),
    ];
    expect(hearings(mutant, files, [3_000, 60_000])).toEqual([
      { files: ['src/a/x.test.ts'], names: ['quick'] },
      { files: ['src/a/x.test.ts', 'src/a/w.test.ts', 'src/b/y.test.ts'], names: ['slow', 'beside', 'elsewhere'] },
    ]);
  });

  test('take no longer than a round may, unless a single one does', () => {
    const files = [file('src/a/x.test.ts', ['long', 90_000], ['longer', 95_000])];
    expect(hearings(mutant, files, [60_000])).toEqual([{ files: ['src/a/x.test.ts'], names: ['long'] }]);
    expect(hearings({ id: 'nobody', path: 'src/a/x.ts' }, files, [60_000])).toEqual([]);
  });
});
