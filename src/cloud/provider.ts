// SPDX-License-Identifier: Apache-2.0
// The contract between the autoscaler and a cloud. Whoever implements it gets everything else for free; the suite in
// `conformance/` says whether an implementation keeps it.
import type { LabelSet } from '../api/labels.ts';
import type { NodeClaim } from '../api/node-claim.ts';
import type { NodePool } from '../api/node-pool.ts';
import type { KubeObject, ResourceType } from '../kube/object.ts';
import type { InstanceTypeSpec } from '../scheduling/problem.ts';

/** A machine that can be bought, with its offerings. Plain data: the scheduler's own vocabulary. */
export type InstanceType = InstanceTypeSpec;

/** A machine as its cloud sees it. */
export interface Instance {
  /** As the Node will carry it in `spec.providerID`. Unique over all clouds: it starts with a scheme of the cloud's own. */
  readonly providerID: string;
  readonly imageID?: string;
  /** Labels the machine is known to have: instance type, zone, capacity type and the cloud's own. */
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
  /** For which NodeClaim it was made, where the cloud can tell: an instance of a NodeClaim that is gone is an orphan. */
  readonly nodeClaim?: { readonly name: string; readonly uid: string };
  /** RFC 3339. */
  readonly createdAt?: string;
  /** On its way out. */
  readonly deleting?: boolean;
}

/** Replace a node when its condition `type` has been `status` for longer than it may. */
export interface RepairPolicy {
  readonly conditionType: string;
  readonly conditionStatus: 'True' | 'False' | 'Unknown';
  readonly tolerationMs: number;
}

/** Something that must happen before a node counts as registered. Every hook must be done; those that are not say when to ask again. */
export interface RegistrationHook {
  readonly name: string;
  registered(
    claim: NodeClaim,
    signal: AbortSignal,
  ): Promise<{ readonly done: true } | { readonly requeueAfterMs: number }>;
}

/**
 * One cloud. Methods may be called at the same time for different NodeClaims, and again after a crash: the NodeClaim's
 * UID is the token by which a provider finds what it has made already.
 */
export interface CloudProvider {
  /** Short and stable: a metric label and a word on the command line. */
  readonly name: string;
  /** The NodeClasses it serves; the first is the default. A NodePool belongs to this cloud if its reference names one. */
  readonly nodeClasses: readonly [ResourceType<KubeObject>, ...ResourceType<KubeObject>[]];
  /** What this cloud knows about labels, Kubernetes' own included. */
  readonly labels: LabelSet;
  /** The label by which reserved offerings name their reservation; none where there are no reservations. */
  readonly reservationLabel?: string;
  readonly repairPolicies: readonly RepairPolicy[];
  /** Reasons of its own for which this cloud wants nodes replaced: budgets may name them, NodeClaims show them. */
  readonly disruptionReasons?: readonly string[];
  readonly registrationHooks?: readonly RegistrationHook[];

  /**
   * Launches the machine of a NodeClaim, or gives the one launched for the same UID before. Throws
   * InsufficientCapacityError, NodeClassNotReadyError, CreateError; anything else is tried again.
   */
  create(claim: NodeClaim, signal: AbortSignal): Promise<Instance>;

  /**
   * Starts to remove the machine; resolves when the removal is under way, also when it was before. Throws
   * NodeClaimNotFoundError once the machine is gone: callers ask until it does.
   */
  delete(claim: NodeClaim, signal: AbortSignal): Promise<void>;

  /** The machine, also while it is being removed. Throws NodeClaimNotFoundError when it is gone. */
  get(providerID: string, signal: AbortSignal): Promise<Instance>;

  /** Every machine this cloud made for this cluster. One that cannot be read is left out of the list, never the rest. */
  list(signal: AbortSignal): Promise<readonly Instance[]>;

  /** Every instance type the pool's NodeClass allows, also those that have no available offering right now. */
  instanceTypes(pool: NodePool, signal: AbortSignal): Promise<readonly InstanceType[]>;

  /** Why the machine no longer is what its NodeClass asks for, in one CamelCase word; '' when it still is. */
  driftReason(claim: NodeClaim, signal: AbortSignal): Promise<string>;
}
