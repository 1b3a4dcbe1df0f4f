// SPDX-License-Identifier: Apache-2.0
// Whatever bytes come from outside: a value or an error of ours, soon. `npm run fuzz -- parsers` goes on for longer.
import { expect, test } from 'vitest';
import { SeededRandom } from '../../src/base/random.ts';
import { Chance } from './chance.ts';
import { nextText, parsers, problemOf } from './parsers.ts';

test.each(parsers.map((parser) => [parser.name, parser] as const))(
  '%s: any text gives a value or an error of ours, in a time its size explains',
  async (_, parser) => {
    const chance = new Chance(new SeededRandom(1));
    for (const seed of parser.seeds) expect(await problemOf(parser, seed)).toBeUndefined();
    for (let i = 0; i < 150; i++) expect(await problemOf(parser, nextText(chance, parser))).toBeUndefined();
  },
);

test('other errors and long silence are told', async () => {
  const broken = (parse: () => unknown) => ({ name: 'broken', seeds: [''], parse });
  const thrown = await problemOf(
    broken(() => (undefined as unknown as { x: number }).x),
    'a',
  );
  expect(thrown).toMatch(/^broken: TypeError: /);
  const polluted = broken(() => Object.assign(Object.prototype, { polluted: 1 }));
  expect(await problemOf(polluted, 'a')).toMatch(/^broken: the prototype of Object is not what it was: polluted/);
  delete (Object.prototype as { polluted?: unknown }).polluted;
  const busy = broken(() => {
    const before = process.cpuUsage();
    while (process.cpuUsage(before).user < 50_000);
  });
  expect(await problemOf(busy, 'a', 20)).toMatch(/^broken: took \d+ ms for 1 characters/);
});
