// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { defaultSettings } from '../../runtime/settings.ts';
import { type ClusterApiSettings, clusterApiSettings, hubAccess } from './settings.ts';

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

  test('settings that contradict each other or hang in the air are refused', () => {
    expect(() => hubAccess(settings({ clusterApiToken: 't' }))).toThrow('--cluster-api-token needs --cluster-api-url');
    expect(() => inline({ clusterApiCertificateAuthorityData: pem, clusterApiSkipTlsVerify: true })).toThrow(
      'exclude each other',
    );
  });
});
