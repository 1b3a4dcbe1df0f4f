// SPDX-License-Identifier: Apache-2.0
import { describe, test } from 'vitest';
import { testConformance } from '../../cloud/conformance/index.ts';
import { ClusterApiHarness } from './testing/harness.ts';

testConformance('clusterapi', () => ClusterApiHarness.start(), { describe, test: test as never });
