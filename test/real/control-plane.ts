// SPDX-License-Identifier: Apache-2.0
// A real Kubernetes control plane on loopback: etcd, kube-apiserver (1.36 unless asked otherwise) and what else a test
// asks for.
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { tool } from '../../hack/tools/tools.ts';
import { RealClock } from '../../src/base/clock.ts';
import { SystemRandom } from '../../src/base/random.ts';
import { makeCertificate } from '../../src/embedded/certificates.ts';
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
  /** Ends the API server without a word, and starts it again on the same port and data after a while. */
  restartApiServer(awayMs: number): Promise<void>;
  /** The same for what the API server keeps its objects in. */
  restartEtcd(awayMs: number): Promise<void>;
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
  /** An authority that signs the server's certificate and those of kubelets, and bootstrap tokens, as kubeadm has them. */
  readonly authority?: boolean;
}

/** Where the files of the authority are, in the folder of a control plane. */
const authorityFiles = (folder: string) => {
  const at = (name: string): string => join(folder, `authority-${name}`);
  return { authority: at('ca.crt'), authorityKey: at('ca.key'), certificate: at('server.crt'), key: at('server.key') };
};

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
    const etcd = await prepareEtcd(folder);
    programs.push(await etcd.start());
    const { url, start } = await prepareApiServer(folder, etcd.url, options);
    programs.push(await start());
    const kubeconfig = writeKubeconfig(folder, url, options.authority);
    if (options.workloads) await startWorkloads(folder, kubeconfig, programs, options);
    if (options.kwok) programs.push(await startKwok(kubeconfig));
    const restart = async (place: number, again: () => Promise<RunningProgram>, awayMs: number): Promise<void> => {
      await programs[place]!.stop('SIGKILL');
      await new Promise((resolve) => setTimeout(resolve, awayMs));
      programs[place] = await again();
    };
    return {
      url,
      token,
      kubeconfig,
      restartEtcd: (awayMs) => restart(0, etcd.start, awayMs),
      restartApiServer: (awayMs) => restart(1, start, awayMs),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Its ports and its data; `start` starts it, again and again if need be. */
async function prepareEtcd(folder: string): Promise<{ url: string; start: () => Promise<RunningProgram> }> {
  const [client, peer] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${client}`;
  const peerUrl = `http://127.0.0.1:${peer}`;
  const path = await tool('etcd');
  const start = async (): Promise<RunningProgram> => {
    const etcd = new RunningProgram('etcd', path, [
      `--data-dir=${join(folder, 'etcd')}`,
      '--unsafe-no-fsync',
      '--log-level=error',
      `--listen-client-urls=${url}`,
      `--advertise-client-urls=${url}`,
      `--listen-peer-urls=${peerUrl}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      `--initial-cluster=default=${peerUrl}`,
    ]);
    await etcd.until(async () => (await request(`${url}/health`)).statusCode === 200);
    return etcd;
  };
  return { url, start };
}

/** Its keys and its port; `start` starts it, again and again if need be. */
async function prepareApiServer(
  folder: string,
  etcd: string,
  { release, apiServer = [], authority = false }: ControlPlaneOptions,
): Promise<{ url: string; start: () => Promise<RunningProgram> }> {
  const port = await freePort();
  const url = `https://127.0.0.1:${port}`;
  const signed = authority ? writeAuthority(folder) : [];
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const keys = join(folder, 'service-account');
  writeFileSync(`${keys}.key`, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  writeFileSync(`${keys}.pub`, publicKey.export({ type: 'spki', format: 'pem' }));
  writeFileSync(join(folder, 'tokens.csv'), `${token},admin,admin-uid,"system:masters"\n`);
  const certificates = join(folder, 'certificates');
  mkdirSync(certificates);
  const path = await component('kube-apiserver', release);
  const start = async (): Promise<RunningProgram> => {
    const server = new RunningProgram('kube-apiserver', path, [
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
      ...signed,
      ...apiServer,
    ]);
    await untilServed(server, url);
    return server;
  };
  return { url, start };
}

/** Makes the authority and what it signs; the flags by which the API server uses them. */
function writeAuthority(folder: string): string[] {
  const made = makeCertificate(new RealClock(), new SystemRandom(), ['localhost', 'kubernetes'], ['127.0.0.1']);
  const files = authorityFiles(folder);
  for (const [name, path] of Object.entries(files)) writeFileSync(path, made[name as keyof typeof files]);
  return [
    `--tls-cert-file=${files.certificate}`,
    `--tls-private-key-file=${files.key}`,
    `--client-ca-file=${files.authority}`,
    '--enable-bootstrap-token-auth',
  ];
}

async function untilServed(server: RunningProgram, url: string): Promise<void> {
  // Its certificate is its own and new each time; the test speaks to loopback only.
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
  const headers = { authorization: `Bearer ${token}` };
  // With objects in its store it takes longer than with none.
  const patienceMs = 180_000;
  try {
    await server.until(
      async () => (await request(`${url}/readyz`, { dispatcher, headers })).statusCode === 200,
      patienceMs,
    );
    // Ready comes before the default namespace does.
    await server.until(
      async () => (await request(`${url}/api/v1/namespaces/default`, { dispatcher, headers })).statusCode === 200,
    );
  } catch (error) {
    await server.stop();
    throw error;
  } finally {
    await dispatcher.close();
  }
}

async function startWorkloads(
  folder: string,
  kubeconfig: string,
  programs: RunningProgram[],
  { release, authority = false }: ControlPlaneOptions,
): Promise<void> {
  // At their default rates these two, not the program under test, would be measured.
  const rates = ['--kube-api-qps=2000', '--kube-api-burst=4000', '--leader-elect=false', `--kubeconfig=${kubeconfig}`];
  const files = authorityFiles(folder);
  const signing = [
    `--root-ca-file=${files.authority}`,
    `--cluster-signing-cert-file=${files.authority}`,
    `--cluster-signing-key-file=${files.authorityKey}`,
    '--controllers=*,bootstrapsigner,tokencleaner',
  ];
  for (const name of ['kube-controller-manager', 'kube-scheduler'] as const) {
    const port = await freePort();
    programs.push(
      new RunningProgram(name, await component(name, release), [
        ...rates,
        `--secure-port=${port}`,
        '--bind-address=127.0.0.1',
        `--cert-dir=${join(folder, name)}`,
        ...(authority && name === 'kube-controller-manager' ? signing : []),
      ]),
    );
  }
}

function writeKubeconfig(folder: string, server: string, authority = false): string {
  const path = join(folder, 'kubeconfig');
  const trust = authority
    ? { 'certificate-authority-data': readFileSync(authorityFiles(folder).authority).toString('base64') }
    : { 'insecure-skip-tls-verify': true };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'real', cluster: { server, ...trust } }],
    users: [{ name: 'admin', user: { token } }],
    contexts: [{ name: 'real', context: { cluster: 'real', user: 'admin' } }],
    'current-context': 'real',
  };
  writeFileSync(path, JSON.stringify(config));
  return path;
}
