// SPDX-License-Identifier: Apache-2.0
// A scheduling problem and its result as plain data: the same file is a test, a benchmark, a bug report and a what-if.
// docs/reference/problem-file.md describes it for people.
import type {
  CSINode,
  DaemonSet,
  Namespace,
  Node,
  NodeClaim,
  NodePool,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  RequirementSpec,
  ResourceList,
  StorageClass,
} from './objects.ts';

/** One way to buy an instance type: where, on which terms, at what price. */
export interface OfferingSpec {
  /** Holds zone and capacity type; a reserved offering also its reservation id. */
  readonly requirements: readonly RequirementSpec[];
  /** Per hour. */
  readonly price: number;
  /** The price is a guess: it orders the offerings of one cloud, and is no reason to prefer a cloud to another. */
  readonly estimated?: boolean;
  /** Default true. */
  readonly available?: boolean;
  /** How many instances the reservation has left; only for capacity type `reserved`. */
  readonly reservationCapacity?: number;
  /** Merged over the type's capacity for this offering. */
  readonly capacityOverride?: ResourceList;
  /** Merged over the sum of the type's overheads for this offering. */
  readonly overheadOverride?: ResourceList;
}

/** A machine that can be bought. */
export interface InstanceTypeSpec {
  readonly name: string;
  readonly requirements: readonly RequirementSpec[];
  readonly offerings: readonly OfferingSpec[];
  readonly capacity: ResourceList;
  readonly overhead?: {
    readonly kubeReserved?: ResourceList;
    readonly systemReserved?: ResourceList;
    readonly evictionThreshold?: ResourceList;
  };
}

/**
 * The labels a NodePool's cloud knows. Given per pool and never merged: a label that one cloud defines means nothing to
 * another. What is left out falls back to Kubernetes' and karpenter.sh's own; what is given is added to them.
 */
export interface LabelRules {
  /** Labels that a node of this cloud carries although nobody asked for them. */
  readonly wellKnown?: readonly string[];
  /** Domains whose labels nobody may ask for, unless they are well-known. */
  readonly restrictedDomains?: readonly string[];
  /** Other names of a label: from → to. */
  readonly normalized?: Readonly<Record<string, string>>;
  /** Other spellings of a label's values, by normalised key: from → to. */
  readonly normalizedValues?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The label that carries a reservation's id on reserved offerings. */
  readonly reservationId?: string;
}

export type PreferencePolicy = 'Respect' | 'Ignore';
export type MinValuesPolicy = 'Strict' | 'BestEffort';
export type ReservedOfferingMode = 'Strict' | 'Fallback';

export interface SolveSettings {
  /** Default Respect. */
  readonly preferencePolicy?: PreferencePolicy;
  /** Default Strict. */
  readonly minValuesPolicy?: MinValuesPolicy;
  /** Default Strict: a pod waits for reserved capacity rather than falling back. */
  readonly reservedOfferingMode?: ReservedOfferingMode;
  /** How many instance types a new NodeClaim may list. Default 600. */
  readonly maxInstanceTypes?: number;
}

/** What the cluster state knows beyond the objects. */
export interface ProblemState {
  /** Nodes (or NodeClaims) by name that will go away: never a target, and their pods are scheduled anew. */
  readonly markedForDeletion?: readonly string[];
  /** Node name → RFC 3339 time until which it is promised to pods. Informative: disruption reads it, packing does not. */
  readonly nominations?: Readonly<Record<string, string>>;
  /**
   * Pod (`namespace/name`) → the node or NodeClaim that an earlier pass planned it for. It goes there as long as it may: a plan
   * made anew for pods that still wait would not fit what was bought for the first one.
   */
  readonly promised?: Readonly<Record<string, string>>;
  /** What clouds declare as reasons to replace a node, beside Kubernetes' own. Informative, as `nominations`. */
  readonly disruptionReasons?: readonly string[];
  /** Nodes (or NodeClaims) by name of which the pass asks whether they could go: treated like `markedForDeletion`. */
  readonly candidates?: readonly string[];
  /** Nodes by name that take no pods of `candidates` (consolidateAfter of the destination); others may still go there. */
  readonly closedToMoves?: readonly string[];
}

