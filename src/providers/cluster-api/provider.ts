// SPDX-License-Identifier: Apache-2.0
// Cluster API: a cloud whose machines are made by the MachineDeployments and MachineSets of a management cluster.
import { type ClusterApiNodeClass, clusterApiNodeClassKind } from '../../api/cluster-api-node-class.ts';
import { readyCondition } from '../../api/conditions.ts';
import { labels as wellKnown } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import type { Clock } from '../../base/clock.ts';
import { planted } from '../../base/defects.ts';
import { chain, compareStrings } from '../../base/order.ts';
import {
  CreateError,
  InsufficientCapacityError,
  NodeClaimNotFoundError,
  NodeClassNotReadyError,
} from '../../cloud/errors.ts';
import type { CloudProvider, Instance, InstanceType, RegistrationHook, RepairPolicy } from '../../cloud/provider.ts';
import { kinds } from '../../kube/kinds.ts';
import { keyOf } from '../../kube/object.ts';
import { Quantity } from '../../kube/quantity.ts';
import type { Cluster } from '../../runtime/clusters.ts';
import type { Logger } from '../../runtime/logging.ts';
import { Metrics } from '../../runtime/metrics.ts';
import { conflict, requirementsOf } from '../../scheduling/requirements.ts';
import { Binder, ownerKeyOf } from './binder.ts';
import { type Catalog, type Choice, catalogOf, knowsTaints, type Member, type Members, nodeLabels } from './catalog.ts';
import { driftOf, driftReasons, templateHash } from './drift.ts';
import { repairPoliciesOf } from './health-checks.ts';
import type { Hub } from './hub.ts';
import { holdOf, instanceOf, type Target, targetOf } from './instances.ts';
import { creationProblemOf, failureOf, isDeleting, type Machine, type MachineTaint, providerIDOf } from './kinds.ts';
import { claimsOf, holds } from './ledger.ts';
import { MemberReader } from './members.ts';
import { annotations, capi, clusterApiLabelSet, memberLabel } from './names.ts';
import { isTemplateKey, makeMachine } from './orphans.ts';
import { Remover } from './remover.ts';
import { Scaler } from './scaler.ts';
import type { IsSynced } from './settings.ts';
import { toldLabels } from './shape.ts';
import { UnavailableMembers } from './unavailable.ts';

export interface ClusterApiProviderOptions {
  readonly hub: Hub;
  /** Where NodeClaims and ClusterAPINodeClasses live. */
  readonly karpenter: Cluster;
  /** Where Nodes appear. */
  readonly workload: Cluster;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: Metrics;
  /** Labels that Cluster API was told to copy from Machines to Nodes, besides those it always copies. */
  readonly isSynced?: IsSynced;
}

const minute = 60_000;
const usualRepairPolicies: readonly RepairPolicy[] = [
  { conditionType: 'Ready', conditionStatus: 'False', tolerationMs: 30 * minute },
  { conditionType: 'Ready', conditionStatus: 'Unknown', tolerationMs: 30 * minute },
];
/** How long one launch waits for its Machine before it says that it waits. */
const launchWaitMs = 5000;
/** How long a member may say that it cannot make Machines before it is believed. */
const patienceMs = 15_000;
/** A member that has made no Machine for so long is not for sale for a while once its NodeClaim is given up. */
const stuckMs = 2 * 60_000;

/**
 * Launching is recorded in the member's ledger in the same write that raises its replicas; launching again finds the
 * record. Removing takes the record out in the same write that lowers them. So each NodeClaim counts once, exactly.
 */
export class ClusterApiProvider implements CloudProvider {
  readonly name = 'clusterapi';
  readonly nodeClasses = [clusterApiNodeClassKind] as const;
  readonly labels = clusterApiLabelSet;
  readonly registrationHooks: readonly RegistrationHook[];
  readonly members: MemberReader;
  readonly #options: ClusterApiProviderOptions;
  readonly #scaler: Scaler;
  readonly #binder: Binder;
  readonly #remover: Remover;
  readonly #unavailable: UnavailableMembers;
  readonly #catalogs = new WeakMap<Members, Map<string, Catalog>>();
  #policies: { readonly checks: unknown; readonly version: number; readonly all: RepairPolicy[] } | undefined;
  /** Since when this process waits for a NodeClaim's Machine. */
  readonly #waiting = new Map<string, number>();

