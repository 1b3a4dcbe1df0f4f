// SPDX-License-Identifier: Apache-2.0
// The race: ours and upstream's controller, one after the other, each on a fresh real control plane with kwok, on the
// same scenario with the same settings. What ours must reach is the scenario's to say.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RealClock } from '../../src/base/clock.ts';
import { readInstanceTypes } from '../../src/providers/kwok/instance-types.ts';
import { startControlPlane } from '../../test/real/control-plane.ts';
import { applyCrds, type ControllerName, startController } from '../../test/real/controllers.ts';
import { apply } from '../../test/real/kubectl.ts';
import { usageOf } from '../../test/real/usage.ts';
import { awsRace } from './race-aws.ts';
import type { RaceOutcome, RaceResult, StepResult } from './race-result.ts';
import { type Scenario, scenarios } from './race-scenarios.ts';
import { runStep } from './race-step.ts';
import { raceOnVirtualTime } from './race-virtual.ts';
import { realWorld } from './race-world.ts';

const settings = { KUBE_CLIENT_QPS: '200', KUBE_CLIENT_BURST: '300' };

/**
 * Runs a scenario, for ours alone if asked, or ours on virtual time; resolves to whether ours reached what is wanted of it.
 */
export async function race(name = 'up', who = 'both', seed = '1'): Promise<boolean> {
  const scenario = scenarioNamed(name);
  if (!['both', 'ours', 'virtual'].includes(who)) throw new Error(`ours, virtual, or nothing for both: ${who}`);
  console.log(`${name}: ${scenario.what}`);
  if (who === 'virtual') {
    printOutcome(await raceOnVirtualTime(scenario, { seed: Number(seed) }));
    return true;
  }
  const ours = await run('ours', scenario);
  print(ours);
  const upstream = who === 'both' ? await run('upstream', scenario) : undefined;
  if (upstream) print(upstream);
  const problems: string[] = [];
  for (const wanted of scenario.wanted) problems.push(...(await wanted(ours, upstream)));
  for (const problem of problems) console.log(`WORSE: ${problem}`);
  return problems.length === 0;
}

/** `aws-N` is made for a number of nodes: what it needs is read only when it is asked for. */
function scenarioNamed(name: string): Scenario {
  const nodes = /^aws-(\d+)$/.exec(name)?.[1];
  const scenario = nodes === undefined ? scenarios[name] : awsRace(Number(nodes));
  if (!scenario) throw new Error(`no such race: ${name}; there are ${Object.keys(scenarios).join(', ')} and aws-NODES`);
  return scenario;
}

async function run(controller: ControllerName, scenario: Scenario): Promise<RaceResult> {
  const plane = await startControlPlane({ workloads: true, kwok: true });
  try {
    await applyCrds(plane.kubeconfig);
    await apply(plane.kubeconfig, scenario.setup);
    const folder = mkdtempSync(join(tmpdir(), 'karpenter-race-'));
    const log = join(folder, `${controller}.log`);
    console.log(`log of ${controller} in ${log}`);
    const { typesFile } = scenario;
    const path = join(folder, 'instance-types.json');
    if (typesFile !== undefined) writeFileSync(path, typesFile);
    const env = { ...settings, ...(typesFile === undefined ? {} : { INSTANCE_TYPES_FILE_PATH: path }) };
    const program = await startController(controller, { kubeconfig: plane.kubeconfig, env, log });
    const world = realWorld(plane.kubeconfig, typesFile === undefined ? undefined : readInstanceTypes(typesFile).types);
    const clock = new RealClock();
    const bill = { nodeHours: 0, dollars: 0 };
    try {
      await world.start();
      const steps: StepResult[] = [];
      for (const step of scenario.steps) steps.push(await runStep(step, world, bill, clock));
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

function print(result: RaceResult): void {
  console.log(
    `${result.controller}: ${result.cpuSeconds.toFixed(1)} CPU s, peak RSS ${result.peakRssMib.toFixed(0)} MiB`,
  );
  printOutcome(result);
}

function printOutcome({ nodeHours, dollars, evictions, steps }: RaceOutcome): void {
  console.log(`  ${nodeHours.toFixed(3)} node-hours, ${dollars.toFixed(4)} $, ${evictions} evictions`);
  for (const step of steps) {
    const later = step.minuteLater ? `, ${step.minuteLater.dollarsPerHour.toFixed(3)} $/h a minute later` : '';
    console.log(
      `  ${step.name}: ${step.seconds.toFixed(1)} s, stable after ${step.stableSeconds.toFixed(1)} s` +
        `${later}, at its end ${step.nodes} nodes, ${step.dollarsPerHour.toFixed(3)} $/h`,
    );
  }
}