/** Everything `solve` looks at. Objects are never changed, and may be deep-frozen. */
export interface Problem {
  /** RFC 3339. Needed only to judge do-not-disrupt durations of pods on nodes that go away. */
  readonly now?: string;
  readonly nodePools: readonly NodePool[];
  /** By NodePool name. */
  readonly instanceTypes: Readonly<Record<string, readonly InstanceTypeSpec[]>>;
  /** By NodePool name. */
  readonly labels?: Readonly<Record<string, LabelRules>>;
  readonly nodes?: readonly Node[];
  readonly nodeClaims?: readonly NodeClaim[];
  /** Bound ones carry `spec.nodeName`. */
  readonly pods: readonly Pod[];
  readonly podDisruptionBudgets?: readonly PodDisruptionBudget[];
  readonly daemonSets?: readonly DaemonSet[];
  readonly namespaces?: readonly Namespace[];
  readonly persistentVolumeClaims?: readonly PersistentVolumeClaim[];
  readonly persistentVolumes?: readonly PersistentVolume[];
  readonly storageClasses?: readonly StorageClass[];
  readonly csiNodes?: readonly CSINode[];
  readonly state?: ProblemState;
  readonly settings?: SolveSettings;
}

/** A machine to buy. */
export interface NewNodeClaim {
  readonly nodePool: string;
  /** Sorted by key; without the placeholder hostname and without the list of instance types. */
  readonly requirements: readonly RequirementSpec[];
  /** Names, cheapest first, at most `settings.maxInstanceTypes`. */
  readonly instanceTypes: readonly string[];
  /** Of the cheapest launch that the requirements allow. */
  readonly price: number;
  /** Pods plus the smallest daemonset overhead among the instance types; `pods` counts the pods. */
  readonly requests: Readonly<Record<string, string>>;
  /** `namespace/name`, in the order of placement. */
  readonly pods: readonly string[];
  /** True when minValues had to be lowered (BestEffort). */
  readonly minValuesRelaxed?: boolean;
  /** The reservations this machine may use. */
  readonly reservations?: readonly string[];
}

export interface ExistingNodeResult {
  readonly name: string;
  /** The pods placed on it by this pass, `namespace/name`, in the order of placement. */
  readonly pods: readonly string[];
}

/** Where a pod went: an existing node by name, or a new NodeClaim by its index in `newNodeClaims`. */
export type PlacementTarget = { readonly node: string } | { readonly newNodeClaim: number };

/**
 * One step of the solution. Replayed in order, each step obeys Kubernetes' rules at its moment.
 * `settled` names labels of NEW nodes whose value this step decided: until then the node could still have become any of
 * the values its constraints allowed, and its pods were counted nowhere for that key.
 */
export interface Placement {
  readonly pod: string;
  readonly target: PlacementTarget;
  readonly settled?: readonly { readonly newNodeClaim: number; readonly key: string; readonly value: string }[];
}

export interface PodError {
  /** `namespace/name`. */
  readonly pod: string;
  /** The one thing that matters, in a sentence: the text of a FailedScheduling event. */
  readonly reason: string;
  /** The longer story. */
  readonly detail: string;
  /** The pod only waits (reserved capacity, deadline): no event, not counted unschedulable. */
  readonly deferred?: boolean;
}

/** An object of the problem that could not be used. The rest is solved without it. */
export interface ObjectError {
  /** Kind and name: `NodePool/general`, `InstanceType/general/m5.large`. */
  readonly object: string;
  readonly reason: string;
}

export interface SolveStats {
  /** By the injected clock; 0 without one. */
  readonly durationMs: number;
  /** Pods that this pass had to place. */
  readonly pods: number;
  readonly scheduled: number;
  readonly newNodeClaims: number;
  /** Sum of the prices of the new NodeClaims. */
  readonly totalPrice: number;
  /** Distinct combinations of constraints and of requests among the pods. */
  readonly podClasses: number;
  readonly podShapes: number;
  /** True when the deadline ended the pass: what was placed until then is valid. */
  readonly timedOut: boolean;
}

export interface SolveResult {
  readonly newNodeClaims: readonly NewNodeClaim[];
  /** Only nodes that received pods, in the order of their names. */
  readonly existingNodes: readonly ExistingNodeResult[];
  readonly placements: readonly Placement[];
  /** In the order of the queue. */
  readonly errors: readonly PodError[];
  readonly objectErrors: readonly ObjectError[];
  readonly stats: SolveStats;
}

/** How long `solve` may take. The room has no clock: bring one. */
export interface SolveOptions {
  /** Milliseconds from any start. */
  readonly clock?: () => number;
  /** Needs `clock`. When it has passed, the pass ends with what it has. */
  readonly timeoutMs?: number;
  /** The same in steps of work instead of time: repeatable. One step is one attempt to place a pod. */
  readonly maxSteps?: number;
}
