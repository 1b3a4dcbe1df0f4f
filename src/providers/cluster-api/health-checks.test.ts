// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { RepairPolicy } from '../../cloud/provider.ts';
import { type MachineHealthCheck, repairPoliciesOf } from './health-checks.ts';
import type { Scalable } from './kinds.ts';
import { memberLabel } from './names.ts';

const usual: RepairPolicy[] = [{ conditionType: 'Ready', conditionStatus: 'False', tolerationMs: 1_800_000 }];
const members = [
  { metadata: { labels: { [memberLabel]: '' } }, spec: { clusterName: 'ours' } },
  { metadata: {}, spec: { clusterName: 'theirs' } },
] as unknown as Scalable[];
const check = (clusterName: string, spec: object): MachineHealthCheck =>
  ({ metadata: { name: 'x' }, spec: { clusterName, ...spec } }) as MachineHealthCheck;

const policies = (...checks: MachineHealthCheck[]): string[] =>
  repairPoliciesOf(usual, checks, members).map(
    ({ conditionType, conditionStatus, tolerationMs }) => `${conditionType}=${conditionStatus} ${tolerationMs / 1000}s`,
  );

test('§14 GAP: without MachineHealthChecks the usual policies hold', () => {
  expect(policies()).toEqual(['Ready=False 1800s']);
});

test('a MachineHealthCheck adds its conditions and goes before the usual ones, in both versions', () => {
  const older = check('ours', { unhealthyConditions: [{ type: 'Ready', status: 'False', timeout: '5m0s' }] });
  expect(policies(older)).toEqual(['Ready=False 300s']);
  const newer = check('ours', {
    checks: { unhealthyNodeConditions: [{ type: 'DiskBroken', status: 'True', timeoutSeconds: 60 }] },
  });
  expect(policies(newer)).toEqual(['Ready=False 1800s', 'DiskBroken=True 60s']);
});

test('of several the most patient decides', () => {
  const after = (timeout: string) =>
    check('ours', { unhealthyConditions: [{ type: 'Ready', status: 'False', timeout }] });
  expect(policies(after('10m'), after('20m'), after('5m'))).toEqual(['Ready=False 1200s']);
});

test('those of other Clusters, and what cannot be read, mean nothing', () => {
  const condition = { type: 'Ready', status: 'False', timeout: '1s' };
  expect(policies(check('theirs', { unhealthyConditions: [condition] }))).toEqual(['Ready=False 1800s']);
  const broken = [{ ...condition, timeout: 'soon' }, { ...condition, status: 'Perhaps' }, { status: 'False' }];
  expect(policies(check('ours', { unhealthyConditions: broken }))).toEqual(['Ready=False 1800s']);
});

test('a check that is damaged costs only itself', () => {
  const condition = { type: 'Ready', status: 'False' };
  const bad = [null, 'x', { ...condition, timeout: '-5m' }, { ...condition, timeoutSeconds: '60' }, { type: {} }];
  for (const unhealthyConditions of [bad, 'x', 5, {}]) {
    expect(policies(check('ours', { unhealthyConditions }))).toEqual(['Ready=False 1800s']);
    const checks = { unhealthyNodeConditions: unhealthyConditions };
    expect(policies(check('ours', { checks }))).toEqual(['Ready=False 1800s']);
  }
});
