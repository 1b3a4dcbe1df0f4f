// SPDX-License-Identifier: Apache-2.0
// Which management cluster the settings lead to. Nothing is asked yet.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type TestWorld, testWorld } from '../controllers/testing/world.ts';
import { defaultSettings } from '../runtime/settings.ts';
import { loadClusterApi } from './cluster-api.ts';
import type { ProviderSettings } from './known-providers.ts';
import { programSettings } from './program-settings.ts';

let world: TestWorld;
let folder: string;
beforeEach(async () => {
  world = await testWorld();
  folder = mkdtempSync(join(tmpdir(), 'karpenter-hub-'));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
  await world.close();
});

const load = (given: Partial<ProviderSettings>) => {
  const { clusters, clock, log, metrics } = world;
  return loadClusterApi({ clusters, clock, log, metrics, settings: defaultSettings(programSettings, given) });
};
const clusterNames = (): string[] => world.clusters.all.map(({ name }) => name);

function kubeconfig(): string {
  const path = join(folder, 'hub.kubeconfig');
  const cluster = { name: 'hub', cluster: { server: 'https://hub.example:6443' } };
  const context = { name: 'hub', context: { cluster: 'hub' } };
  writeFileSync(path, JSON.stringify({ 'current-context': 'hub', clusters: [cluster], contexts: [context] }));
  return path;
}

test('unless something is said it is the cluster of the NodePools, with the connection and the cache of that', async () => {
  const before = clusterNames();
  await load({});
  expect(clusterNames()).toEqual(before);
});

test.each<[string, () => Partial<ProviderSettings>]>([
  ['a kubeconfig', () => ({ clusterApiKubeconfig: kubeconfig() })],
  ['a URL and a token', () => ({ clusterApiUrl: 'https://hub.example:6443', clusterApiToken: 't' })],
])('%s leads to a cluster with a connection and a cache of its own', async (_, given) => {
  const before = clusterNames();
  const { runnables } = await load(given());
  expect(clusterNames()).toEqual([...before, 'cluster-api']);
  expect(runnables.map(({ name }) => name)).toEqual(['cluster-api.hub', 'cluster-api.nodeclass']);
});

test('what cannot be is an error at the start, in words that say what to change', async () => {
  vi.stubEnv('KUBERNETES_SERVICE_HOST', '');
  await expect(load({ clusterApiInCluster: true })).rejects.toThrow('this is not a pod');
  await expect(load({ clusterApiKubeconfig: join(folder, 'missing') })).rejects.toThrow('missing cannot be read');
  await expect(load({ clusterApiToken: 't' })).rejects.toThrow('--cluster-api-token needs --cluster-api-url');
  await expect(load({ clusterApiSyncMachineLabels: 'a(' })).rejects.toThrow('additional-sync-machine-labels: ');
});
