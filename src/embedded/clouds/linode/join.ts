// SPDX-License-Identifier: Apache-2.0
// Machines that become Nodes: nodes of LKE's pools as LKE makes them, other Linodes when their user data lets them join,
// and a cloud controller manager that says which Linode a Node is and removes Nodes whose Linode is gone.
import type { Clock } from '../../../base/clock.ts';
import { ignoreNotFound, isAlreadyExists, isNotFound } from '../../../kube/api-error.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { kinds, type Node } from '../../../kube/kinds.ts';
import { parseTime } from '../../../kube/time.ts';
import { type Logger, silentLogger } from '../../../runtime/logging.ts';
import { fakeNodeAnnotation } from '../../kubelet/fake-node.ts';
import type { Machine, MachineHook } from './machines.ts';
import type { Taint } from './records.ts';
import { type Join, readJoin } from './user-data.ts';

export interface JoinOptions {
  /** The cluster that machines join. */
  readonly workload: KubeClient;
  readonly clock: Clock;
  readonly log?: Logger;
  /** Only nodes of this LKE cluster belong here; of every one unless told. */
  readonly clusterId?: () => number | undefined;
  /** From a Node's registration to the cloud controller manager knowing it. */
  readonly initializeMs?: number;
}

const uninitialized = { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' };
const tokenType = 'bootstrap.kubernetes.io/token';

/** Lets machines join a cluster. */
export function joinCluster(options: JoinOptions): MachineHook {
  return new Joining(options);
}

/** How a machine registers. */
interface Registration {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly maxPods: number;
  readonly version?: string;
  /** The cloud controller manager completes it. */
  readonly externalCloud: boolean;
  readonly providerId?: string;
}

class Joining implements MachineHook {
  readonly #options: JoinOptions;
  readonly #log: Logger;
  /** The Node of each machine that joined. */
  readonly #nodes = new Map<number, string>();
  /** Machines whose kubelet has a certificate. */
  readonly #certified = new Set<number>();

  constructor(options: JoinOptions) {
    this.#options = options;
    this.#log = options.log ?? silentLogger;
  }

  async booted(machine: Machine): Promise<void> {
    const registration = machine.lke ? this.#ofPool(machine) : await this.#ofUserData(machine);
    if (typeof registration === 'string') {
      // The kubelet has its certificate from the first time: it needs no token to come back.
      if (this.#certified.has(machine.id)) return this.#play(this.#nodes.get(machine.id), 'fake');
      this.#log.warn('a Linode does not join', { linode: machine.id, label: machine.label, reason: registration });
      return;
    }
    if (!registration) return;
    this.#nodes.set(machine.id, registration.name);
    this.#certified.add(machine.id);
    await this.#register(machine, registration);
    if (!registration.externalCloud) return;
    await this.#options.clock.sleep(this.#options.initializeMs ?? 1000);
    await this.#initialize(machine, registration.name);
  }

  /** Its kubelet falls silent. */
  async stopped({ id }: Machine): Promise<void> {
    await this.#play(this.#nodes.get(id), null);
  }

  /** Nothing is left of its certificate. */
  wiped({ id }: Machine): void {
    this.#certified.delete(id);
  }

  async gone({ id }: Machine): Promise<void> {
    const name = this.#nodes.get(id);
    this.#certified.delete(id);
    if (name === undefined) return;
    this.#nodes.delete(id);
    const nodes = this.#options.workload.resource(kinds.Node);
    const node = await this.#node(name);
    if (node?.spec?.providerID === `linode://${id}`) await ignoreNotFound(nodes.delete(name));
  }

  #ofPool({ label, lke }: Machine): Registration | undefined {
    const only = this.#options.clusterId?.();
    if (!lke || (only !== undefined && lke.clusterId !== only)) return undefined;
    const version = lke.version.replace(/\+.*/, '').replace(/^v?/, 'v');
    return {
      name: label,
      labels: { 'lke.linode.com/pool-id': String(lke.poolId), ...lke.labels },
      taints: lke.taints,
      maxPods: 110,
      version: /^v\d+\.\d+$/.test(version) ? `${version}.1` : version,
      externalCloud: true,
    };
  }

  /** A reason instead, when it cannot join. */
  async #ofUserData(machine: Machine): Promise<Registration | string> {
    if (machine.userData === undefined) return 'it has no user data';
    const join = readJoin(machine.userData);
    if ('problem' in join) return join.problem;
    const problem = await this.#tokenProblem(join);
    if (problem !== undefined) return problem;
    const providerId = join.providerId === 'asks' ? machine.providerId : join.providerId;
    return {
      name: join.nodeName ?? machine.label,
      labels: join.labels,
      taints: join.taints,
      maxPods: join.maxPods ?? 110,
      externalCloud: join.externalCloud,
      ...(providerId === undefined ? {} : { providerId }),
    };
  }

  /** What the API server's bootstrap token authenticator would have against it. */
  async #tokenProblem({ token }: Join): Promise<string | undefined> {
    const name = `bootstrap-token-${token.id}`;
    const secrets = this.#options.workload.resource(kinds.Secret);
    const secret = await ignoreNotFound(secrets.get(name, { namespace: 'kube-system' }));
    if (!secret) return `the bootstrap token ${token.id} does not exist`;
    const value = (key: string): string => Buffer.from(secret.data?.[key] ?? '', 'base64').toString('utf8');
    if (secret.type !== tokenType) return `the secret ${name} is not of type ${tokenType}`;
    if (value('token-id') !== token.id || value('token-secret') !== token.secret) {
      return `the bootstrap token ${token.id} has another secret`;
    }
    if (value('usage-bootstrap-authentication') !== 'true')
      return `the bootstrap token ${token.id} is not for authentication`;
    const expiration = value('expiration');
    if (expiration !== '' && parseTime(expiration) <= this.#options.clock.now()) {
      return `the bootstrap token ${token.id} has expired`;
    }
    return undefined;
  }

  async #register(machine: Machine, registration: Registration): Promise<void> {
    const nodes = this.#options.workload.resource(kinds.Node);
    try {
      await nodes.create(newNode(machine, registration));
    } catch (error) {
      // It was here before: the same machine, up again.
      if (!isAlreadyExists(error)) throw error;
      await this.#play(registration.name, 'fake');
    }
  }

  /** The cloud controller manager looks the Linode up by its name. */
  async #initialize(machine: Machine, name: string): Promise<void> {
    const nodes = this.#options.workload.resource(kinds.Node);
    const node = await this.#node(name);
    const taints = node?.spec?.taints;
    if (!node || !taints?.some(({ key }) => key === uninitialized.key)) return;
    const patch = {
      metadata: { resourceVersion: node.metadata.resourceVersion, labels: cloudLabels(machine) },
      spec: {
        providerID: node.spec?.providerID ?? machine.providerId,
        taints: taints.filter(({ key }) => key !== uninitialized.key),
      },
    };
    try {
      await nodes.patch(name, patch, { type: 'application/merge-patch+json' });
    } catch (error) {
      if (isNotFound(error)) return;
      await this.#options.clock.sleep(100);
      await this.#initialize(machine, name);
    }
  }

  #node(name: string): Promise<Node | undefined> {
    return ignoreNotFound(this.#options.workload.resource(kinds.Node).get(name));
  }

  /** Whether somebody plays its kubelet. */
  async #play(name: string | undefined, value: 'fake' | null): Promise<void> {
    if (name === undefined) return;
    const patch = { metadata: { annotations: { [fakeNodeAnnotation]: value } } };
    const nodes = this.#options.workload.resource(kinds.Node);
    await ignoreNotFound(nodes.patch(name, patch, { type: 'application/merge-patch+json' }));
  }
}

