// SPDX-License-Identifier: Apache-2.0
// A cloud for tests: sells what it is told to sell, fails when it is told to fail, and remembers what it was asked.
import { kwokNodeClassKind } from '../../api/kwok-node-class.ts';
import { capacityTypes, commonLabelSet, type LabelSet, labels } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import { unregisteredTaint } from '../../api/taints.ts';
import type { Clock } from '../../base/clock.ts';
import { InsufficientCapacityError, NodeClaimNotFoundError } from '../../cloud/errors.ts';
import type { CloudProvider, Instance, InstanceType, RegistrationHook, RepairPolicy } from '../../cloud/provider.ts';
import { isAlreadyExists } from '../../kube/api-error.ts';
import type { KubeClient } from '../../kube/client.ts';
import { kinds, type Node } from '../../kube/kinds.ts';
import type { KubeObject, ResourceType } from '../../kube/object.ts';
import { formatTime } from '../../kube/time.ts';
import { compatible, type Requirement, requirementsOf } from '../../scheduling/requirements.ts';

const scheme = 'fake://';
const zones = ['zone-a', 'zone-b', 'zone-c'];

/** A machine of so many CPUs, with twice as many Gi of memory, in three zones, spot at 60 % of the price. */
export function instanceType(cpus: number, parts: Partial<InstanceType> = {}): InstanceType {
  const name = parts.name ?? `c-${cpus}x`;
  return {
    name,
    requirements: [
      { key: labels.instanceType, operator: 'In', values: [name] },
      { key: labels.arch, operator: 'In', values: ['amd64'] },
      { key: labels.os, operator: 'In', values: ['linux'] },
      { key: labels.zone, operator: 'In', values: zones },
      { key: labels.capacityType, operator: 'In', values: [capacityTypes.onDemand, capacityTypes.spot] },
    ],
    offerings: zones.flatMap((zone) =>
      [capacityTypes.onDemand, capacityTypes.spot].map((capacityType) => ({
        requirements: [
          { key: labels.zone, operator: 'In', values: [zone] },
          { key: labels.capacityType, operator: 'In', values: [capacityType] },
        ],
        price: cpus * (capacityType === capacityTypes.spot ? 0.06 : 0.1),
      })),
    ),
    capacity: { cpu: String(cpus), memory: `${cpus * 2}Gi`, pods: '110', 'ephemeral-storage': '20Gi' },
    ...parts,
  };
}

export interface FakeCloudOptions {
  /** Where its machines become Nodes. */
  readonly workload: KubeClient;
  readonly clock: Clock;
  /** Another one beside the first: its name, and the NodeClass it serves. */
  readonly name?: string;
  readonly nodeClass?: ResourceType<KubeObject>;
}

/** Sees each call that changes something, and decides what becomes of it: it may lose the answer, or never give one. */
export type CallHandler = <R>(call: () => Promise<R>, method: 'create' | 'delete') => Promise<R>;

type Method = 'create' | 'delete' | 'get' | 'list' | 'instanceTypes' | 'driftReason';

/** The pretended cloud. Serves KWOKNodeClass, whose CRD every test cluster has. */
export class FakeCloud implements CloudProvider {
  readonly name: string;
  readonly nodeClasses: CloudProvider['nodeClasses'];
  labels: LabelSet = commonLabelSet;
  repairPolicies: readonly RepairPolicy[] = [];
  disruptionReasons: readonly string[] = [];
  registrationHooks: readonly RegistrationHook[] = [];
  /** What it sells; a pool may have a list of its own in `typesOfPool`. */
  types: readonly InstanceType[] = [1, 2, 4, 8, 16, 32].map((cpus) => instanceType(cpus));
  readonly typesOfPool = new Map<string, readonly InstanceType[]>();
  /** Machines that exist, by provider id. Tests may add and take away. */
  readonly instances = new Map<string, Instance>();
  /** The ids of all machines that were ever launched. */
  readonly launched: string[] = [];
  /** Why machines are no longer what they should be, by provider id. */
  readonly drift = new Map<string, string>();
  /** Whether a launched machine becomes a Node by itself. */
  nodesAppear = true;
  /** Whether a deleted machine is gone at once; otherwise it lingers until `finishDeletions`. */
  deletesAtOnce = true;
  /** What it sells is told when this resolves. */
  tellsTypesAfter: Promise<void> = Promise.resolve();
  /** Every call, in order: the method and the name or id it was about. */
  readonly calls: { readonly method: Method; readonly of: string }[] = [];
  readonly #options: FakeCloudOptions;
  readonly #failures = new Map<Method, unknown[]>();
  #handler: CallHandler = (call) => call();

  constructor(options: FakeCloudOptions) {
    this.#options = options;
    this.name = options.name ?? 'fake';
    this.nodeClasses = [options.nodeClass ?? (kwokNodeClassKind as ResourceType<KubeObject>)];
  }

  /** The next `times` calls of a method fail with this error. */
  fail(method: Method, error: unknown, times = 1): void {
    const queue = this.#failures.get(method) ?? [];
    for (let i = 0; i < times; i++) queue.push(error);
    this.#failures.set(method, queue);
  }

  /** Lets a handler carry out launches and deletions. */
  handleCalls(handler: CallHandler): void {
    this.#handler = handler;
  }

  create(claim: NodeClaim, signal: AbortSignal): Promise<Instance> {
    return this.#handler(() => this.#create(claim, signal), 'create');
  }

