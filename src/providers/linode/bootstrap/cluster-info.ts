// SPDX-License-Identifier: Apache-2.0
// What a machine must know of the cluster it joins: where its API server is, whom to trust, which version, which kind.
import { X509Certificate } from 'node:crypto';
import type { Clock } from '../../../base/clock.ts';
import { KarpenterError, messageOf } from '../../../base/errors.ts';
import { ignoreNotFound } from '../../../kube/api-error.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { kinds } from '../../../kube/kinds.ts';
import { parseYaml } from '../../../kube/yaml.ts';
import { sha256 } from '../names.ts';

export interface ClusterInfo {
  /** `https://host:port`. */
  readonly server: string;
  /** In PEM. */
  readonly ca: string;
  /** `sha256:…` of the public key of the authority, as kubeadm has it. */
  readonly caHash: string;
  /** Of the file with the authorities, as k3s has it. */
  readonly caFileHash: string;
  /** `v1.34.1`, or `v1.34.1+k3s1`. */
  readonly version: string;
  readonly distribution: 'kubeadm' | 'k3s';
}

/** A machine could not join: something about the cluster is not known. A person has to change something. */
export class ClusterInfoError extends KarpenterError {
  constructor(message: string) {
    super('KRP_LINODE_CLUSTER_INFO', message);
  }
}

export interface ClusterInfoOptions {
  /** Where Nodes appear. */
  readonly workload: KubeClient;
  /** CLUSTER_ENDPOINT; '' to find it out. */
  readonly endpoint: string;
  readonly clock: Clock;
}

const freshMs = 5 * 60_000;

/** Reads it from the cluster itself, again after a while. */
export class ClusterInfoReader {
  readonly #options: ClusterInfoOptions;
  #known: { readonly info: ClusterInfo; readonly at: number } | undefined;

  constructor(options: ClusterInfoOptions) {
    this.#options = options;
  }

  /** Throws ClusterInfoError when something is not known, else what the API server threw. */
  async read(signal: AbortSignal): Promise<ClusterInfo> {
    const { clock } = this.#options;
    if (this.#known && clock.monotonic() - this.#known.at < freshMs) return this.#known.info;
    const info = await this.#read(signal);
    this.#known = { info, at: clock.monotonic() };
    return info;
  }

  async #read(signal: AbortSignal): Promise<ClusterInfo> {
    const { workload, endpoint } = this.#options;
    const told = await this.#published(signal);
    const server = endpoint || told.server;
    if (!server) {
      throw new ClusterInfoError(
        'CLUSTER_ENDPOINT is not set, and the cluster does not publish its address (ConfigMap kube-public/cluster-info)',
      );
    }
    const ca = (await this.#authority(signal)) || told.ca;
    if (!ca) throw new ClusterInfoError('the cluster does not publish its authority (ConfigMap kube-root-ca.crt)');
    const { gitVersion: version = '' } = (await workload.request({ method: 'GET', path: '/version', signal })) as {
      gitVersion?: string;
    };
    return {
      server: server.replace(/\/+$/, ''),
      ca,
      caHash: publicKeyHash(ca),
      caFileHash: sha256(ca),
      version,
      distribution: version.includes('+k3s') ? 'k3s' : 'kubeadm',
    };
  }

  async #authority(signal: AbortSignal): Promise<string | undefined> {
    const maps = this.#options.workload.resource(kinds.ConfigMap);
    const map = await ignoreNotFound(maps.get('kube-root-ca.crt', { namespace: 'kube-system', signal }));
    return map?.data?.['ca.crt'];
  }

  /** What kubeadm publishes for those who want to join. */
  async #published(signal: AbortSignal): Promise<{ server?: string; ca?: string }> {
    const maps = this.#options.workload.resource(kinds.ConfigMap);
    const map = await ignoreNotFound(maps.get('cluster-info', { namespace: 'kube-public', signal }));
    const text = map?.data?.['kubeconfig'];
    if (!text) return {};
    return connectionIn(text);
  }
}

/** Where a kubeconfig without users leads to. What is not a text there says nothing. */
function connectionIn(kubeconfig: string): { server?: string; ca?: string } {
  let config: unknown;
  try {
    config = parseYaml(kubeconfig);
  } catch (error) {
    throw new ClusterInfoError(`the ConfigMap kube-public/cluster-info holds no kubeconfig: ${messageOf(error)}`);
  }
  const [first] = listOf(fieldOf(config, 'clusters'));
  const cluster = fieldOf(first, 'cluster');
  const [server, data] = [fieldOf(cluster, 'server'), fieldOf(cluster, 'certificate-authority-data')];
  return {
    ...(typeof server === 'string' && server !== '' ? { server } : {}),
    ...(typeof data === 'string' && data !== '' ? { ca: Buffer.from(data, 'base64').toString('utf8') } : {}),
  };
}

const fieldOf = (value: unknown, name: string): unknown =>
  (value as Record<string, unknown> | null | undefined)?.[name];
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

function publicKeyHash(ca: string): string {
  try {
    const key = new X509Certificate(ca).publicKey.export({ type: 'spki', format: 'der' });
    return `sha256:${sha256(key)}`;
  } catch {
    throw new ClusterInfoError('the authority that the cluster publishes is not a certificate');
  }
}
