// SPDX-License-Identifier: Apache-2.0
// What the parts of the deterministic world are to each other: clouds, faults, happenings, invariants, coverage, trace.
// One virtual clock and named streams of chance drive all of them; nothing here may look at real time or real chance.
import type { CustomResourceDefinition } from '../api/crd.ts';
import type { NodePool } from '../api/node-pool.ts';
import type { Clock, VirtualClock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import type { CloudProvider } from '../cloud/provider.ts';
import type { Store, StoreEvent } from '../embedded/store.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Pod } from '../kube/kinds.ts';
import type { KubeObject, ResourceType } from '../kube/object.ts';
import type { Transport } from '../kube/transport.ts';
import type { Clusters } from '../runtime/clusters.ts';
import type { Logger } from '../runtime/logging.ts';
import type { Runnable } from '../runtime/manager.ts';
import type { Metrics } from '../runtime/metrics.ts';

/**
 * Something that goes wrong for a while. It bites only between `inject` and the call of what `inject` returns, which
 * must end it completely: nothing of it may act afterwards (a call that hangs is answered then).
 */
export interface Fault {
  /** `api/conflict`, `cloud/lost-create-response`, `node/flapping`, … Unique, stable: coverage counts by it. */
  readonly name: string;
  /** How often it is drawn, against the others; 1 is usual. */
  readonly weight: number;
  /** Begins it. Parameters (which type, which zone, how likely) are drawn from `random`. Count each bite in coverage. */
  inject(random: Random): (() => void) | Promise<() => void>;
}

/** All pods of a service, all pods of a machine, or all machines of a pool: each costs ten times as much as the one before. */
export type Reach = 'service' | 'machine' | 'pool';

/** Something that happens once, and is nobody's fault: a user's edit, a moved price, an interrupted spot machine. */
export interface Happening {
  readonly name: string;
  readonly weight: number;
  /** What moves because of it, where that is more than a few pods. */
  readonly reach?: Reach;
  /** Does it, or gives false when there was nothing to do it to. */
  happen(random: Random): boolean | Promise<boolean>;
}

/** A machine in the books of a cloud; the books say what is true, whatever the cloud tells its callers. */
export interface LedgerInstance {
  readonly providerID: string;
  readonly instanceType: string;
  readonly zone: string;
  readonly capacityType: string;
  /** Dollars an hour when it was launched. */
  readonly price: number;
  /** For which NodeClaim it was launched; undefined for a stranger that is not ours to touch. */
  readonly claim?: { readonly name: string; readonly uid: string };
  /** World time in ms. */
  readonly launchedAt: number;
  /** When its removal began, by whom ever. */
  readonly deletingAt?: number;
  /** When it ceased to exist (and to cost). */
  readonly goneAt?: number;
  /** Until then the cloud denies that it exists, in world time. */
  readonly hiddenUntil?: number;
  /** When its cloud announced that it will take it away. */
  readonly leavingAt?: number;
  /** Why it went, when it was not the controller that asked: 'interrupted', 'died', … */
  readonly goneBecause?: string;
  /** Its cloud made it so that no Node comes of it. */
  readonly isBroken?: boolean;
}

export interface Ledger {
  /** Machines that exist (launched and not gone), in the order of their launch. */
  alive(): readonly LedgerInstance[];
  /** All that ever were, in the order of their launch. */
  all(): readonly LedgerInstance[];
}

/** The way of one controller process to the clouds. Killed: no call is begun or answered any more. Hung: answers wait. */
export interface Line {
  /** The process's own clock: skewed, jumping, stopped with the process. */
  readonly clock: Clock;
  readonly clusters: Clusters;
  /** Its own chance. */
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Another API server as this process reaches it: it gets no answer that the process would not get. */
  reach(transport: Transport): Transport;
  /** Every call from a provider to its cloud goes through here: the world may kill the process before or after it. */
  call<R>(what: string, carryOut: () => Promise<R>): Promise<R>;
}

/** What a cloud is built with. */
export interface CloudParts {
  /** The world's own time. Machines boot and die by it, whatever happens to controllers. */
  readonly clock: VirtualClock;
  /** A stream of its own. */
  readonly random: Random;
  /** Where NodeClasses are. Past all faults of the API. */
  readonly karpenter: KubeClient;
  /** Where its machines become Nodes. Past all faults of the API. */
  readonly workload: KubeClient;
  readonly coverage: Coverage;
}

/** What a cloud is built with whose machines are objects of the API server. */
export interface StoredCloudParts extends CloudParts {
  /** Of the API server with the Nodes. */
  readonly store: Store;
  /** The way to it, past all faults. */
  readonly transport: () => Transport;
  /** Who writes what is being stored right now. */
  readonly author: () => string;
}

/** Where its machines are, and by which contracts they can be had. */
export interface Sells {
  readonly zones: readonly [string, ...string[]];
  readonly capacityTypes: readonly [string, ...string[]];
}

/** What the pods of users may ask for. */
export interface PodTerms extends Sells {
  /** CPUs, each as often as it is named. */
  readonly cpus: readonly [string, ...string[]];
}

/** A cloud of the world. It outlives controller processes; each of them connects anew. */
export interface SimulatedCloud {
  readonly name: string;
  /** Its NodeClass, and the CRD that must be served before the world begins. */
  readonly nodeClass: ResourceType<KubeObject>;
  readonly crd: CustomResourceDefinition;
  readonly ledger: Ledger;
  readonly faults: readonly Fault[];
  readonly happenings: readonly Happening[];
  /** What users of its machines may ask for. */
  readonly sells: Sells;
  /** What its own pools ask for besides, so that few of many machines are weighed. */
  readonly requirements?: NodePool['spec']['template']['spec']['requirements'];
  /** Promises about this cloud alone. Asked once for each world. */
  readonly invariants?: readonly Invariant[];
  /** How many machines are reserved, by the id of the reservation; none where there are no reservations. */
  readonly reservations?: ReadonlyMap<string, number>;
  /** By which contracts machines cost the same for ever. */
  readonly steadyPrices?: readonly string[];
  /** How long its machines may be not ready before they are repaired, where the program does that. */
  readonly repairsAfterMs?: number;
  /** Objects that must exist before NodePools: NodeClasses named `default`, ready. */
  furnish(): Promise<void>;
  /** A provider for one controller process, and the controllers that come with it. */
  connect(line: Line): { readonly provider: CloudProvider; readonly runnables: readonly Runnable[] };
  /** The cheapest price an hour now of a machine with at least this much allocatable: for the bound on cost. */
  cheapest(wanted: { readonly cpu: number; readonly memory: number }): number | undefined;
  close(): void;
}

/** How often what was exercised: nothing may stay at zero over the seeds of a run. */
export interface Coverage {
  /** Counts one: `kind` is 'fault', 'happening', 'path' or 'invariant'. */
  count(kind: CoverageKind, name: string, times?: number): void;
  /** `kind/name` to count, in order. */
  counts(): ReadonlyMap<string, number>;
}

export type CoverageKind = 'fault' | 'happening' | 'path' | 'invariant';

/** One write to an API server, as invariants see it: right after it was stored. */
export interface Change {
  /** World time. */
  readonly at: number;
  /** The collection: `pods`, `nodes`, `nodeclaims.karpenter.sh`, … */
  readonly collection: string;
  readonly event: StoreEvent;
  /** Who wrote it: a controller process (`karpenter-1`), the `user`, or the `cluster` itself. */
  readonly by: string;
  /** The request that caused it: `DELETE /api/v1/…`, or '' where the server did it by itself. */
  readonly request: string;
}

/** A broken promise. */
export interface Violation {
  readonly invariant: string;
  readonly at: number;
  /** A sentence that names the objects. */
  readonly message: string;
}

/** What invariants may look at: the stores of the API servers and the books of the clouds, never the program's memory. */
export interface Facts {
  readonly now: number;
  readonly clouds: readonly SimulatedCloud[];
  get<T extends KubeObject>(collection: string, namespace: string, name: string): T | undefined;
  list<T extends KubeObject>(collection: string): readonly T[];
  /** Pods that were placed on a node of this name, in the order of their keys. */
  podsOn(node: string): readonly Pod[];
  /** When the last fault ended; undefined while one is on. */
  readonly calmSince: number | undefined;
}

/**
 * A promise of the autoscaler. Written from the documents alone, without the product's code. Violations are reported,
 * not thrown; a world stops at its first unless told.
 */
export interface Invariant {
  readonly name: string;
  /** After every write of every API server. Must be cheap: most writes concern most invariants not at all. */
  onChange?(change: Change, facts: Facts, report: Report): void;
  /** Once a minute of the world's time. */
  onMinute?(facts: Facts, report: Report): void;
  /** When faults and happenings have stopped and the time to settle is over. */
  onQuiet?(facts: Facts, report: Report): void | Promise<void>;
}

/** Reports; `checked` says that the invariant had something to judge (it counts as exercised). */
export interface Report {
  violated(message: string): void;
  checked(): void;
}

/** The story of a run: a hash over everything that happened, and the last lines of it for people. */
export interface Trace {
  /** Adds a line: it is part of the hash; a quiet one is not kept for people. */
  add(at: number, line: string, quiet?: boolean): void;
  /** Over all lines so far. */
  hash(): string;
  /** The latest lines, oldest first. */
  lines(): readonly string[];
}
