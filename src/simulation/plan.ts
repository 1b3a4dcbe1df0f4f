// SPDX-License-Identifier: Apache-2.0
// What happens when, drawn from the seed before anything runs. A plan is a list of moments, so a shorter one is a prefix.

import { between, skewed, waiting } from './draw.ts';
import type { ScenarioShape } from './scenarios.ts';
import { stream } from './streams.ts';

/** One moment. What exactly happens is drawn from its own seed when it comes. */
export interface Moment {
  /** From the beginning of the world. */
  readonly atMs: number;
  readonly what: 'happening' | 'fault' | 'quiet';
  readonly seed: number;
  /** Of a fault. */
  readonly lastsMs: number;
}

export interface Plan {
  /** In order. */
  readonly moments: readonly Moment[];
  readonly endMs: number;
}

const second = 1000;
/** The world fills up before anything else begins. */
const firstMs = 5 * 60 * second;

export function planOf(shape: ScenarioShape, seed: number, hours: number): Plan {
  const endMs = hours * 3_600_000;
  const random = stream(seed, `plan/${shape.name}`);
  const moments: Moment[] = [];
  for (let begin = 0; begin < endMs; begin += shape.activeMs + shape.restMs) {
    const rest = Math.min(begin + shape.activeMs, endMs - shape.restMs);
    const from = Math.max(begin, firstMs);
    for (let at = from; ; ) {
      at += waiting(random, shape.changeEveryMs);
      if (at >= rest) break;
      moments.push({ atMs: at, what: 'happening', seed: random.int(2 ** 32), lastsMs: 0 });
    }
    for (let at = from; shape.faultEveryMs !== undefined; ) {
      at += waiting(random, shape.faultEveryMs);
      // Faults end with the activity, whatever they had in mind.
      if (at >= rest) break;
      const lastsMs = Math.min(skewed(random, 5, 600) * second, rest - at);
      moments.push({ atMs: at, what: 'fault', seed: random.int(2 ** 32), lastsMs });
    }
    const quiet = Math.min(begin + shape.activeMs + shape.restMs, endMs);
    if (rest > begin) moments.push({ atMs: quiet - second, what: 'quiet', seed: between(random, 0, 1), lastsMs: 0 });
  }
  moments.sort((a, b) => a.atMs - b.atMs || a.seed - b.seed);
  return { moments, endMs };
}

/** The first `count` happenings and faults of a plan; all its quiet moments stay. */
export function prefixOf(plan: Plan, count: number): Plan {
  let left = count;
  return { ...plan, moments: plan.moments.filter(({ what }) => what === 'quiet' || left-- > 0) };
}

/** How many happenings and faults there are. */
export function sizeOf({ moments }: Plan): number {
  return moments.filter(({ what }) => what !== 'quiet').length;
}
