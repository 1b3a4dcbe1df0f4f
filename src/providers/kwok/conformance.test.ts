// SPDX-License-Identifier: Apache-2.0
import { describe, test } from 'vitest';
import { testConformance } from '../../cloud/conformance/index.ts';
import { KwokHarness } from './testing/harness.ts';

testConformance('kwok', () => KwokHarness.start(), { describe, test: test as never });
