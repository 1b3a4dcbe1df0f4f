// SPDX-License-Identifier: Apache-2.0
// The user data of Instance mode in the hands of those who read it on a machine: cloud-init, a shell, kubeadm, and a
// kubelet that gets its certificate from a real API server by the token in it.
import { X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { systemTool, tool } from '../../hack/tools/tools.ts';
import type { LinodeNodeClassSpec } from '../../src/api/linode-node-class.ts';
import { RealClock } from '../../src/base/clock.ts';
import { SystemRandom } from '../../src/base/random.ts';
import { makeCertificate } from '../../src/embedded/certificates.ts';
import { renderUserData, type UserDataOptions } from '../../src/providers/linode/bootstrap/user-data.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { applyCrds, startController } from './controllers.ts';
import { apply, kubectl } from './kubectl.ts';
import { type LinodeAccount, publishCluster, startAccount } from './linode-account.ts';
import { execute, type Finished, RunningProgram } from './processes.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'karpenter-user-data-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface CloudConfig {
  readonly write_files: readonly { readonly path: string; readonly content: string }[];
  readonly runcmd: readonly string[];
}

/** Its files in a folder of the test's, by their names. */
function filesOf(userData: string, into: string): Map<string, string> {
  mkdirSync(into, { recursive: true });
  const files = (parse(userData) as CloudConfig).write_files;
  return new Map(
    files.map(({ path, content }) => {
      const at = join(into, basename(path));
      writeFileSync(at, content);
      return [basename(path), at];
    }),
  );
}

const everything: LinodeNodeClassSpec = {
  swapSize: 256,
  bootstrap: { preJoinCommands: ['echo \'before: "all"\''], postJoinCommands: ['echo after', 'true'] },
  kubelet: {
    clusterDNS: ['10.96.0.10'],
    maxPods: 60,
    podsPerCore: 20,
    systemReserved: { cpu: '100m', memory: '100Mi', 'ephemeral-storage': '1Gi', pid: '100' },
    kubeReserved: { cpu: '200m' },
    evictionHard: { 'memory.available': '5%', 'nodefs.available': '8%' },
    evictionSoft: { 'memory.available': '10%' },
    evictionSoftGracePeriod: { 'memory.available': '1m30s' },
    evictionMaxPodGracePeriod: 60,
    cpuCFSQuota: false,
  },
};
const ownUserData: LinodeNodeClassSpec = {
  userData: '#cloud-config\nhostname: ${NODE_NAME}\nruncmd:\n  - join ${API_SERVER} ${TOKEN} ${CA_HASH} $${HOME}\n',
};

function rendered(by: 'kubeadm' | 'k3s', spec: LinodeNodeClassSpec): string {
  const { authority } = makeCertificate(new RealClock(), new SystemRandom(), ['kubernetes'], ['10.0.0.1']);
  const options: UserDataOptions = {
    cluster: {
      server: 'https://10.0.0.1:6443',
      ca: authority,
      caHash: `sha256:${'0'.repeat(64)}`,
      caFileHash: '0'.repeat(64),
      version: by === 'k3s' ? 'v1.36.1+k3s1' : 'v1.36.1',
      distribution: by,
    },
    clusterName: 'mine',
    region: 'us-east',
    instanceType: 'g6-standard-2',
    token: 'abcdef.0123456789abcdef',
    nodeName: 'web-abcde-0123456789ab',
    labels: { team: 'a', 'karpenter.sh/nodepool': 'web' },
    taints: [
      { key: 'dedicated', value: 'web', effect: 'NoSchedule' },
      { key: 'karpenter.sh/unregistered', effect: 'NoExecute' },
    ],
    spec,
    kubeReserved: { cpu: '70m', memory: '1465Mi', 'ephemeral-storage': '1Gi' },
    maxPods: 110,
  };
  return renderUserData(options);
}

const variants: readonly (readonly [string, 'kubeadm' | 'k3s', LinodeNodeClassSpec])[] = [
  ['kubeadm', 'kubeadm', {}],
  ['kubeadm, with everything', 'kubeadm', everything],
  ['k3s', 'k3s', {}],
  ['k3s, with everything', 'k3s', everything],
  ["the user's own", 'kubeadm', ownUserData],
];

/** What cloud-init's own check says of a file. */
async function schema(userData: string): Promise<Finished> {
  const path = join(folder, 'user-data.yaml');
  writeFileSync(path, userData);
  return execute(await systemTool('cloud-init'), ['schema', '-c', path]);
}

describe('cloud-init', () => {
  test.for(variants)('takes the user data for %s', async ([, by, spec]) => {
    const { code, stdout, stderr } = await schema(rendered(by, spec));
    expect(code, stdout + stderr).toBe(0);
    expect(stdout + stderr).toMatch(/Valid (?:cloud-config|schema)/i);
    expect(stdout + stderr).not.toMatch(/deprecat/i);
  });

  test('would not take anything', async () => {
    const { code, stdout, stderr } = await schema('#cloud-config\nruncmd: 5\nwrite_files:\n  - content: x\n');
    expect(code).not.toBe(0);
    expect(stdout + stderr).toMatch(/runcmd/);
  });
});

test.for(variants.slice(0, 4))('a shell reads every script and command of %s', async ([name, by, spec]) => {
  const userData = rendered(by, spec);
  const files = filesOf(userData, join(folder, name.replaceAll(/\W+/g, '-')));
  const scripts = [...files.values()].filter((path) => readFileSync(path, 'utf8').startsWith('#!/bin/bash'));
  expect(scripts.length).toBeGreaterThan(0);
  const commands = join(folder, 'runcmd');
  writeFileSync(commands, (parse(userData) as CloudConfig).runcmd.join('\n'));
  for (const path of scripts) expect(await execute('bash', ['-n', path])).toMatchObject({ code: 0, stderr: '' });
  expect(await execute('sh', ['-n', commands])).toMatchObject({ code: 0, stderr: '' });
});

test.for(variants.slice(0, 2))('kubeadm takes the JoinConfiguration of %s', async ([, by, spec]) => {
  const files = filesOf(rendered(by, spec), join(folder, 'join'));
  const [path, kubeconfig] = [files.get('join.yaml')!, files.get('bootstrap.conf')!];
  // On the machine it is where the user data puts it.
  writeFileSync(path, readFileSync(path, 'utf8').replace('/etc/karpenter/bootstrap.conf', kubeconfig));
  const args = ['config', 'validate', '--config', path];
  const { code, stdout, stderr } = await execute(await tool('kubeadm'), args);
  expect(code, stdout + stderr).toBe(0);
});

describe('a machine of Instance mode', () => {
  let plane: ControlPlane | undefined;
  let account: LinodeAccount | undefined;
  let controller: RunningProgram | undefined;
  let kubelet: RunningProgram | undefined;
  let runtime: Server | undefined;
  /** User data by the label of the machine. */
  const machines = new Map<string, string>();

  const admin = (line: string): Promise<string> => kubectl(plane!.kubeconfig, line.split(' '));

  beforeAll(async () => {
    plane = await startControlPlane({ workloads: true, authority: true });
    await publishCluster(plane, folder);
    await applyCrds(plane.kubeconfig);
    account = await startAccount({
      booted: ({ label, userData = '' }) => void machines.set(label, userData),
      gone: () => undefined,
    });
    controller = await startController('ours', {
      kubeconfig: plane.kubeconfig,
      env: {
        PROVIDERS: 'linode',
        LINODE_TOKEN: account.token,
        LINODE_URL: account.url,
        CLUSTER_NAME: 'mine',
        KARPENTER_MODE: 'instance',
        LINODE_REGION: 'us-ord',
      },
    });
  }, 240_000);

  afterAll(async () => {
    await kubelet?.stop('SIGKILL');
    runtime?.close();
    await controller?.stop();
    await account?.close();
    await plane?.stop();
  });

  test('a kubelet gets its client certificate by the bootstrap kubeconfig in its user data', async () => {
    const nodeClassRef = { group: 'karpenter.k8s.linode', kind: 'LinodeNodeClass', name: 'default' };
    const kubeletSettings = { evictionHard: { 'memory.available': '5%' }, maxPods: 60 };
    await apply(plane!.kubeconfig, [
      {
        apiVersion: 'karpenter.k8s.linode/v1',
        kind: 'LinodeNodeClass',
        metadata: { name: 'default' },
        spec: { kubelet: kubeletSettings },
      },
      {
        apiVersion: 'karpenter.sh/v1',
        kind: 'NodeClaim',
        metadata: { name: 'one' },
        spec: { nodeClassRef, requirements: [], resources: { requests: { cpu: '1' } } },
      },
    ]);
    const [label, userData] = await controller!.until(() => [...machines][0]);
    const { code, stdout, stderr } = await schema(userData);
    expect(code, stdout + stderr).toBe(0);

    const files = filesOf(userData, join(folder, 'machine'));
    const [config, pki, kubeconfig] = ['config.yaml', 'pki', 'kubelet.conf'].map((name) => join(folder, name));
    const socket = join(folder, 'runtime.sock');
    // A container runtime that never answers: the kubelet waits for it, and by then it has what this is about.
    runtime = createServer(() => undefined).listen(socket);
    const patch = parse(readFileSync(files.get('kubeletconfiguration+merge.yaml')!, 'utf8')) as Record<string, unknown>;
    expect(patch).toMatchObject({ maxPods: 60, evictionHard: { 'memory.available': '5%' } });
    // What kubeadm writes for every kubelet of its clusters, and what this machine is not made for.
    const base = {
      rotateCertificates: true,
      authentication: { anonymous: { enabled: false }, webhook: { enabled: true } },
      authorization: { mode: 'Webhook' },
      containerRuntimeEndpoint: `unix://${socket}`,
      failCgroupV1: false,
      healthzPort: 0,
    };
    writeFileSync(config!, stringify({ ...base, ...patch }));
    kubelet = new RunningProgram('kubelet', await tool('kubelet'), [
      `--bootstrap-kubeconfig=${files.get('bootstrap.conf')}`,
      `--kubeconfig=${kubeconfig}`,
      `--config=${config}`,
      `--cert-dir=${pki}`,
      `--root-dir=${join(folder, 'kubelet')}`,
      `--hostname-override=${label}`,
    ]);
    const current = join(pki!, 'kubelet-client-current.pem');
    await kubelet.until(() => existsSync(current) && existsSync(kubeconfig!), 90_000);
    const { subject, issuer } = new X509Certificate(readFileSync(current));
    expect(subject.split('\n').toSorted()).toEqual([`CN=system:node:${label}`, 'O=system:nodes']);
    expect(issuer).toContain('CN=');
    // The API server takes it for what it says.
    const whoami = JSON.parse(await kubectl(kubeconfig!, ['auth', 'whoami', '-o', 'json'])) as {
      status: { userInfo: { username: string; groups: string[] } };
    };
    expect(whoami.status.userInfo).toMatchObject({
      username: `system:node:${label}`,
      groups: expect.arrayContaining(['system:nodes']) as string[],
    });
    const requests = JSON.parse(await admin('get certificatesigningrequests -o json')) as {
      items: { spec: { username: string; signerName: string }; status: { conditions: { type: string }[] } }[];
    };
    expect(requests.items).toMatchObject([
      {
        spec: {
          username: expect.stringMatching(/^system:bootstrap:[a-z0-9]{6}$/) as string,
          signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
        },
        status: { conditions: [{ type: 'Approved' }] },
      },
    ]);
  });

  test('the token is gone with its machine, and opens nothing any more', async () => {
    const bootstrap = join(folder, 'machine', 'bootstrap.conf');
    const whoami = (): Promise<string> =>
      kubectl(bootstrap, ['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}']);
    expect(await whoami()).toMatch(/^system:bootstrap:/);
    await admin('delete nodeclaim one --timeout=60s');
    await controller!.until(
      async () => (await admin('get secrets -n kube-system -l app.kubernetes.io/managed-by=karpenter -o name')) === '',
      30_000,
    );
    // API servers remember for some seconds who somebody was.
    const isRefused = (): Promise<boolean> =>
      whoami().then(
        () => false,
        () => true,
      );
    await controller!.until(isRefused, 60_000);
    expect(await admin('get --raw /readyz')).toBe('ok');
    expect(account!.api.ledger.living()).toEqual([]);
  });
});
