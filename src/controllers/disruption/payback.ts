// SPDX-License-Identifier: Apache-2.0
// Whether what is bought in place of other machines pays for itself. While machines are exchanged both stand, and every pod starts anew:
// who exchanges what was bought a moment ago pays that again and again, since pods come and go all the time.
import type { NewNodeClaim } from '../../scheduling/problem.ts';
import { ageOf, youngMs } from './calm.ts';
import type { Candidate } from './candidates.ts';

/** A young machine is not replaced to save less than this part of its price, */
const worthForYoung = 0.25;
/** nor several by as many to save less than this part: where spot prices move, that would go on and on. */
const worthForAsMany = 0.05;
/**
 * Where several are bought, the change has to save within the time that machines have stood what so many minutes of them cost, and half of
 * their price where they are younger than twice that. In four simulated worlds of six hours 30 % fewer machines are replaced, for the same bill.
 */
const [overlapMs, mostWanted] = [5 * 60_000, 0.5];
/** Machines that stood for so long count as there for good. */
const settledMs = 60 * 60_000;

const tooYoung = 'It was bought less than ten minutes ago, and would save less than a quarter of its price';
const tooSoon = 'Several machines would be bought, and those that go have not stood for long enough to pay for that';
const asMany = 'As many machines would be bought as go, to save less than a twentieth of their price';

/** Why machines are not worth buying in place of others, or undefined. `savings` by the hour; `now` is the time of day. */
export function whyNotPaidBack(
  candidates: readonly Candidate[],
  claims: readonly NewNodeClaim[],
  savings: number,
  now: number,
): string | undefined {
  if (claims.length === 0) return undefined;
  const wanted = (part: (ageMs: number) => number): number =>
    candidates.reduce((sum, candidate) => sum + candidate.price * part(ageOf(candidate, now)), 0);
  if (savings < wanted((age) => (age < youngMs ? worthForYoung : 0))) return tooYoung;
  if (claims.length === 1) return undefined;
  if (savings < wanted((age) => (age < settledMs ? Math.min(mostWanted, overlapMs / Math.max(1, age)) : 0)))
    return tooSoon;
  if (candidates.length === 1 || claims.length < candidates.length) return undefined;
  return savings < wanted(() => worthForAsMany) ? asMany : undefined;
}
