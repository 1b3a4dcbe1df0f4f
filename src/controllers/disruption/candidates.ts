// SPDX-License-Identifier: Apache-2.0
// Which machines may be disrupted at all, whatever the reason; and why the others may not.
import { annotations, labels } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import { planted } from '../../base/defects.ts';
import type { InstanceType } from '../../cloud/provider.ts';
import type { Node, Pod } from '../../kube/kinds.ts';
import { keyOf } from '../../kube/object.ts';
import type { PdbLimits } from '../../state/pdb-limits.ts';
import { evictionCost, isDisruptable, isReschedulable } from '../../state/pod-predicates.ts';
import type { PoolCatalog } from '../../state/pool-catalog.ts';
import type { StateNode } from '../../state/state-node.ts';
import type { Machines } from './snapshot.ts';

/**
 * `graceful` disruption never goes against what protects pods. `eventual` disruption begins in spite of it where the
 * NodeClaim has a terminationGracePeriod, which ends the wait.
 */
export type DisruptionClass = 'graceful' | 'eventual';

/** A machine that may be disrupted. */
export interface Candidate {
  readonly machine: StateNode;
  readonly node: Node;
  readonly nodeClaim: NodeClaim;
  readonly nodePool: NodePool;
  /** Undefined when its cloud does not sell it any more. */
  readonly instanceType: InstanceType | undefined;
  /** Per hour; 0 when it is not known. */
  readonly price: number;
  /** The pods that need a place elsewhere when it goes. */
  readonly reschedulablePods: readonly Pod[];
  /** What it costs to move them: 1 for the machine itself, and what each pod costs unless that is negative. */
  readonly rescheduleCost: number;
}

/** A machine of ours that may not be disrupted. */
export interface BlockedMachine {
  readonly machine: StateNode;
  readonly why: string;
}

export interface CandidateOptions {
  readonly machines: Machines;
  readonly catalog: PoolCatalog;
  readonly pdbs: PdbLimits;
  readonly now: number;
  readonly disruptionClass: DisruptionClass;
  /** Whether a command is about the machine already, by its key. */
  readonly isQueued: (key: string) => boolean;
  /** What was found for another class of disruption a moment ago: the same goes for machines that both treat alike. */
  readonly known?: Map<StateNode, Candidate | string>;
}

/** No pod on it costs anything to move. */
export function isEmpty(candidate: Candidate): boolean {
  return candidate.rescheduleCost <= machineCost;
}

/** The price saved for each unit of disturbance. */
export function savingsRatio(candidate: Candidate): number {
  return candidate.price / candidate.rescheduleCost;
}

const nominated = 'Node is nominated for a pending pod';

/** What it costs to disrupt a machine, beside its pods. */
const machineCost = 1;

/** Looks at every machine. Nodes that are not ours, and those a command is about, are passed over in silence. */
export function findCandidates(options: CandidateOptions): {
  readonly candidates: Candidate[];
  readonly blocked: BlockedMachine[];
} {
  const { machines, catalog, isQueued } = options;
  const pools = new Map(catalog.pools.map((pool) => [pool.metadata.name ?? '', pool]));
  const types = new TypesByName(catalog);
  const awaited = machines.awaitedClaims();
  const candidates: Candidate[] = [];
  const blocked: BlockedMachine[] = [];
  for (const machine of machines.nodes()) {
    if (!machine.nodeClaim || isQueued(machine.key)) continue;
    const found = options.known?.get(machine) ?? candidateOf(machine, pools, types, options);
    if (machine.nodeClaim.spec.terminationGracePeriod === undefined) options.known?.set(machine, found);
    if (typeof found === 'string') blocked.push({ machine, why: found });
    else if (awaited.has(machine.nodeClaim.metadata.name ?? '')) blocked.push({ machine, why: nominated });
    else candidates.push(found);
  }
  return { candidates, blocked };
}

function candidateOf(
  machine: StateNode,
  pools: ReadonlyMap<string, NodePool>,
  types: TypesByName,
  options: CandidateOptions,
): Candidate | string {
  const { node, nodeClaim } = machine;
  if (!node || !nodeClaim) return 'Nodeclaim does not have an associated node';
  const why = whyMachineBlocked(machine, node, options.machines);
  if (why !== undefined) return why;
  const poolName = machine.nodePool ?? '';
  const nodePool = pools.get(poolName);
  if (!nodePool || !types.has(poolName)) return `NodePool not found (NodePool=${poolName})`;
  const pods = podsOf(machine);
  const mayWaitForPods = options.disruptionClass === 'eventual' && nodeClaim.spec.terminationGracePeriod !== undefined;
  const held = mayWaitForPods ? undefined : whyPodsBlock(pods, options);
  if (held !== undefined) return held;
  const { reschedulable: reschedulablePods, rescheduleCost } = pods;
  const instanceType = types.get(poolName, machine.labels[labels.instanceType] ?? '');
  return {
    machine,
    node,
    nodeClaim,
    nodePool,
    instanceType,
    price: priceOf(instanceType, machine.labels) * (planted('moves-for-nothing') ? 2 : 1),
    reschedulablePods,
    rescheduleCost,
  };
}

