// SPDX-License-Identifier: Apache-2.0
// How a race went, and what is wanted of ours.
import type { ControllerName } from '../../test/real/controllers.ts';
import type { Usage } from '../../test/real/usage.ts';

/** How one step went. */
export interface StepResult extends Scene {
  readonly name: string;
  /** Until it was done. */
  readonly seconds: number;
  /** Until nothing moved any more, as far as the race looked. */
  readonly stableSeconds: number;
  /** A minute after it was done, where the race looked on for so long. */
  readonly minuteLater?: Scene;
}

/** The bill at a moment; a step's own is the one at its end. */
export interface Scene {
  readonly nodes: number;
  readonly dollarsPerHour: number;
}

/** What all nodes of a race cost so far. */
export interface RaceBill {
  nodeHours: number;
  dollars: number;
}

export interface RaceOutcome extends Readonly<RaceBill> {
  readonly steps: readonly StepResult[];
  readonly evictions: number;
}

export interface RaceResult extends RaceOutcome, Usage {
  readonly controller: ControllerName;
}

/** What ours fell short of, a sentence each. Upstream is missing where ours ran alone. */
export type Wanted = (ours: RaceResult, upstream: RaceResult | undefined) => string[] | Promise<string[]>;

// Prices are sums of floats: the last digits are nobody's merit.
const rounding = 1e-6;

/** No step takes longer than upstream's. */
export const noSlower: Wanted = (ours, upstream) =>
  pairs(ours, upstream).flatMap(([own, other]) =>
    own.seconds > other.seconds ? [`${own.name}: ${own.seconds} s against ${other.seconds} s`] : [],
  );

/** No step ends with dearer nodes than upstream's. */
export const noDearer: Wanted = (ours, upstream) =>
  pairs(ours, upstream).flatMap(([own, other]) =>
    own.dollarsPerHour > other.dollarsPerHour + rounding
      ? [`${own.name}: ${own.dollarsPerHour} $/h against ${other.dollarsPerHour} $/h`]
      : [],
  );

/** The whole race is cheaper than upstream's. */
export const cheaper: Wanted = (ours, upstream) =>
  upstream && ours.dollars >= upstream.dollars ? [`${ours.dollars} $ against ${upstream.dollars} $`] : [];

export const noMoreEvictions: Wanted = (ours, upstream) =>
  upstream && ours.evictions > upstream.evictions ? [`${ours.evictions} evictions against ${upstream.evictions}`] : [];

/** A minute after a step was done its bill is at most so many times the bound. */
export function nearBound(step: string, boundOf: () => Promise<number>, most: number): Wanted {
  return async (ours) => {
    const scene = ours.steps.find(({ name }) => name === step)?.minuteLater;
    if (!scene) return [`${step}: nobody looked a minute later`];
    const bound = await boundOf();
    const times = scene.dollarsPerHour / bound;
    console.log(`${step}: a minute later ${times.toFixed(3)} times the bound of ${bound.toFixed(3)} $/h`);
    return times > most ? [`${step}: ${scene.dollarsPerHour} $/h a minute later, more than ${most} × ${bound}`] : [];
  };
}

/** Says how far both are from the bound when a step ends. */
export function tellBound(step: string, boundOf: () => Promise<number>): Wanted {
  return async (ours, upstream) => {
    const bound = await boundOf();
    for (const { controller, steps, evictions } of [ours, ...(upstream ? [upstream] : [])]) {
      const { dollarsPerHour = 0 } = steps.find(({ name }) => name === step) ?? {};
      const times = (dollarsPerHour / bound).toFixed(4);
      console.log(
        `${step}: ${controller} ends at ${times} times the bound of ${bound.toFixed(3)} $/h, ${evictions} evictions`,
      );
    }
    return [];
  };
}

function pairs(ours: RaceResult, upstream: RaceResult | undefined): [StepResult, StepResult][] {
  if (!upstream) return [];
  if (ours.steps.length !== upstream.steps.length) throw new Error('a step is missing');
  return ours.steps.map((step, index) => [step, upstream.steps[index]!]);
}
