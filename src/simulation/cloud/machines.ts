// SPDX-License-Identifier: Apache-2.0
// Machines of a scripted cloud as the cluster sees them: each becomes a Node after a while, falls silent when it goes, and
// its Node is swept away some time later, as a cloud-controller-manager would do.
import { labels } from '../../api/labels.ts';
import { unregisteredTaint } from '../../api/taints.ts';
import type { VirtualClock } from '../../base/clock.ts';
import { ignoreNotFound, isAlreadyExists } from '../../kube/api-error.ts';
import type { KubeClient } from '../../kube/client.ts';
import { kinds, type Node } from '../../kube/kinds.ts';
import { Quantity } from '../../kube/quantity.ts';
import { formatTime } from '../../kube/time.ts';
import type { Machine } from './ledger.ts';

/** The embedded kubelet plays Nodes that carry it with the value `fake`. */
const kubeletAnnotation = 'kwok.x-k8s.io/node';
const stopped = 'stopped';

/** Whether the machine behind a Node is gone. */
export function isSilent({ metadata }: Node): boolean {
  return metadata.annotations?.[kubeletAnnotation] === stopped;
}

/** From the end of a machine until somebody notices that its Node has none; and often nobody does. */
const sweepMs = 240_000;
const silentConditions = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'] as const;

export class MachineNodes {
  readonly #clock: VirtualClock;
  readonly #workload: KubeClient;

  constructor(clock: VirtualClock, workload: KubeClient) {
    this.#clock = clock;
    this.#workload = workload;
  }

  /** The machine becomes a Node: once more under another name when it has become one already. */
  async join(machine: Machine, { lies = false } = {}): Promise<void> {
    if (machine.goneAt !== undefined || machine.deletingAt !== undefined) return;
    const name = machine.nodes.length === 0 ? machine.name : `${machine.name}-again`;
    machine.nodes.push(name);
    const status = {
      capacity: { ...machine.capacity },
      allocatable: lies ? shrunk(machine.allocatable) : { ...machine.allocatable },
    };
    const node: Node = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name,
        labels: { ...machine.labels, [labels.hostname]: name },
        annotations: { [kubeletAnnotation]: 'fake' },
      },
      spec: { providerID: machine.providerID, taints: [{ ...unregisteredTaint }] },
      status,
    };
    try {
      await this.#workload.resource(kinds.Node).create(node);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }

  /** Nothing runs on it any more: its Nodes fall silent. They are left to the autoscaler, or `swept` away later. */
  async end(machine: Machine, swept: boolean): Promise<void> {
    for (const name of machine.nodes) await silence(this.#workload, this.#clock, name);
    if (machine.nodes.length === 0 || !swept) return;
    this.#clock.after(sweepMs, () => void this.#sweep(machine));
  }

  async #sweep(machine: Machine): Promise<void> {
    for (const name of machine.nodes) await ignoreNotFound(this.#workload.resource(kinds.Node).delete(name));
  }
}

/** Nothing runs behind a Node any more: it falls silent, as if minutes had passed. */
export async function silence(workload: KubeClient, clock: VirtualClock, name: string): Promise<void> {
  const nodes = workload.resource(kinds.Node);
  const node = await ignoreNotFound(nodes.get(name));
  if (!node) return;
  await ignoreNotFound(nodes.patch(name, { metadata: { annotations: { [kubeletAnnotation]: stopped } } }));
  const lastTransitionTime = formatTime(clock.now());
  const unknown = silentConditions.map((type) => ({
    type,
    status: 'Unknown',
    reason: 'KubeletStopped',
    message: 'Kubelet stopped posting node status.',
    lastTransitionTime,
  }));
  const others = (node.status?.conditions ?? []).filter(({ type }) => !silentConditions.includes(type as 'Ready'));
  await ignoreNotFound(nodes.patchStatus(name, { status: { conditions: [...others, ...unknown] } }));
}

/** A tenth less of everything that is counted in parts. */
function shrunk(resources: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(resources).map(([name, amount]) => {
      const { nano, format } = Quantity.parse(amount);
      return [name, name === 'pods' ? amount : Quantity.fromNano((nano / 10n) * 9n, format).toString()];
    }),
  );
}
