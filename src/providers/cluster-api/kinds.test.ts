// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { failureOf, type Machine } from './kinds.ts';

test.each([
  [{ failureReason: 'CreateError', failureMessage: 'no quota' }, 'CreateError: no quota'],
  [{ failureReason: 'CreateError' }, 'CreateError'],
  [{ failureMessage: 'no quota' }, 'no quota'],
  [{ deprecated: { v1beta1: { failureMessage: 'no quota' } } }, 'no quota'],
  [{ phase: 'Failed' }, 'the Machine is in phase Failed'],
  [{ phase: 'Provisioning' }, undefined],
])('a Machine with %j has failed: %s', (status, why) => {
  expect(failureOf({ metadata: {}, status } as Machine)).toBe(why);
});
