// SPDX-License-Identifier: Apache-2.0
// Defects of the existing provider, planted one at a time: the suite that says this one is sound must notice each.
import { afterEach, expect, test } from 'vitest';
import { type Defect, plant } from '../../base/defects.ts';
import { conformanceCases, runCase } from '../../cloud/conformance/index.ts';
import { LinodeHarness } from './testing/harness.ts';
import { LinodeWorld } from './testing/world.ts';

afterEach(() => plant(undefined));

async function outcomeOf(id: string): Promise<string> {
  const found = conformanceCases.find((one) => one.id === id)!;
  return (await runCase(found, () => LinodeHarness.start())).outcome;
}

test.each<[Defect, string]>([
  ['linode-launches-again', 'create/after-crash'],
  ['linode-launches-again', 'create/answer-lost'],
  ['linode-failure-is-gone', 'delete/unreachable'],
  ['linode-failure-is-gone', 'delete/failing'],
])('%s is noticed by %s', async (defect, id) => {
  expect(await outcomeOf(id)).toBe('passed');
  plant(defect);
  expect(await outcomeOf(id)).toBe('failed');
});

test('linode-claims-the-account is noticed by the cluster next door', async () => {
  const one = await LinodeWorld.start({ mode: 'instance', clusterName: 'one' });
  const other = await LinodeWorld.start({ mode: 'instance', clusterName: 'other', sharing: one });
  await other.create(other.claim('a'));
  const seen = async (): Promise<number> => (await one.finish(one.provider.list(one.signal))).length;
  expect(await seen()).toBe(0);
  plant('linode-claims-the-account');
  expect(await seen()).toBe(1);
  plant(undefined);
  await other.stop();
  await one.stop();
});
