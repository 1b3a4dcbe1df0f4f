// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { renderUserData, type UserDataOptions } from './user-data.ts';

const options: UserDataOptions = {
  cluster: {
    server: 'https://10.0.0.1:6443',
    ca: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
    caHash: 'sha256:00',
    caFileHash: 'ab12',
    version: 'v1.34.1',
    distribution: 'kubeadm',
  },
  clusterName: 'mine',
  region: 'us-east',
  instanceType: 'g6-standard-2',
  token: 'abcdef.0123456789abcdef',
  nodeName: 'web-1',
  labels: { team: 'a' },
  taints: [{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }],
  spec: { kubelet: { evictionHard: { 'memory.available': '5%' } } },
  kubeReserved: { cpu: '70m', memory: '1Gi' },
  maxPods: 50,
};

interface Config {
  readonly write_files: { readonly path: string; readonly permissions: string; readonly content: string }[];
  readonly runcmd: string[];
}

function rendered(more: Partial<UserDataOptions> = {}): Config {
  const text = renderUserData({ ...options, ...more });
  expect(text.startsWith('#cloud-config\n')).toBe(true);
  return parse(text) as Config;
}

const contentOf = (config: Config, path: string): Record<string, never> =>
  parse(config.write_files.find((file) => file.path === path)?.content ?? '') as Record<string, never>;

describe('kubeadm', () => {
  test('a kubeconfig with the token, which only root may read and which goes after the join', () => {
    const config = rendered();
    expect(contentOf(config, '/etc/karpenter/bootstrap.conf')).toMatchObject({
      clusters: [{ cluster: { server: 'https://10.0.0.1:6443' } }],
      users: [{ user: { token: options.token } }],
    });
    expect(config.write_files.filter(({ permissions }) => !/^0[67]00$/.test(permissions))).toEqual([]);
    expect(config.runcmd.join('\n')).toMatch(/kubeadm join --config \S+ && rm -f \/etc\/karpenter\/bootstrap\.conf/);
  });

  test('[TRAP 3f] what the scheduler reckons with is what the kubelet is told', () => {
    const kubelet = contentOf(rendered(), '/etc/karpenter/patches/kubeletconfiguration+merge.yaml');
    expect(kubelet).toMatchObject({
      maxPods: 50,
      kubeReserved: { cpu: '70m', memory: '1Gi' },
      evictionHard: { 'memory.available': '5%', 'nodefs.available': '10%' },
    });
  });

  test('taints have their values, where they have one', () => {
    const dedicated = { key: 'dedicated', value: 'web', effect: 'NoSchedule' } as const;
    const config = rendered({ taints: [...options.taints, dedicated] });
    expect(contentOf(config, '/etc/karpenter/join.yaml')).toMatchObject({
      nodeRegistration: { taints: [{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }, dedicated] },
    });
  });

  test('CPU quotas are as the class says; where it says nothing the kubelet decides', () => {
    const quotaOf = (spec: UserDataOptions['spec']): unknown =>
      contentOf(rendered({ spec }), '/etc/karpenter/patches/kubeletconfiguration+merge.yaml')['cpuCFSQuota'];
    expect(quotaOf({ kubelet: { cpuCFSQuota: false } })).toBe(false);
    expect(quotaOf({})).toBeUndefined();
  });

  test('arguments of the kubelet are a map before 1.31', () => {
    const older = rendered({ cluster: { ...options.cluster, version: 'v1.30.4' } });
    expect(contentOf(older, '/etc/karpenter/join.yaml')).toMatchObject({
      apiVersion: 'kubeadm.k8s.io/v1beta3',
      nodeRegistration: { kubeletExtraArgs: { 'node-labels': 'team=a' } },
    });
  });
});

test('k3s: the version of the server, the token with the hash of its authorities', () => {
  const config = rendered({ cluster: { ...options.cluster, version: 'v1.33.1+k3s1', distribution: 'k3s' } });
  expect(contentOf(config, '/etc/rancher/k3s/config.yaml')).toMatchObject({
    server: 'https://10.0.0.1:6443',
    token: `K10ab12::${options.token}`,
    'node-name': 'web-1',
    'node-label': ['team=a'],
    'node-taint': ['karpenter.sh/unregistered:NoExecute'],
  });
  expect(config.runcmd.join('\n')).toContain("INSTALL_K3S_VERSION='v1.33.1+k3s1'");
});

test('too much user data is refused before Linode does', () => {
  const spec = { bootstrap: { preJoinCommands: ['x'.repeat(70_000)] } };
  expect(() => renderUserData({ ...options, spec })).toThrow(/bytes/);
});
