// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { parseSettings } from '../runtime/settings.ts';
import { settingsForOne, settingsSeenBy, sharedSettings } from './shared-settings.ts';

const clouds = [
  { name: 'linode', shares: ['clusterName'] },
  { name: 'cluster-api', shares: ['clusterName'] },
  { name: 'kwok' },
] as const;
const table = { ...sharedSettings, ...settingsForOne(sharedSettings, clouds) };

const nameSeenBy = (cloud: (typeof clouds)[number], argv: string[], env: Record<string, string>): unknown =>
  settingsSeenBy<{ clusterName?: string }, 'clusterName'>(cloud, parseSettings(table, argv, env).settings!).clusterName;

test('one value serves every cloud', () => {
  for (const cloud of clouds) expect(nameSeenBy(cloud, [], { CLUSTER_NAME: 'blue' })).toBe('blue');
});

test('a cloud can have a value of its own, by flag or by variable', () => {
  const env = { CLUSTER_NAME: 'blue', LINODE_CLUSTER_NAME: 'lke', CLUSTER_API_CLUSTER_NAME: 'hub' };
  expect(clouds.map((cloud) => nameSeenBy(cloud, [], env))).toEqual(['lke', 'hub', 'blue']);
  expect(nameSeenBy(clouds[0], ['--linode-cluster-name=flag'], env)).toBe('flag');
});

test('only clouds that read a setting have one of their own', () => {
  const own = Object.values(settingsForOne(sharedSettings, clouds));
  expect(own.map(({ flag, env, chart }) => [flag, env, chart?.[0]])).toEqual([
    ['linode-cluster-name', 'LINODE_CLUSTER_NAME', 'settings.linode.clusterName'],
    ['cluster-api-cluster-name', 'CLUSTER_API_CLUSTER_NAME', 'settings.clusterApi.clusterName'],
  ]);
});
