// SPDX-License-Identifier: Apache-2.0
// The embedded API server gives every verdict of the corpus, in the words of the real one.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { allCrds } from '../../../src/api/crd.ts';
import { RealClock } from '../../../src/base/clock.ts';
import { SystemRandom } from '../../../src/base/random.ts';
import { ApiServer } from '../../../src/embedded/api-server.ts';
import { corpus } from './corpus.ts';
import { installCrds, judge } from './judge.ts';
import { verdictWriter } from './report.ts';

/** What the real server said to what it refused, as test/real/verdicts.test.ts writes it down. */
const realWords = JSON.parse(readFileSync(join(import.meta.dirname, 'real-messages.json'), 'utf8')) as Readonly<
  Record<string, string>
>;

const clock = new RealClock();
const server = new ApiServer({ clock, random: new SystemRandom() });
beforeAll(() => installCrds(server.transport(), allCrds(), () => clock.sleep(10)));
afterAll(() => server.close());

const report = verdictWriter('embedded-verdicts');

test.each(corpus)('$id: $why', async (verdictCase) => {
  const verdict = await judge(server.transport(), verdictCase);
  report(verdictCase.id, verdict);
  const { valid, message } = verdict;
  expect(valid, message).toBe(verdictCase.valid);
  // A case that is newer than the last run against the real server has no words yet.
  if (!valid && verdictCase.id in realWords) expect(message).toBe(realWords[verdictCase.id]);
});

test('nearly all refusals have words of the real server to compare with', () => {
  const refused = corpus.filter(({ valid }) => !valid);
  expect(refused.filter(({ id }) => id in realWords).length).toBeGreaterThan(refused.length * 0.75);
});
