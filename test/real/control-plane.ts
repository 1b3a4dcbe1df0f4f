// SPDX-License-Identifier: Apache-2.0
// A real Kubernetes control plane on loopback: etcd, kube-apiserver (1.36 unless asked otherwise) and what else a test
// asks for.
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { tool } from '../../hack/tools/tools.ts';
import { startKwok } from './kwok.ts';
import { freePort, RunningProgram } from './processes.ts';

const token = 'test-admin-token';

/** A control plane of this test's own; `stop` removes every trace. */
export interface ControlPlane {
  readonly url: string;
  /** The bearer token of the same user. */
  readonly token: string;
  /** A kubeconfig of a system:masters user. */
  readonly kubeconfig: string;
  stop(): Promise<void>;
}

export interface ControlPlaneOptions {
  /** Also the controller manager and the scheduler. */
  readonly workloads?: boolean;
  /** Also kwok, the kubelet of nodes that are not there, with its quick stages and upstream's own. */
  readonly kwok?: boolean;
  /** Another release than the usual one. */
  readonly release?: '1.33';
  /** More flags for the API server. */
  readonly apiServer?: readonly string[];
}

type Component = 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler';
type Release = ControlPlaneOptions['release'];

const component = (name: Component, release: Release): Promise<string> => tool(release ? `${name}-${release}` : name);

/** Starts etcd and the API server (about 5 s), and what else is asked for. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const folder = mkdtempSync(join(tmpdir(), 'karpenter-real-'));
  const programs: RunningProgram[] = [];
  const stop = async (): Promise<void> => {
    // In reverse: a client that outlives its server only logs errors.
    for (const program of programs.toReversed()) await program.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const etcd = await startEtcd(folder, programs);
    const url = await startApiServer(folder, etcd, programs, options);
    const kubeconfig = writeKubeconfig(folder, url);
    if (options.workloads) await startWorkloads(folder, kubeconfig, programs, options.release);
    if (options.kwok) programs.push(await startKwok(kubeconfig));
    return { url, token, kubeconfig, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startEtcd(folder: string, programs: RunningProgram[]): Promise<string> {
  const [client, peer] = [await freePort(), await freePort()];
  const clientUrl = `http://127.0.0.1:${client}`;
  const peerUrl = `http://127.0.0.1:${peer}`;
  const etcd = new RunningProgram('etcd', await tool('etcd'), [
    `--data-dir=${join(folder, 'etcd')}`,
    '--unsafe-no-fsync',
    '--log-level=error',
    `--listen-client-urls=${clientUrl}`,
    `--advertise-client-urls=${clientUrl}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=default=${peerUrl}`,
  ]);
  programs.push(etcd);
  await etcd.until(async () => (await request(`${clientUrl}/health`)).statusCode === 200);
  return clientUrl;
}

async function startApiServer(
  folder: string,
  etcd: string,
  programs: RunningProgram[],
  { release, apiServer = [] }: ControlPlaneOptions,
): Promise<string> {
  const port = await freePort();
  const url = `https://127.0.0.1:${port}`;
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const keys = join(folder, 'service-account');
  writeFileSync(`${keys}.key`, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  writeFileSync(`${keys}.pub`, publicKey.export({ type: 'spki', format: 'pem' }));
  writeFileSync(join(folder, 'tokens.csv'), `${token},admin,admin-uid,"system:masters"\n`);
  const certificates = join(folder, 'certificates');
  mkdirSync(certificates);
  const server = new RunningProgram('kube-apiserver', await component('kube-apiserver', release), [
    `--etcd-servers=${etcd}`,
    `--secure-port=${port}`,
    '--bind-address=127.0.0.1',
    `--cert-dir=${certificates}`,
    `--service-account-key-file=${keys}.pub`,
    `--service-account-signing-key-file=${keys}.key`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--token-auth-file=${join(folder, 'tokens.csv')}`,
    '--authorization-mode=Node,RBAC',
    '--disable-admission-plugins=ServiceAccount',
    '--service-cluster-ip-range=10.0.0.0/24',
    ...apiServer,
  ]);
  programs.push(server);
  // Its certificate is its own and new each time; the test speaks to loopback only.
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
  const headers = { authorization: `Bearer ${token}` };
  await server.until(async () => (await request(`${url}/readyz`, { dispatcher, headers })).statusCode === 200);
  // Ready comes before the default namespace does.
  await server.until(
    async () => (await request(`${url}/api/v1/namespaces/default`, { dispatcher, headers })).statusCode === 200,
  );
  await dispatcher.close();
  return url;
}

async function startWorkloads(
  folder: string,
  kubeconfig: string,
  programs: RunningProgram[],
  release: Release,
): Promise<void> {
  // At their default rates these two, not the program under test, would be measured.
  const rates = ['--kube-api-qps=2000', '--kube-api-burst=4000', '--leader-elect=false', `--kubeconfig=${kubeconfig}`];
  for (const name of ['kube-controller-manager', 'kube-scheduler'] as const) {
    const port = await freePort();
    programs.push(
      new RunningProgram(name, await component(name, release), [
        ...rates,
        `--secure-port=${port}`,
        '--bind-address=127.0.0.1',
        `--cert-dir=${join(folder, name)}`,
      ]),
    );
  }
}

function writeKubeconfig(folder: string, server: string): string {
  const path = join(folder, 'kubeconfig');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'real', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'admin', user: { token } }],
    contexts: [{ name: 'real', context: { cluster: 'real', user: 'admin' } }],
    'current-context': 'real',
  };
  writeFileSync(path, JSON.stringify(config));
  return path;
}