  constructor(options: ClusterApiProviderOptions) {
    this.#options = options;
    const { hub, karpenter, workload, clock, log, metrics = new Metrics() } = options;
    this.members = new MemberReader({ hub, karpenter, clock, isSynced: options.isSynced });
    this.#scaler = new Scaler({ hub, clock, log, metrics });
    this.#binder = new Binder({ hub, scaler: this.#scaler, karpenter, clock, log, metrics });
    this.#remover = new Remover({ hub, scaler: this.#scaler, clock, log });
    this.#unavailable = new UnavailableMembers(clock);
    this.registrationHooks = [initializedHook(workload)];
  }

  /** Follows the MachineHealthChecks there are. */
  get repairPolicies(): readonly RepairPolicy[] {
    const { hub } = this.#options;
    const checks = hub.healthChecks();
    if (checks.length === 0) return usualRepairPolicies;
    if (this.#policies?.checks !== checks || this.#policies.version !== hub.version) {
      const all = repairPoliciesOf(usualRepairPolicies, checks, hub.scalables());
      this.#policies = { checks, version: hub.version, all };
    }
    return this.#policies.all;
  }

  async create(claim: NodeClaim, signal: AbortSignal): Promise<Instance> {
    await this.#ready(signal);
    const uid = claim.metadata.uid ?? '';
    let machine = this.#machineOfClaim(claim);
    let key = machine ? ownerKeyOf(machine) : this.#holder(uid);
    if (!machine && (key === undefined || planted('cluster-api-raises-again'))) key = await this.#raise(claim, signal);
    else if (machine && key !== undefined && isTemplateKey(key) && !providerIDOf(machine)) {
      // A crash may have left the Machine without what it refers to.
      await this.#makeOrphan(key, claim, signal);
    }
    if (key === undefined) throw new InsufficientCapacityError('the Machine belongs to nothing that could be scaled');
    const started = this.#waiting.get(uid) ?? this.#options.clock.monotonic();
    this.#waiting.set(uid, started);
    const deadline = this.#options.clock.monotonic() + launchWaitMs;
    this.#binder.want(claim);
    for (;;) {
      machine = this.#machineOfClaim(claim);
      const failure = this.#failureOf(machine, key, started);
      if (failure !== undefined) return this.#giveUp(claim, key, failure, signal);
      if (machine && providerIDOf(machine)) {
        this.#waiting.delete(uid);
        await this.#binder.forget(uid);
        return this.#instance(machine, claim, signal);
      }
      const left = deadline - this.#options.clock.monotonic();
      if (left <= 0) throw waiting(key, machine);
      await this.#binder.change(uid, left, signal);
      signal.throwIfAborted();
    }
  }

  async delete(claim: NodeClaim, signal: AbortSignal): Promise<void> {
    await this.#ready(signal);
    const uid = claim.metadata.uid ?? '';
    const waitedSince = this.#waiting.get(uid);
    this.#waiting.delete(uid);
    await this.#binder.forget(uid);
    const target = targetOf(claim.status?.providerID ?? '');
    const machine = this.#find(target, uid);
    const holder = target.kind === 'hold' ? target.member : this.#holder(uid);
    // Nothing on it says why: a Machine that is being drained is still one of its replicas, say, and the pods that would let it go wait for
    // the new one. Whoever comes next looks elsewhere.
    const isStuck = waitedSince !== undefined && this.#options.clock.monotonic() - waitedSince >= stuckMs;
    if (isStuck && !machine && holder !== undefined) this.#unavailable.mark(holder);
    const isSettled = await this.#remover.remove({ uid, machine, holder }, signal);
    if (!machine && isSettled)
      throw new NodeClaimNotFoundError(`the Machine of NodeClaim ${claim.metadata.name} is gone`);
  }

  async get(providerID: string, signal: AbortSignal): Promise<Instance> {
    await this.#ready(signal);
    const machine = this.#find(targetOf(providerID), undefined);
    if (!machine) throw new NodeClaimNotFoundError(`there is no Machine with provider id ${providerID}`);
    return instanceOf(machine, (await this.members.all(signal)).get(ownerKeyOf(machine) ?? ''));
  }

