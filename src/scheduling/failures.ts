// SPDX-License-Identifier: Apache-2.0
// Why a pod has no place, said in a sentence. Worked out only for pods that failed, once for all that are alike.
import { type Obstacle, obstacleIn, stages } from './diagnosis.ts';
import type { Limits } from './limits.ts';
import type { Failure } from './pack.ts';
import type { PodClass } from './pod-class.ts';
import type { PodError } from './problem.ts';
import type { World } from './world.ts';

/** How many different failures are looked into: a pass with more has a common cause, and `explain` tells the rest. */
const maxLookedInto = 500;

/** What is said of a pod whose turn did not come. */
export const beyondDeadline: Omit<PodError, 'pod'> = {
  reason: 'not reached before the deadline',
  detail: 'the pass ended first; the next one goes on',
  deferred: true,
};

export class Failures {
  readonly #world: World;
  readonly #limits: Limits;
  readonly #known = new Map<string, Omit<PodError, 'pod'>>();

  constructor(world: World, limits: Limits) {
    this.#world = world;
    this.#limits = limits;
  }

  /** Reason and detail for a pod that was not placed. */
  of(pod: number, why: Failure): Omit<PodError, 'pod'> {
    if (why === 'deadline') return beyondDeadline;
    if (why === 'reserved')
      return {
        reason: 'waits for reserved capacity',
        detail: 'instance types with reserved offerings suit the pod, but all their reservations are taken',
        deferred: true,
      };
    const podClass = this.#world.classOf[pod]!;
    const shape = this.#world.batch.shapeOf[pod]!;
    const key = `${podClass.id}:${shape}`;
    let known = this.#known.get(key);
    if (!known) {
      known =
        this.#known.size < maxLookedInto
          ? this.#lookInto(podClass, shape)
          : { reason: 'no node can take it', detail: 'too many different pods failed in this pass to look into each' };
      this.#known.set(key, known);
    }
    return known;
  }

  #lookInto(podClass: PodClass, shape: number): Omit<PodError, 'pod'> {
    const world = this.#world;
    if (podClass.side.problem !== undefined) return { reason: podClass.side.problem, detail: podClass.side.problem };
    const nodes = world.targets.length;
    const onNodes = nodes === 0 ? '' : ` 0/${nodes} existing nodes can take it.`;
    if (world.templates.length === 0) {
      const pools = world.errors.filter(({ object }) => object.startsWith('NodePool/'));
      const why = pools.map(({ object, reason }) => ` ${object}: ${reason}.`).join('');
      return { reason: 'there is no usable NodePool', detail: `no NodePool can be used.${why}${onNodes}` };
    }
    const obstacles = bestObstacles(world, this.#limits, podClass, shape);
    const furthest = obstacles.reduce((a, b) => (rank(b) > rank(a) ? b : a));
    const reason = obstacles.length === 1 ? furthest.what : `NodePool ${furthest.nodePool}: ${furthest.what}`;
    const lines = obstacles.map(
      ({ nodePool, what, fix }) => `NodePool ${nodePool}: ${what}${fix === undefined ? '' : `; to fix: ${fix}`}.`,
    );
    return { reason, detail: `${lines.join(' ')}${onNodes}` };
  }
}

function rank({ stage }: Obstacle): number {
  return stages.indexOf(stage);
}

/** For each pool the obstacle of the form of the pod (as written, or relaxed) that came furthest. */
export function bestObstacles(world: World, limits: Limits, podClass: PodClass, shape: number): Obstacle[] {
  return world.templates.map((template) => {
    let best: Obstacle | undefined;
    for (let form: PodClass | null = podClass; form; form = world.classes.relaxed(form)) {
      const obstacle = obstacleIn(world, limits, template, form, shape);
      // Of equals the weaker form speaks: it is what is left of the pod's wishes.
      if (!best || rank(obstacle) >= rank(best)) best = obstacle;
    }
    return best!;
  });
}
