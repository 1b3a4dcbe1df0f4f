// SPDX-License-Identifier: Apache-2.0
// The race: ours and upstream's controller, one after the other, each on a fresh real control plane with kwok, on the
// same scenario with the same settings. Ours must be no slower and its nodes no dearer.
import { setTimeout as sleep } from 'node:timers/promises';
import { startControlPlane } from '../../test/real/control-plane.ts';
import { applyCrds, type ControllerName, startController } from '../../test/real/controllers.ts';
import { apply } from '../../test/real/kubectl.ts';
import { type Usage, usageOf } from '../../test/real/usage.ts';
import { type Scenario, type Step, scenarios } from './race-scenarios.ts';
import { RaceWorld } from './race-world.ts';

const settings = { KUBE_CLIENT_QPS: '200', KUBE_CLIENT_BURST: '300' };
const sampleMs = 100;

/** How one step went. */
interface StepResult extends Scene {
  readonly name: string;
  /** Until it was done. */
  readonly seconds: number;
  /** Until nothing moved any more, as far as the race looked. */
  readonly stableSeconds: number;
  /** A minute after it was done, where the race looked on for so long. */
  readonly minuteLater?: Scene;
}

/** The bill at a moment; a step's own is the one at its end. */
interface Scene {
  readonly nodes: number;
  readonly dollarsPerHour: number;
}

interface RaceResult extends Usage {
  readonly controller: ControllerName;
  readonly steps: readonly StepResult[];
  readonly nodeHours: number;
  readonly dollars: number;
  readonly evictions: number;
}

/** Runs a scenario; resolves to whether ours was no worse. */
export async function race(name = 'up'): Promise<boolean> {
  const scenario = scenarios[name];
  if (!scenario) throw new Error(`no such race: ${name}; there are ${Object.keys(scenarios).join(', ')}`);
  console.log(`${name}: ${scenario.what}`);
  const ours = await run('ours', scenario);
  print(ours);
  const upstream = await run('upstream', scenario);
  print(upstream);
  const problems = scenario.steps.flatMap((_, index) => problemsOf(ours.steps[index], upstream.steps[index]));
  for (const problem of problems) console.log(`WORSE: ${problem}`);
  return problems.length === 0;
}

async function run(controller: ControllerName, scenario: Scenario): Promise<RaceResult> {
  const plane = await startControlPlane({ workloads: true, kwok: true });
  try {
    await applyCrds(plane.kubeconfig);
    await apply(plane.kubeconfig, scenario.setup);
    const program = await startController(controller, { kubeconfig: plane.kubeconfig, env: settings });
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

function problemsOf(ours: StepResult | undefined, upstream: StepResult | undefined): string[] {
  if (!ours || !upstream) return ['a step is missing'];
  return [
    ...(ours.seconds > upstream.seconds ? [`${ours.name}: ${ours.seconds} s against ${upstream.seconds} s`] : []),
    // Prices are sums of floats: the last digits are nobody's merit.
    ...(ours.dollarsPerHour > upstream.dollarsPerHour + 1e-6
      ? [`${ours.name}: ${ours.dollarsPerHour} $/h against ${upstream.dollarsPerHour} $/h`]
      : []),
  ];
}