  async list(signal: AbortSignal): Promise<readonly Instance[]> {
    const { hub } = this.#options;
    if (hub.isEmpty) return [];
    await this.#ready(signal);
    const members = await this.members.all(signal);
    const ours = hub.view.machines
      .list()
      .filter(({ metadata }) => metadata.annotations?.[annotations.claimCluster] === hub.identity);
    const instances = ours.map((machine) => instanceOf(machine, members.get(ownerKeyOf(machine) ?? '')));
    const found = new Set(instances.map(({ nodeClaim }) => nodeClaim?.uid));
    for (const key of this.#options.hub.scalableKeys()) {
      for (const uid of claimsOf(this.#scaler.ledger(key))) if (!found.has(uid)) instances.push(holdOf(key, uid));
    }
    return instances.sort((a, b) => compareStrings(a.providerID, b.providerID));
  }

  async instanceTypes(pool: NodePool, signal: AbortSignal): Promise<readonly InstanceType[]> {
    await this.#ready(signal);
    const { template } = pool.spec;
    const nodeClass = this.#nodeClass(template.spec.nodeClassRef.name);
    return this.#catalog(await this.members.read(nodeClass, signal), taintsOf(template.spec)).types;
  }

  /** Resolves when both clusters have been read: a NodeClass that was not read yet must not be taken for missing. */
  async #ready(signal: AbortSignal): Promise<void> {
    await this.#options.hub.ready(signal);
    const { nodeClasses } = this.members;
    if (!nodeClasses.hasSynced) await nodeClasses.waitForSync(signal);
  }

  /** The catalogue of members, worked out once for all who ask with the same taints. */
  #catalog(members: Members, taints: readonly MachineTaint[]): Catalog {
    const key = JSON.stringify([taints, this.#unavailable.signature]);
    let known = this.#catalogs.get(members);
    if (!known) {
      known = new Map();
      this.#catalogs.set(members, known);
    }
    let catalog = known.get(key);
    if (!catalog) {
      catalog = catalogOf(members.valid, { taints, isUnavailable: (member) => this.#unavailable.has(member) });
      known.set(key, catalog);
    }
    return catalog;
  }

  async driftReason(claim: NodeClaim, signal: AbortSignal): Promise<string> {
    const { hub } = this.#options;
    await this.#ready(signal);
    const nodeClass = this.members.nodeClasses.get(claim.spec.nodeClassRef.name);
    const machine = this.#find(targetOf(claim.status?.providerID ?? ''), claim.metadata.uid);
    if (!machine || isDeleting(machine) || !nodeClass || nodeClass.spec?.drift === 'Defer') return '';
    const key = ownerKeyOf(machine) ?? '';
    const { valid, invalid } = await this.members.read(nodeClass, signal);
    const owner = hub.scalable(key);
    if (!owner) return '';
    const member = valid.find((candidate) => candidate.key === key);
    if (!member && !invalid.some((candidate) => candidate.key === key)) return driftReasons.member;
    if (member && areLabelsOther(member, claim)) return driftReasons.labels;
    return driftOf(hub, machine, owner, signal);
  }

  /** Chooses a member and raises it, the next best one when the first has no room after all. */
  async #raise(claim: NodeClaim, signal: AbortSignal): Promise<string> {
    const nodeClass = this.#readyNodeClass(claim.spec.nodeClassRef.name);
    const uid = claim.metadata.uid ?? '';
    const { choices } = this.#catalog(await this.members.read(nodeClass, signal), taintsOf(claim.spec));
    const adopt = nodeClass.spec?.machineAdoption === 'IfUnclaimed';
    for (const { member } of choices.filter((choice) => fits(choice, claim)).sort(cheapestFirst)) {
      if (isTemplateKey(member.key)) {
        await this.#makeOrphan(member.key, claim, signal);
        return member.key;
      }
      const outcome = await this.#scaler.enter(member.key, { kind: 'raise', uid, adopt });
      if (outcome === 'done') return member.key;
      // It would be tried again at once: nothing about the member itself says that it cannot.
      if (outcome === 'overfull') this.#unavailable.mark(member.key);
    }
    throw new InsufficientCapacityError(
      `none of ${choices.length} MachineDeployments and MachineSets of ClusterAPINodeClass ${nodeClass.metadata.name} fits and has room`,
    );
  }

  /** The Machine of a NodeClaim straight from a template, or what is missing of it. */
  async #makeOrphan(key: string, claim: NodeClaim, signal: AbortSignal): Promise<void> {
    const { hub } = this.#options;
    await hub.templates(signal);
    const template = hub.scalable(key);
    if (!template) throw new InsufficientCapacityError(`${key} is gone`);
    const hash = await templateHash(hub, template.spec?.template?.spec, template.metadata.namespace ?? '', signal);
    this.#binder.remember(await makeMachine({ hub, key, template, claim, hash }, signal));
  }

  #failureOf(machine: Machine | undefined, key: string, started: number): string | undefined {
    if (machine) return failureOf(machine);
    const owner = this.#scaler.object(key);
    if (!owner) return `${key} is gone`;
    const problem = creationProblemOf(owner) ?? this.#setProblem(key);
    return this.#options.clock.monotonic() - started >= patienceMs ? problem : undefined;
  }

  /** The MachineSets of a MachineDeployment say first what is wrong. */
  #setProblem(key: string): string | undefined {
    const [kind, namespace, name] = key.split('/');
    if (kind !== 'MachineDeployment') return undefined;
    const sets = this.#options.hub.view.sets
      .list()
      .filter(({ metadata }) => metadata.namespace === namespace && metadata.labels?.[capi.deploymentName] === name);
    return sets.map(creationProblemOf).find((problem) => problem !== undefined);
  }

