// SPDX-License-Identifier: Apache-2.0
import { describe, test } from 'vitest';
import { testConformance } from '../../cloud/conformance/index.ts';
import { LinodeHarness } from './testing/harness.ts';

const runner = { describe, test: test as never };
testConformance('linode, LKE', () => LinodeHarness.start(), runner);
testConformance('linode, LKE Enterprise', () => LinodeHarness.start({ tier: 'enterprise' }), runner);
testConformance('linode, Instance', () => LinodeHarness.start({ mode: 'instance' }), runner);

const sharing = { configuration: { sharePools: true } };
testConformance('linode, LKE with shared pools', () => LinodeHarness.start(sharing), runner);
testConformance(
  'linode, LKE Enterprise with shared pools',
  () => LinodeHarness.start({ ...sharing, tier: 'enterprise' }),
  runner,
);
