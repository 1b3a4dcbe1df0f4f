// SPDX-License-Identifier: Apache-2.0
// What a scenario is: acts, each with something that is done and something that must come of it.
import type { Deployment } from '../../kube/kinds.ts';
import type { KubeObject, ResourceType } from '../../kube/object.ts';
import type { World } from './world.ts';

/** What an act may do: what a user could do with kubectl. */
export interface Hands {
  create(deployment: Deployment): Promise<void>;
  scale(deployment: string, replicas: number): Promise<void>;
  /** Deletes a deployment. */
  remove(deployment: string): Promise<void>;
  /** Deletes any object, in the cluster that it lives in. */
  delete<T extends KubeObject>(type: ResourceType<T>, name: string): Promise<void>;
  /** The world as it is now. */
  readonly world: World;
}

/** Something that must come about. */
export interface Goal {
  /** As a sentence: `5 pods are running`. */
  readonly what: string;
  holds(world: World): boolean;
  readonly withinMs: number;
}

export interface Act {
  /** As a sentence: `it is scaled to 5 pods`. */
  readonly title: string;
  do(hands: Hands): Promise<void>;
  /** Asked for before it is done, judged after; none: the next act follows at once. */
  goal?(world: World): Goal;
}

/** A story with an end. Deterministic: all chance and time are the stage's. */
export interface Scenario {
  readonly name: string;
  /** One line, for lists. */
  readonly description: string;
  readonly acts: readonly Act[];
}

const minute = 60_000;

/** Every pod there should be runs, and nothing else does. */
export function allRunning(count: number): Goal {
  return {
    what: `${count} pods are running`,
    holds: ({ pods }) => pods.running === count && pods.pending + pods.starting + pods.leaving === 0,
    withinMs: 2 * minute,
  };
}

/** No pod is left, and everything that was bought is gone. */
export const nothingLeft: Goal = {
  what: 'the machines are gone',
  holds: ({ pods, machines }) =>
    pods.running + pods.pending + pods.starting + pods.leaving === 0 && machines.length === 0,
  withinMs: 5 * minute,
};
