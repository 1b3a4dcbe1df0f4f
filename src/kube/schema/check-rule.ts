// SPDX-License-Identifier: Apache-2.0
// One CEL rule on one schema, judged before anything is validated with it: does it compile, and what does it cost?

import { type CheckedCel, checkCel } from '../cel-check.ts';
import { constantProblem } from '../cel-check-literals.ts';
import { celCost } from '../cel-cost.ts';
import { boolType, optionalOf, stringType } from '../cel-types.ts';
import { CelError } from '../cel-values.ts';
import type { RuleType } from './rule-types.ts';

/** What came of a rule. */
export interface RuleVerdict {
  /** Why it cannot be used, in the API server's words. */
  readonly problem?: string;
  /** The most that one evaluation costs; 0 when it cannot be used. */
  readonly cost: number;
  readonly usesOldSelf: boolean;
}

const selfName = 'selfType';

/** Judges a rule (`wants` bool) or the expression of a message (`wants` string). */
export function checkRule(
  expression: string,
  on: RuleType,
  wants: 'bool' | 'string' = 'bool',
  optionalOldSelf = false,
): RuleVerdict {
  const self = on.type(selfName);
  const variables = new Map([
    ['self', self],
    ['oldSelf', optionalOldSelf ? optionalOf(self) : self],
  ]);
  const about = wants === 'bool' ? '' : 'messageExpression ';
  let checked: CheckedCel;
  try {
    checked = checkCel(expression, variables);
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    return { problem: `${about}compilation failed: ${error.message}`, cost: 0, usesOldSelf: false };
  }
  if (checked.type !== (wants === 'bool' ? boolType : stringType)) {
    const must = wants === 'bool' ? 'cel expression must evaluate to a bool' : `${about}must evaluate to a string`;
    return { problem: must, cost: 0, usesOldSelf: false };
  }
  const constant = constantProblem(checked.tree);
  if (constant !== undefined) {
    const what = wants === 'bool' ? 'program ' : about;
    return { problem: `${what}instantiation failed: ${constant}`, cost: 0, usesOldSelf: false };
  }
  return { cost: celCost(checked, on), usesOldSelf: checked.uses('oldSelf') };
}
