// SPDX-License-Identifier: Apache-2.0
// What is told of a play, as data: `-o json` prints these, one a line; the text and the pictures are made from them.

interface Told {
  /** Seconds since the curtain rose. */
  readonly at: number;
}

export interface Began extends Told {
  readonly type: 'begin';
  readonly scenario: string;
  readonly description: string;
  readonly providers: readonly string[];
  readonly acts: readonly string[];
}

/** Something is done. */
export interface ActBegan extends Told {
  readonly type: 'act';
  readonly act: number;
  readonly title: string;
  /** What must come of it. */
  readonly goal?: string;
}

/** What an act was to bring about has come about. */
export interface GoalReached extends Told {
  readonly type: 'reached';
  readonly act: number;
  readonly what: string;
  readonly afterSeconds: number;
}

/** A machine was bought. */
export interface Bought extends Told {
  readonly type: 'bought';
  readonly nodeClaim: string;
  readonly nodePool: string;
  readonly instanceType: string;
  readonly capacityType: string;
  readonly zone: string;
  readonly pricePerHour: number;
  /** For what it was bought. */
  readonly requests: Readonly<Record<string, string>>;
  /** How many instance types would have done. */
  readonly candidates: number;
  /** The next best type, and what it would have cost. */
  readonly next?: { readonly instanceType: string; readonly pricePerHour: number };
  /** What the same machine costs on demand, when it is not. */
  readonly onDemandPricePerHour?: number;
  /** The same as a sentence. */
  readonly why: string;
}

/** Its node has joined and takes pods. */
export interface Ready extends Told {
  readonly type: 'ready';
  readonly nodeClaim: string;
  readonly node: string;
  readonly afterSeconds: number;
}

/** It is on its way out. */
export interface Leaving extends Told {
  readonly type: 'leaving';
  readonly nodeClaim: string;
  /** The disruption's reason, or `Deleted` when somebody deleted it. */
  readonly reason: string;
}

export interface Gone extends Told {
  readonly type: 'gone';
  readonly nodeClaim: string;
  readonly livedSeconds: number;
  readonly cost: number;
}

/** Pods, machines and cost, whenever they changed; at most ten times a second. */
export interface StateChanged extends Told {
  readonly type: 'state';
  readonly pods: PodCounts;
  readonly machines: number;
  readonly nodes: number;
  readonly pricePerHour: number;
}

export interface PodCounts {
  /** Without a node. */
  readonly pending: number;
  /** On a node, not ready yet. */
  readonly starting: number;
  readonly running: number;
  /** Being deleted. */
  readonly leaving: number;
}

/** The end, good or bad. */
export interface Summary extends Told {
  readonly type: 'summary';
  readonly scenario: string;
  readonly providers: readonly string[];
  readonly succeeded: boolean;
  /** Why it did not. */
  readonly failure?: string;
  readonly bought: readonly Purchase[];
  readonly pods: {
    readonly started: number;
    /** From being created to being ready: the median pod and the slowest. */
    readonly medianSeconds: number;
    readonly slowestSeconds: number;
  };
  readonly most: { readonly machines: number; readonly pricePerHour: number };
  /** What the machines have cost in all. */
  readonly cost: number;
  readonly left: { readonly pods: number; readonly machines: number; readonly pricePerHour: number };
}

/** A machine from the beginning to the end. */
export interface Purchase extends Omit<Bought, 'type'> {
  readonly readyAfterSeconds?: number;
  readonly removedFor?: string;
  /** Undefined while it is there. */
  readonly livedSeconds?: number;
  readonly cost: number;
}

export type DemoEvent = Began | ActBegan | GoalReached | Bought | Ready | Leaving | Gone | StateChanged | Summary;

/** To the millisecond: more digits are noise. */
export function seconds(ms: number): number {
  return Math.round(ms) / 1000;
}

/** Prices and costs, to the ten-thousandth of a cent. */
export function dollars(amount: number): number {
  return Math.round(amount * 1e6) / 1e6;
}
