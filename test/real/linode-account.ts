// SPDX-License-Identifier: Apache-2.0
// A Linode account behind the emulated API on loopback, in real time, for controllers and tools that are processes.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { pythonTool, tool } from '../../hack/tools/tools.ts';
import { RealClock } from '../../src/base/clock.ts';
import { SystemRandom } from '../../src/base/random.ts';
import { LinodeApi, type MachineHook } from '../../src/embedded/clouds/linode/api.ts';
import { joinCluster } from '../../src/embedded/clouds/linode/join.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { machineIo } from '../../src/kube/credential-io.ts';
import { HttpTransport } from '../../src/kube/http-transport.ts';
import { findConnection } from '../../src/kube/kubeconfig.ts';
import type { ControlPlane } from './control-plane.ts';
import { execute } from './processes.ts';

export interface LinodeAccount {
  readonly api: LinodeApi;
  readonly url: string;
  readonly token: string;
  /** What tools need to find it. */
  readonly environment: NodeJS.ProcessEnv;
  /** Runs linode-cli, which must succeed; what it printed as JSON. */
  cli<T>(line: string): Promise<T[]>;
  close(): Promise<void>;
}

/** Starts one. `kubeconfig` is what LKE hands out for its clusters. */
export async function startAccount(machines: MachineHook, kubeconfig?: string): Promise<LinodeAccount> {
  const home = mkdtempSync(join(tmpdir(), 'karpenter-linode-'));
  // Nobody else has it: should it turn up in a log or in a process list, it came from there.
  const token = `pat${new SystemRandom().uuid().replaceAll('-', '')}`;
  const api = new LinodeApi({
    clock: new RealClock(),
    random: new SystemRandom(),
    tokens: { [token]: { scope: 'write' } },
    delays: {
      assignMs: 1000,
      listMs: 1500,
      provisionMs: 500,
      installMs: 0,
      bootMs: 500,
      readyMs: 200,
      shutdownMs: 200,
      deleteMs: 500,
      replaceMs: 2000,
      kubeconfigMs: 500,
    },
    machines,
    ...(kubeconfig === undefined ? {} : { kubeconfig: () => kubeconfig }),
  });
  const { url, port } = await api.listen();
  const environment = {
    PATH: process.env['PATH'],
    HOME: home,
    LINODE_CLI_TOKEN: token,
    LINODE_CLI_API_SCHEME: 'http',
    LINODE_CLI_API_HOST: `127.0.0.1:${port}`,
    LINODE_CLI_API_VERSION: 'v4beta',
  };
  return {
    api,
    url,
    token,
    environment,
    cli: async <T>(line: string): Promise<T[]> => {
      const args = [...line.split(' '), '--json', '--no-defaults'];
      const done = await execute(await pythonTool('linode-cli'), args, { env: environment });
      if (done.code !== 0) throw new Error(`linode-cli ${line} ended with ${done.code}:\n${done.stdout}${done.stderr}`);
      return done.stdout.trim() === '' ? [] : (JSON.parse(done.stdout) as T[]);
    },
    close: async () => {
      await api.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Machines that join the cluster of a kubeconfig, as its admin sees them do. */
export function joiningTo(kubeconfig: string): MachineHook {
  const clock = new RealClock();
  const io = machineIo({}, false);
  const connection = findConnection({ path: kubeconfig, env: {}, homeDirectory: '/', io, clock });
  const workload = new KubeClient({ transport: new HttpTransport(connection), fieldManager: 'linode' });
  return joinCluster({ workload, clock, initializeMs: 200 });
}

/** What kubeadm says of a cluster of its own: where it is, and who may join. By kubeadm itself. */
export async function publishCluster(plane: ControlPlane, folder: string): Promise<void> {
  const apiVersion = 'kubeadm.k8s.io/v1beta4';
  const config = [
    { apiVersion, kind: 'ClusterConfiguration', kubernetesVersion: 'v1.36.1' },
    {
      apiVersion,
      kind: 'InitConfiguration',
      localAPIEndpoint: { advertiseAddress: '10.0.0.1' },
      nodeRegistration: { name: 'one', criSocket: 'unix:///run/containerd/containerd.sock' },
    },
  ];
  const path = join(folder, 'init.yaml');
  writeFileSync(path, config.map((document) => stringify(document)).join('---\n'));
  const args = ['init', 'phase', 'bootstrap-token', '--config', path, '--kubeconfig', plane.kubeconfig];
  const { code, stdout, stderr } = await execute(await tool('kubeadm'), args);
  if (code !== 0) throw new Error(`kubeadm ${args.join(' ')} ended with ${code}:\n${stdout}${stderr}`);
}