/** What the cloud controller manager knows of a Linode. */
function cloudLabels({ plan, region, hostUuid }: Machine): Record<string, string> {
  return {
    'beta.kubernetes.io/instance-type': plan.id,
    'failure-domain.beta.kubernetes.io/region': region,
    'node.k8s.linode.com/host-uuid': hostUuid,
    'node.kubernetes.io/instance-type': plan.id,
    'topology.kubernetes.io/region': region,
    'topology.linode.com/region': region,
  };
}

type NodeInfo = NonNullable<NonNullable<Node['status']>['nodeInfo']>;

function newNode(machine: Machine, registration: Registration): Node {
  const { name, providerId, externalCloud } = registration;
  const capacity = capacityOf(machine, registration.maxPods);
  const internal = machine.vpcIp ?? machine.ipv4;
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      annotations: { [fakeNodeAnnotation]: 'fake' },
      labels: {
        'beta.kubernetes.io/arch': 'amd64',
        'beta.kubernetes.io/os': 'linux',
        'kubernetes.io/arch': 'amd64',
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        ...registration.labels,
      },
    },
    spec: {
      ...(providerId === undefined ? {} : { providerID: providerId }),
      taints: [...registration.taints, ...(externalCloud ? [uninitialized] : [])].map((taint) => ({ ...taint })),
    },
    status: {
      capacity,
      allocatable: allocatableOf(capacity),
      addresses: [
        { type: 'Hostname', address: name },
        { type: 'InternalIP', address: internal },
        ...(machine.vpcIp === undefined ? [] : [{ type: 'ExternalIP', address: machine.ipv4 }]),
      ],
      ...(registration.version === undefined ? {} : { nodeInfo: { kubeletVersion: registration.version } as NodeInfo }),
    },
  };
}

/**
 * What a kubelet finds on a plan: as nodes of LKE with 2 and 4 GB report it. The kernel and the file system take their
 * part first.
 */
function capacityOf({ plan }: Machine, maxPods: number): Record<string, string> {
  const memory = Math.floor(plan.memory * 1024 * 0.9511 + 32_700);
  return {
    cpu: String(plan.vcpus),
    memory: `${Math.min(memory, plan.memory * 1024)}Ki`,
    'ephemeral-storage': `${Math.floor(plan.disk * 1024 * 0.98)}Ki`,
    pods: String(maxPods),
    ...(plan.gpus > 0 ? { 'nvidia.com/gpu': String(plan.gpus) } : {}),
  };
}

/** LKE keeps 100 Mi of memory and a tenth of the disk for itself. */
function allocatableOf(capacity: Readonly<Record<string, string>>): Record<string, string> {
  const kibi = (name: string): number => Number(capacity[name]!.replace('Ki', ''));
  return {
    ...capacity,
    memory: `${kibi('memory') - 102_400}Ki`,
    'ephemeral-storage': String(Math.floor(kibi('ephemeral-storage') * 1024 * 0.9)),
  };
}
