// SPDX-License-Identifier: Apache-2.0
import { describe, test } from 'vitest';
import { testConformance } from '../../cloud/conformance/run.ts';
import { ScriptedHarness } from './testing/harness.ts';

testConformance('scripted', () => ScriptedHarness.start(), { describe, test: test as never });
