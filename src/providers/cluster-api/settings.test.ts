// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { defaultSettings } from '../../runtime/settings.ts';
import { type ClusterApiSettings, clusterApiSettings, hubAccess, syncedLabels } from './settings.ts';

const settings = (given: Partial<ClusterApiSettings> = {}): ClusterApiSettings =>
  defaultSettings(clusterApiSettings, given);

function inline(given: Partial<ClusterApiSettings>) {
  const access = hubAccess(settings({ clusterApiUrl: 'https://hub:6443', ...given }));
  if (access.kind !== 'inline') throw new Error('expected a kubeconfig');
  return JSON.parse(access.kubeconfig) as {
    clusters: [{ cluster: Record<string, unknown> }];
    users: [{ user: Record<string, unknown> }];
  };
}

test('§5 GAP: more labels may be copied to Nodes, as the manager of Cluster API is told', () => {
  const given = settings({ clusterApiSyncMachineLabels: String.raw`^example\.com/, team` });
  const isSynced = syncedLabels(given);
  expect(['example.com/a', 'x.example.com/a', 'x/team-a'].map(isSynced)).toEqual([true, false, true]);
  expect(syncedLabels(settings())('example.com/a')).toBe(false);
  expect(() => syncedLabels(settings({ clusterApiSyncMachineLabels: 'a(' }))).toThrow(
    '--cluster-api-additional-sync-machine-labels: ',
  );
});

const pem = '-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n';

describe('where the management cluster is', () => {
  test('the cluster of the NodePools, unless something is said', () => {
    expect(hubAccess(settings())).toEqual({ kind: 'joined' });
  });

  test('a kubeconfig, which goes before the rest', () => {
    const given = { clusterApiKubeconfig: '/hub.kubeconfig', clusterApiUrl: 'https://hub:6443' };
    expect(hubAccess(settings(given))).toEqual({ kind: 'file', path: '/hub.kubeconfig' });
  });

  test('§9 TRAP: the authority may be PEM or base64', () => {
    const data = Buffer.from(pem).toString('base64');
    for (const given of [pem, data, `${data.slice(0, 20)}\n${data.slice(20)}`]) {
      const { clusters } = inline({ clusterApiCertificateAuthorityData: given });
      expect(clusters[0].cluster['certificate-authority-data']).toBe(data);
    }
  });

  test('§9 GAP: a token may come from a file, which is read again when it changes', () => {
    expect(inline({ clusterApiToken: 't' }).users[0].user).toEqual({ token: 't' });
    expect(inline({ clusterApiToken: 't', clusterApiTokenFile: '/token' }).users[0].user).toEqual({
      tokenFile: '/token',
    });
  });

  test('§1.1 GAP: the cluster that the controller runs in, whatever KUBECONFIG says', () => {
    expect(hubAccess(settings({ clusterApiInCluster: true }))).toEqual({ kind: 'in-cluster' });
    const both = { clusterApiInCluster: true, clusterApiKubeconfig: '/hub.kubeconfig' };
    expect(() => hubAccess(settings(both))).toThrow(
      '--cluster-api-in-cluster and --cluster-api-kubeconfig exclude each other',
    );
  });

  test('settings that contradict each other or hang in the air are refused', () => {
    expect(() => hubAccess(settings({ clusterApiToken: 't' }))).toThrow('--cluster-api-token needs --cluster-api-url');
    expect(() => inline({ clusterApiCertificateAuthorityData: pem, clusterApiSkipTlsVerify: true })).toThrow(
      'exclude each other',
    );
  });
});
