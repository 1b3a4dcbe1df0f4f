// SPDX-License-Identifier: Apache-2.0
// One step of a race, on whatever clock: until it is done, and for as long as the race looks on after that.
import type { Clock } from '../../src/base/clock.ts';
import type { RaceBill, Scene, StepResult } from './race-result.ts';
import type { Step } from './race-scenarios.ts';
import type { RaceWorld } from './race-world.ts';

const sampleMs = 100;

/** Runs it, and adds what its nodes cost to the bill. */
export async function runStep(step: Step, world: RaceWorld, bill: RaceBill, clock: Clock): Promise<StepResult> {
  const started = clock.monotonic();
  await step.start(world);
  let [last, seconds, stableSeconds, done] = [started, 0, 0, Number.POSITIVE_INFINITY];
  let scene = sceneOf(world);
  let minuteLater: Scene | undefined;
  while (seconds < done + (step.settleSeconds ?? 0)) {
    const now = clock.monotonic();
    seconds = (now - started) / 1000;
    const next = sceneOf(world);
    if (next.nodes !== scene.nodes || next.dollarsPerHour !== scene.dollarsPerHour) stableSeconds = seconds;
    scene = next;
    bill.nodeHours += (scene.nodes * (now - last)) / 3_600_000;
    bill.dollars += (scene.dollarsPerHour * (now - last)) / 3_600_000;
    last = now;
    if (seconds >= done + 60) minuteLater ??= scene;
    if (done > seconds && step.done(world)) done = seconds;
    if (done > step.limitSeconds && seconds > step.limitSeconds) {
      throw new Error(
        `${step.name}: not over after ${step.limitSeconds} s: ${world.readyPods} of ${world.pods} pods are ready, ${world.nodes} nodes`,
      );
    }
    await clock.sleep(sampleMs);
  }
  return { name: step.name, seconds: done, stableSeconds, ...scene, ...(minuteLater ? { minuteLater } : {}) };
}

function sceneOf(world: RaceWorld): Scene {
  return { nodes: world.nodes, dollarsPerHour: world.price };
}