  /** Takes everything back, durably, before the NodeClaim is told that there is nothing to be had. */
  async #giveUp(claim: NodeClaim, key: string, why: string, signal: AbortSignal): Promise<never> {
    const uid = claim.metadata.uid ?? '';
    this.#unavailable.mark(key);
    await this.#binder.forget(uid);
    await this.#remover.remove({ uid, machine: this.#machineOfClaim(claim), holder: key, now: true }, signal);
    this.#waiting.delete(uid);
    throw new InsufficientCapacityError(`${key} could not make a machine: ${why}`);
  }

  async #instance(machine: Machine, claim: NodeClaim, signal: AbortSignal): Promise<Instance> {
    const nodeClass = this.members.nodeClasses.get(claim.spec.nodeClassRef.name);
    const key = ownerKeyOf(machine);
    const { valid } = nodeClass ? await this.members.read(nodeClass, signal) : { valid: [] };
    return instanceOf(
      machine,
      valid.find((member) => member.key === key),
    );
  }

  #nodeClass(name: string): ClusterApiNodeClass {
    const nodeClass = this.members.nodeClasses.get(name);
    if (!nodeClass || isDeleting(nodeClass)) {
      throw new NodeClassNotReadyError(
        `ClusterAPINodeClass ${name} ${nodeClass ? 'is being deleted' : 'does not exist'}`,
      );
    }
    return nodeClass;
  }

  /** As `#nodeClass`, and nothing is known to be wrong with it: whoever buys needs that, whoever only looks does not. */
  #readyNodeClass(name: string): ClusterApiNodeClass {
    const nodeClass = this.#nodeClass(name);
    const ready = nodeClass.status?.conditions?.find(({ type }) => type === readyCondition);
    if (ready?.status === 'False' && ready.observedGeneration === nodeClass.metadata.generation) {
      throw new NodeClassNotReadyError(`ClusterAPINodeClass ${name} is not ready: ${ready.message}`);
    }
    return nodeClass;
  }

  /** The Machine of a NodeClaim: by its UID, or as the upstream provider recorded it. */
  #machineOfClaim(claim: NodeClaim): Machine | undefined {
    if (planted('cluster-api-binds-twice')) {
      const any = this.#options.hub.machinesOf(this.#holder(claim.metadata.uid ?? '') ?? '').find(providerIDOf);
      if (any) return any;
    }
    const own = this.#binder.machineOf(claim.metadata.uid ?? '');
    const recorded = claim.metadata.annotations?.[capi.upstreamMachine];
    if (own || recorded === undefined) return own;
    const machine = this.#options.hub.view.machines.get(recorded.trim());
    const isFree = machine?.metadata.annotations?.[annotations.claimUid] === undefined;
    return machine && isFree && machine.metadata.labels?.[memberLabel] !== undefined ? machine : undefined;
  }

  /** What a request is about. A Machine that is somebody else's, or nobody's of Karpenter, is never found. */
  #find(target: Target, uid: string | undefined): Machine | undefined {
    const { hub } = this.#options;
    const own = uid === undefined ? undefined : this.#binder.machineOf(uid);
    if (own || target.kind === 'hold') return own;
    const machine =
      target.kind === 'machine' ? hub.view.machines.get(target.key) : hub.machineByProviderID(target.providerID);
    if (!machine) return undefined;
    const { annotations: marks = {}, labels = {} } = machine.metadata;
    const owner = marks[annotations.claimUid];
    if (owner === undefined) return labels[memberLabel] === undefined ? undefined : machine;
    if (marks[annotations.claimCluster] !== hub.identity) return undefined;
    return uid === undefined || owner === uid ? machine : undefined;
  }

  /** The member whose ledger holds a NodeClaim. */
  #holder(uid: string): string | undefined {
    return uid === ''
      ? undefined
      : this.#options.hub.scalableKeys().find((key) => holds(this.#scaler.ledger(key), uid));
  }
}

