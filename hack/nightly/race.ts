// SPDX-License-Identifier: Apache-2.0
// The race: ours and upstream's controller, one after the other, each on a fresh real control plane with kwok, on the
// same scenario with the same settings. What ours must reach is the scenario's to say.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startControlPlane } from '../../test/real/control-plane.ts';
import { applyCrds, type ControllerName, startController } from '../../test/real/controllers.ts';
import { apply } from '../../test/real/kubectl.ts';
import { usageOf } from '../../test/real/usage.ts';
import type { RaceResult, Scene, StepResult } from './race-result.ts';
import { type Scenario, type Step, scenarios } from './race-scenarios.ts';
import { RaceWorld } from './race-world.ts';

const settings = { KUBE_CLIENT_QPS: '200', KUBE_CLIENT_BURST: '300' };
const sampleMs = 100;

/** Runs a scenario, for ours alone if asked; resolves to whether ours reached what is wanted of it. */
export async function race(name = 'up', who = 'both'): Promise<boolean> {
  const scenario = scenarios[name];
  if (!scenario) throw new Error(`no such race: ${name}; there are ${Object.keys(scenarios).join(', ')}`);
  if (who !== 'both' && who !== 'ours') throw new Error(`ours, or nothing for both: ${who}`);
  console.log(`${name}: ${scenario.what}`);
  const ours = await run('ours', scenario);
  print(ours);
  const upstream = who === 'both' ? await run('upstream', scenario) : undefined;
  if (upstream) print(upstream);
  const problems: string[] = [];
  for (const wanted of scenario.wanted) problems.push(...(await wanted(ours, upstream)));
  for (const problem of problems) console.log(`WORSE: ${problem}`);
  return problems.length === 0;
}

async function run(controller: ControllerName, scenario: Scenario): Promise<RaceResult> {
  const plane = await startControlPlane({ workloads: true, kwok: true });
  try {
    await applyCrds(plane.kubeconfig);
    await apply(plane.kubeconfig, scenario.setup);
    const folder = mkdtempSync(join(tmpdir(), 'karpenter-race-'));
    const log = join(folder, `${controller}.log`);
    console.log(`log of ${controller} in ${log}`);
    const program = await startController(controller, { kubeconfig: plane.kubeconfig, env: settings, log });
    const world = new RaceWorld(plane.kubeconfig);
    const bill = { nodeHours: 0, dollars: 0 };
    try {
      await world.start();
      const steps: StepResult[] = [];
      for (const step of scenario.steps) steps.push(await runStep(step, world, bill));
      if (program.pid === undefined) throw new Error(`${controller} has no process`);
      return { controller, steps, ...bill, evictions: world.evictions, ...usageOf(program.pid) };
    } finally {
      await world.stop();
      await program.stop();
    }
  } finally {
    await plane.stop();
  }
}

async function runStep(
  step: Step,
  world: RaceWorld,
  bill: { nodeHours: number; dollars: number },
): Promise<StepResult> {
  const started = performance.now();
  await step.start(world);
  let [last, seconds, stableSeconds, done] = [started, 0, 0, Number.POSITIVE_INFINITY];
  let scene = sceneOf(world);
  let minuteLater: Scene | undefined;
  while (seconds < done + (step.settleSeconds ?? 0)) {
    const now = performance.now();
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
    await sleep(sampleMs);
  }
  return { name: step.name, seconds: done, stableSeconds, ...scene, ...(minuteLater ? { minuteLater } : {}) };
}

function sceneOf(world: RaceWorld): Scene {
  return { nodes: world.nodes, dollarsPerHour: world.price };
}

function print(result: RaceResult): void {
  console.log(
    `${result.controller}: ${result.cpuSeconds.toFixed(1)} CPU s, peak RSS ${result.peakRssMib.toFixed(0)} MiB, ` +
      `${result.nodeHours.toFixed(3)} node-hours, ${result.dollars.toFixed(4)} $, ${result.evictions} evictions`,
  );
  for (const step of result.steps) {
    const later = step.minuteLater ? `, ${step.minuteLater.dollarsPerHour.toFixed(3)} $/h a minute later` : '';
    console.log(
      `  ${step.name}: ${step.seconds.toFixed(1)} s, stable after ${step.stableSeconds.toFixed(1)} s` +
        `${later}, at its end ${step.nodes} nodes, ${step.dollarsPerHour.toFixed(3)} $/h`,
    );
  }
}
