// SPDX-License-Identifier: Apache-2.0
// The embedded cluster as a whole: API server, controllers, scheduler, kubelet and two small nodes in one process.
import { allCrds, type CustomResourceDefinition } from '../api/crd.ts';
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import { KubeClient } from '../kube/client.ts';
import { kinds, type Node, type StorageClass } from '../kube/kinds.ts';
import type { Transport } from '../kube/transport.ts';
import { type Logger, silentLogger } from '../runtime/logging.ts';
import { ApiServer, type UserInfo } from './api-server.ts';
import type { HttpListener } from './http.ts';
import { fakeNodeAnnotation } from './kubelet/fake-node.ts';
import type { LogSources } from './logs/pod-log.ts';
import { type RunningControlPlane, runControlPlane } from './workloads/run-control-plane.ts';

export interface EmbeddedClusterOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly log?: Logger;
  /** Opens an HTTPS port on loopback: 0 for any free one. None: reachable in process only. */
  readonly port?: number;
  /** The kinds it serves besides the built-in ones; all of ours unless told. */
  readonly crds?: readonly CustomResourceDefinition[];
  /** The nodes it starts with; two small ones unless told. */
  readonly baseNodes?: readonly Node[];
  /** How often fake nodes renew their leases; 0 turns heartbeats, and the watch over them, off. */
  readonly heartbeatMs?: number;
  /** Logs of containers that somebody really runs; undefined: nobody does. */
  readonly logs?: LogSources;
  /** From a pod being placed to it running. */
  readonly podStartMs?: number;
  /**
   * No record of who owns which field, no events from the control plane, statuses that are written together: for
   * simulations, which pay for each write.
   */
  readonly lean?: boolean;
}

const administrator: UserInfo = { username: 'kubernetes-admin', groups: ['system:masters'] };
const clusterName = 'karpenter-embedded';

/** A cluster of its own. Everything it needs is in this process; `close` leaves nothing behind. */
export class EmbeddedCluster {
  readonly server: ApiServer;
  readonly #clock: Clock;
  readonly #listener: HttpListener | undefined;
  readonly #plane: RunningControlPlane;

  private constructor(server: ApiServer, clock: Clock, listener: HttpListener | undefined, plane: RunningControlPlane) {
    this.server = server;
    this.#clock = clock;
    this.#listener = listener;
    this.#plane = plane;
  }

  /** Starts it; resolves when the API is served, controllers run and the base nodes exist. */
  static async start(options: EmbeddedClusterOptions): Promise<EmbeddedCluster> {
    const { clock, random, log = silentLogger, lean = false } = options;
    const logs = options.logs ? { logs: options.logs } : {};
    const server = new ApiServer({ clock, random, log, tracksOwners: !lean, ...logs });
    const listener = options.port === undefined ? undefined : await server.listen({ port: options.port });
    try {
      const client = new KubeClient({ transport: server.transport(), clock, fieldManager: 'karpenter-embedded' });
      const plane = await runControlPlane({
        client,
        isDirect: true,
        clock,
        random,
        log,
        certificateAuthority: listener?.certificateAuthority ?? '',
        lean,
        ...(options.heartbeatMs === undefined ? {} : { heartbeatMs: options.heartbeatMs }),
        ...(options.podStartMs === undefined ? {} : { podStartMs: options.podStartMs }),
      });
      await furnish(client, options);
      return new EmbeddedCluster(server, clock, listener, plane);
    } catch (error) {
      await server.close();
      throw error;
    }
  }

  /** Where it listens; undefined without a port. */
  get url(): string | undefined {
    return this.#listener?.url;
  }

  /** Pods that wait for a node. */
  get pendingPods(): number {
    return this.#plane.scheduler.pending;
  }

  /** No pod is placed until the returned function is called. */
  pauseScheduler(): () => void {
    return this.#plane.scheduler.pause();
  }

  /** A kubeconfig (JSON, which is YAML) of an administrator, with the cluster's own authority. */
  kubeconfig(): string {
    const { url, certificateAuthority } = this.#listener ?? { url: '', certificateAuthority: '' };
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: clusterName,
          cluster: {
            server: url,
            'certificate-authority-data': Buffer.from(certificateAuthority).toString('base64'),
          },
        },
      ],
      users: [{ name: administrator.username, user: { token: this.server.authenticator.issue(administrator) } }],
      contexts: [{ name: clusterName, context: { cluster: clusterName, user: administrator.username } }],
      'current-context': clusterName,
    };
    return `${JSON.stringify(config, undefined, 2)}\n`;
  }

  /** A door in process: without a user it may do anything. */
  transport(user?: UserInfo): Transport {
    return this.server.transport(user);
  }

  /** A client in process. */
  client(user?: UserInfo): KubeClient {
    return new KubeClient({ transport: this.transport(user), clock: this.#clock });
  }

  /** Stops controllers first, then the server. */
  async close(): Promise<void> {
    await this.#plane.stop();
    await this.server.close();
  }
}

/** What a new cluster has besides the API server's own objects. */
async function furnish(client: KubeClient, options: EmbeddedClusterOptions): Promise<void> {
  await client.resource(kinds.StorageClass).create(standardStorageClass);
  for (const { metadata, ...crd } of options.crds ?? allCrds()) {
    const owned = { ...metadata, ...crdRelease };
    await client.resource(kinds.CustomResourceDefinition).create({ ...crd, metadata: owned } as never);
  }
  for (const node of options.baseNodes ?? [baseNode('base-1', 'test-zone-a'), baseNode('base-2', 'test-zone-b')]) {
    await client.resource(kinds.Node).create(node);
  }
}

/** As if `helm install karpenter-crd` had made them: the guides' `helm upgrade --install` takes them over. */
const crdRelease = {
  labels: { 'app.kubernetes.io/managed-by': 'Helm' },
  annotations: { 'meta.helm.sh/release-name': 'karpenter-crd', 'meta.helm.sh/release-namespace': 'kube-system' },
};

const standardStorageClass: StorageClass = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'standard', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  provisioner: 'embedded.karpenter-ts.dev/volume',
  reclaimPolicy: 'Delete',
  volumeBindingMode: 'WaitForFirstConsumer',
};

/** Small on purpose: a demo of a few pods already needs another node. */
function baseNode(name: string, zone: string): Node {
  const resources = { cpu: '2', memory: '4Gi', pods: '17', 'ephemeral-storage': '20Gi' };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      annotations: { [fakeNodeAnnotation]: 'fake' },
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': 'amd64',
        // A zone of its own would be one that no machine can be bought in: pods spread over zones would wait for ever.
        'topology.kubernetes.io/zone': zone,
      },
    },
    status: { capacity: resources, allocatable: resources },
  };
}

/** A node for the system's own pods: what users run is kept off it by a taint. */
export function systemNode(name: string, zone: string): Node {
  const node = baseNode(name, zone);
  return { ...node, spec: { taints: [{ key: 'CriticalAddonsOnly', value: 'true', effect: 'NoSchedule' }] } };
}