/** What the pods of a machine say of it by themselves, whatever the time and the rest of the cluster. */
interface PodsOfMachine {
  readonly all: readonly Pod[];
  /** Those that may protect themselves. */
  readonly annotated: readonly Pod[];
  readonly reschedulable: readonly Pod[];
  readonly rescheduleCost: number;
}

/** The pods of a machine that may protect themselves by their annotation. */
export function annotatedPodsOf(machine: StateNode): readonly Pod[] {
  return podsOf(machine).annotated;
}

/** Every pass looks at every machine, and nearly all have the pods they had: a machine gives the same list until they change. */
const known = new WeakMap<Iterable<Pod>, PodsOfMachine>();

function podsOf(machine: StateNode): PodsOfMachine {
  const list = machine.pods();
  let pods = known.get(list);
  if (!pods) {
    const all = Object.freeze([...list]);
    const reschedulable = all.filter(isReschedulable);
    pods = {
      all,
      annotated: all.filter(({ metadata }) => metadata.annotations?.[annotations.doNotDisrupt] !== undefined),
      reschedulable,
      rescheduleCost: reschedulable.reduce((sum, pod) => sum + Math.max(0, evictionCost(pod)), machineCost),
    };
    known.set(list, pods);
  }
  return pods;
}

function whyMachineBlocked(machine: StateNode, node: Node, machines: Machines): string | undefined {
  if (!machine.initialized) return "Node isn't initialized";
  if (machine.markedForDeletion || node.metadata.deletionTimestamp !== undefined)
    return 'Node is deleting or marked for deletion';
  if (machines.isNominated(machine.key)) return nominated;
  if (machine.annotations[annotations.doNotDisrupt] === 'true')
    return `Disruption is blocked through the "${annotations.doNotDisrupt}" annotation`;
  if (machine.nodePool === undefined) return `Node doesn't have required label (label=${labels.nodePool})`;
  return undefined;
}

/** What keeps pods on their node: their own annotation (daemons and static pods count, too) or a disruption budget. */
function whyPodsBlock({ all, annotated }: PodsOfMachine, { pdbs, now }: CandidateOptions): string | undefined {
  const pod = annotated.find((of) => !isDisruptable(of, now));
  if (pod) return `Pod has "${annotations.doNotDisrupt}" annotation (Pod=${keyOf(pod)})`;
  const budgets = pdbs.firstBlocked(all, now)?.budgets;
  if (!budgets) return undefined;
  const names = budgets.join(', ');
  return budgets.length > 1
    ? `Eviction does not support multiple PDBs (PodDisruptionBudget(s)=[${names}])`
    : `Pdb prevents pod evictions (PodDisruptionBudget=[${names}])`;
}

/** The price of the machine itself: of the offering with its zone and capacity type, on sale or not. */
export function priceOf(type: InstanceType | undefined, own: Readonly<Record<string, string>>): number {
  let price: number | undefined;
  for (const offering of type?.offerings ?? [])
    if (Number.isFinite(offering.price) && isOf(offering, own))
      price = Math.min(price ?? offering.price, offering.price);
  return price ?? 0;
}

function isOf({ requirements }: InstanceType['offerings'][number], own: Readonly<Record<string, string>>): boolean {
  for (const { key, values } of requirements)
    if ((key === labels.zone || key === labels.capacityType) && values?.includes(own[key] ?? '') !== true) return false;
  return true;
}

/** Instance types of pools by name. Lists keep their identity between passes as long as a cloud sells the same. */
export class TypesByName {
  readonly #catalog: PoolCatalog;

  constructor(catalog: PoolCatalog) {
    this.#catalog = catalog;
  }

  /** Whether anything is known about what the pool can buy. */
  has(pool: string): boolean {
    return this.#of(pool).length > 0;
  }

  get(pool: string, name: string): InstanceType | undefined {
    const types = this.#of(pool);
    let byName = indexes.get(types);
    if (!byName) {
      byName = new Map(types.map((type) => [type.name, type]));
      indexes.set(types, byName);
    }
    return byName.get(name);
  }

  ofMachine({ nodePool, labels: own }: StateNode): InstanceType | undefined {
    return this.get(nodePool ?? '', own[labels.instanceType] ?? '');
  }

  #of(pool: string): readonly InstanceType[] {
    return this.#catalog.instanceTypes[pool] ?? [];
  }
}

const indexes = new WeakMap<readonly InstanceType[], Map<string, InstanceType>>();