  async #create(claim: NodeClaim, signal: AbortSignal): Promise<Instance> {
    this.#called('create', claim.metadata.name ?? '', signal);
    const providerID = `${scheme}${claim.metadata.name}-${(claim.metadata.uid ?? '').slice(0, 8)}`;
    const existing = this.instances.get(providerID);
    if (existing) return existing;
    const instance = this.#launch(claim, providerID);
    this.instances.set(providerID, instance);
    this.launched.push(providerID);
    if (this.nodesAppear) await this.appear(providerID);
    return instance;
  }

  delete(claim: NodeClaim, signal: AbortSignal): Promise<void> {
    return this.#handler(() => this.#delete(claim, signal), 'delete');
  }

  async #delete(claim: NodeClaim, signal: AbortSignal): Promise<void> {
    const providerID = claim.status?.providerID ?? '';
    this.#called('delete', providerID, signal);
    const instance = this.instances.get(providerID);
    if (!instance) throw new NodeClaimNotFoundError(`machine ${providerID} is gone`);
    if (this.deletesAtOnce) this.instances.delete(providerID);
    else this.instances.set(providerID, { ...instance, deleting: true });
    return Promise.resolve();
  }

  /** Machines that were being deleted are gone. */
  finishDeletions(): void {
    for (const [id, { deleting }] of this.instances) if (deleting) this.instances.delete(id);
  }

  get(providerID: string, signal: AbortSignal): Promise<Instance> {
    return this.#answer('get', providerID, signal, () => {
      const instance = this.instances.get(providerID);
      if (!instance) throw new NodeClaimNotFoundError(`machine ${providerID} is gone`);
      return instance;
    });
  }

  list(signal: AbortSignal): Promise<readonly Instance[]> {
    return this.#answer('list', '', signal, () => [...this.instances.values()]);
  }

  async instanceTypes(pool: NodePool, signal: AbortSignal): Promise<readonly InstanceType[]> {
    const name = pool.metadata.name ?? '';
    await this.tellsTypesAfter;
    return this.#answer('instanceTypes', name, signal, () => this.typesOfPool.get(name) ?? this.types);
  }

  driftReason(claim: NodeClaim, signal: AbortSignal): Promise<string> {
    const providerID = claim.status?.providerID ?? '';
    return this.#answer('driftReason', providerID, signal, () => this.drift.get(providerID) ?? '');
  }

  /** The machine becomes a Node, as its kubelet would register it. */
  async appear(providerID: string, parts: Partial<Node> = {}): Promise<void> {
    const instance = this.instances.get(providerID)!;
    const name = providerID.slice(scheme.length);
    const now = formatTime(this.#options.clock.now());
    const node: Node = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name,
        labels: { ...instance.labels, [labels.hostname]: name },
        annotations: { 'kwok.x-k8s.io/node': 'fake' },
      },
      spec: { providerID, taints: [{ ...unregisteredTaint }] },
      status: {
        capacity: { ...instance.capacity },
        allocatable: { ...instance.allocatable },
        conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', lastTransitionTime: now }],
      },
      ...parts,
    };
    try {
      await this.#options.workload.resource(kinds.Node).create(node);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }

  #launch(claim: NodeClaim, providerID: string): Instance {
    const wanted = requirementsOf(claim.spec.requirements, this.labels);
    const all = new Set(wanted.keys());
    for (const type of cheapestFirst(
      this.typesOfPool.get(claim.metadata.labels?.[labels.nodePool] ?? '') ?? this.types,
    )) {
      const own = requirementsOf(type.requirements);
      if (!compatible(own, wanted, all)) continue;
      for (const offering of type.offerings) {
        const place = requirementsOf(offering.requirements);
        if (offering.available === false || !compatible(place, wanted, all)) continue;
        const resources = Object.fromEntries(Object.entries(type.capacity).map(([k, v]) => [k, String(v)]));
        return {
          providerID,
          labels: { ...singleValues(own), ...singleValues(place) },
          capacity: resources,
          allocatable: resources,
          nodeClaim: { name: claim.metadata.name ?? '', uid: claim.metadata.uid ?? '' },
          createdAt: formatTime(this.#options.clock.now()),
        };
      }
    }
    throw new InsufficientCapacityError('no machine of the wanted kinds is for sale');
  }

  #called(method: Method, of: string, signal: AbortSignal): void {
    signal.throwIfAborted();
    this.calls.push({ method, of });
    const failure = this.#failures.get(method)?.shift();
    if (failure !== undefined) throw failure;
  }

  async #answer<R>(method: Method, of: string, signal: AbortSignal, answer: () => R): Promise<R> {
    // As over a network: never in the caller's own turn.
    await Promise.resolve();
    this.#called(method, of, signal);
    return answer();
  }
}

function cheapestFirst(types: readonly InstanceType[]): InstanceType[] {
  const price = ({ offerings }: InstanceType): number => Math.min(...offerings.map((offering) => offering.price));
  return types.toSorted((a, b) => price(a) - price(b));
}

function singleValues(requirements: ReadonlyMap<string, Requirement>): Record<string, string> {
  const values: Record<string, string> = {};
  for (const [key, requirement] of requirements) {
    if (!requirement.complement && requirement.values.size === 1) values[key] = [...requirement.values][0]!;
  }
  return values;
}