function waiting(key: string, machine: Machine | undefined): CreateError {
  const message = machine
    ? `Machine ${keyOf(machine)} has no provider id yet`
    : `${key} was raised and has not made the Machine yet`;
  return new CreateError(message, { reason: machine ? 'WaitingForProviderID' : 'WaitingForMachine', message });
}

function taintsOf(spec: { readonly taints?: unknown; readonly startupTaints?: unknown }): MachineTaint[] {
  return [
    ...((spec.taints as MachineTaint[] | undefined) ?? []),
    ...((spec.startupTaints as MachineTaint[] | undefined) ?? []),
  ];
}

/** Whether a member's machines serve a NodeClaim. */
function fits({ member, type, offering, available }: Choice, claim: NodeClaim): boolean {
  if (!available) return false;
  if (!knowsTaints(member.shape.taints, taintsOf(claim.spec))) return false;
  const wanted = requirementsOf(claim.spec.requirements, clusterApiLabelSet);
  const given = requirementsOf([...type.requirements, ...offering.requirements], clusterApiLabelSet);
  if (conflict(wanted, given) !== undefined) return false;
  return Object.entries(claim.spec.resources?.requests ?? {}).every(
    ([name, amount]) => Quantity.parse(member.allocatable[name] ?? '0').cmp(Quantity.parse(amount)) >= 0,
  );
}

/**
 * Whether the member tells other labels of its machines now than the NodeClaim got. Those of the template are Cluster API's
 * to change in place; an instance type that is gone is noticed as such.
 */
function areLabelsOther(member: Member, claim: NodeClaim): boolean {
  const now = nodeLabels(member);
  return Object.keys(toldLabels(member.object)).some(
    (key) => key !== wellKnown.instanceType && now[key] !== claim.metadata.labels?.[key],
  );
}

const sizeOf = ({ member }: Choice, resource: string): number =>
  Quantity.parse(member.shape.capacity[resource] ?? '0').toNumber();

/** By price, then the smaller machine, then by name. */
const cheapestFirst = chain<Choice>(
  (a, b) => a.member.price.amount - b.member.price.amount,
  (a, b) => sizeOf(a, 'cpu') - sizeOf(b, 'cpu'),
  (a, b) => sizeOf(a, 'memory') - sizeOf(b, 'memory'),
  (a, b) => compareStrings(a.member.key, b.member.key),
);

const byProviderID = 'clusterApiNodeProviderID';

/** A Node counts as registered once Cluster API has put its labels on it and taken its own taint off. */
function initializedHook(workload: Cluster): RegistrationHook {
  const nodes = workload.informers.get(kinds.Node);
  nodes.addIndex(byProviderID, (node) => node.spec?.providerID || undefined);
  return {
    name: 'cluster-api',
    registered: (claim) => {
      const [node] = nodes.byIndex(byProviderID, claim.status?.providerID ?? '');
      const isWaiting = node?.spec?.taints?.some(({ key }) => key === capi.uninitializedTaint) ?? false;
      return Promise.resolve(isWaiting ? { requeueAfterMs: 1000 } : { done: true });
    },
  };
}
