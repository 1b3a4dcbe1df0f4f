// SPDX-License-Identifier: Apache-2.0
// Bad input never brings the solver down: an error for the object alone, every pod answered, in time.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { solve } from '../solve.ts';
import { arbitrary } from './chooser.ts';
import { garble } from './garble.ts';
import { generateProblem } from './generate.ts';
import { podKey } from './pod-rules.ts';

const runs = Math.ceil(Number(process.env['KARPENTER_PROPERTY_RUNS'] ?? 1000));

describe('a problem with broken objects in it', () => {
  test('is solved without them, and every pending pod gets an answer', () => {
    fc.assert(
      fc.property(
        arbitrary((c) => garble(c, generateProblem(c))),
        (problem) => {
          const result = solve(problem);
          const answered = new Set([...result.placements.map((p) => p.pod), ...result.errors.map((e) => e.pod)]);
          for (const pod of problem.pods) if (!pod.spec.nodeName) expect(answered, podKey(pod)).toContain(podKey(pod));
          for (const e of [...result.errors, ...result.objectErrors]) expect(e.reason).not.toBe('');
        },
      ),
      { numRuns: runs, seed: 1 },
    );
  }, 300_000);
});
