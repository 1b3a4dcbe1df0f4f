// SPDX-License-Identifier: Apache-2.0
// Cluster API's own managers, hub and workload as two real API servers, and our controller between them: the scenarios
// that src/providers/cluster-api/scenarios.test.ts plays on the model, with the same outcomes.
// `npm run nightly -- cluster-api` plays all of them, with longer pauses.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { scenarios } from '../../src/providers/cluster-api/testing/scenarios.ts';
import { grantedBy } from './audit.ts';
import { RealRig } from './cluster-api/rig.ts';
import { hubRules } from './cluster-api/rights.ts';

let rig: RealRig;
beforeAll(async () => {
  const logs = process.env['KARPENTER_TEST_LOGS'];
  rig = await RealRig.start(logs ? { logs } : {});
}, 300_000);
beforeEach(() => rig.begin());
afterAll(async () => {
  expect(await rig?.stop(), rig?.controller.output.slice(-4000)).toBe(0);
}, 60_000);

for (const scenario of scenarios.filter(({ isLong }) => !isLong)) {
  test(scenario.name, async () => {
    expect(await scenario.run(rig)).toEqual(scenario.outcome);
  }, 300_000);
}

/** Granted in the management cluster, and not to be seen in these scenarios. */
const reasons: Readonly<Record<string, string>> = {
  'get machinedeployments.cluster.x-k8s.io': 'read again after a conflict',
  'get machinesets.cluster.x-k8s.io': 'read again after a conflict',
  'patch machinesets.cluster.x-k8s.io': 'a MachineSet that is a member itself',
  'get machines.cluster.x-k8s.io': 'read again after a conflict',
  'create machines.cluster.x-k8s.io': 'Machines without an owner',
  'delete machines.cluster.x-k8s.io': 'Machines without an owner, and when Cluster API removed another in its place',
  ...Object.fromEntries(
    ['infrastructure', 'bootstrap'].flatMap((kind) =>
      ['list', 'watch', 'create'].map((verb) => [`${verb} *.${kind}.cluster.x-k8s.io`, 'Machines without an owner']),
    ),
  ),
  'get *.bootstrap.cluster.x-k8s.io': 'the bootstrap template; these machines have a Secret',
};

test('nothing that the controller asked of either cluster was refused', () => {
  for (const audit of [rig.audits.hub, rig.audits.workload]) {
    expect(audit.entries().length).toBeGreaterThan(20);
    expect(audit.refusals(rig.restarts)).toEqual([]);
  }
});

test('in the management cluster it holds no right that it did not use, but for those with a reason', async () => {
  const role = { kind: 'ClusterRole', metadata: { name: 'hub' }, rules: await hubRules() };
  const binding = { kind: 'ClusterRoleBinding', metadata: {}, roleRef: { kind: 'ClusterRole', name: 'hub' } };
  const granted = grantedBy([role, binding] as never);
  const used = new Set([...rig.audits.hub.used()].map((right) => right.replace(/ \S+?\.(infra|boot)/, ' *.$1')));
  expect([...granted].filter((right) => !used.has(right) && !(right in reasons))).toEqual([]);
});
