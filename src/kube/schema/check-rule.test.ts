// SPDX-License-Identifier: Apache-2.0
// The verdicts of kube-apiserver 1.36 on rules, their words and their costs, against ours.
import { describe, expect, test } from 'vitest';
import { checkRule } from './check-rule.ts';
import type { JsonSchema } from './json-schema.ts';
import { ruleType } from './rule-types.ts';
import vectors from './rules.vectors.json' with { type: 'json' };

interface Vector {
  readonly rule: string;
  readonly cost?: number;
  readonly error?: string;
}

/** What a broken grammar is called is the parser's own affair; that it is broken, and where, is not. */
const comparable = (error: string): string => error.replace(/(Syntax error: )[^]*/, '$1…');

describe.each(vectors as unknown as { root: boolean; schema: JsonSchema; rules: Vector[] }[])(
  'rules on $schema.type',
  ({ root, schema, rules }) => {
    const type = ruleType(schema, root)!;

    test.each(rules)('$rule', ({ rule, cost = 0, error }) => {
      const verdict = checkRule(rule, type);
      if (error === undefined) {
        expect(verdict.problem).toBeUndefined();
        // Beyond what a double holds exactly, all that matters is that it is far too much.
        if (cost < Number.MAX_SAFE_INTEGER) expect(verdict.cost).toBe(cost);
        else expect(verdict.cost / cost).toBeCloseTo(1, 6);
      } else if (error.includes('Syntax error')) {
        expect(comparable(verdict.problem ?? '')).toBe(comparable(error));
      } else expect(verdict.problem).toBe(error);
    });
  },
);
