// SPDX-License-Identifier: Apache-2.0
// The same races on virtual time: the whole program in one process with an embedded cluster. Minutes take seconds and nothing
// depends on the machine, so that what a race costs and moves can be compared between two states of the code.
import { kwokNodeClassKind } from '../../src/api/kwok-node-class.ts';
import { nodePoolKind } from '../../src/api/node-pool.ts';
import { VirtualClock } from '../../src/base/clock.ts';
import { SeededRandom } from '../../src/base/random.ts';
import { drive } from '../../src/cli/demo/pace.ts';
import { startEmbeddedAutoscaler } from '../../src/cli/embedded-autoscaler.ts';
import type { EmbeddedCloud } from '../../src/cli/embedded-clouds.ts';
import { EmbeddedCluster, systemNode } from '../../src/embedded/cluster.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { kinds } from '../../src/kube/kinds.ts';
import type { KubeObject, ResourceType } from '../../src/kube/object.ts';
import type { RaceOutcome, StepResult } from './race-result.ts';
import type { Scenario, Step } from './race-scenarios.ts';
import { runStep } from './race-step.ts';
import { RaceWorld } from './race-world.ts';

export interface VirtualRaceOptions {
  readonly seed: number;
  /** Called when a step begins, with what can be seen from then on. */
  readonly onStep?: (step: Step, world: RaceWorld, clock: VirtualClock) => void;
  /** Lines of the controller's log. */
  readonly onLog?: (line: string) => void;
}

const types = [kinds.Deployment, kinds.PodDisruptionBudget, nodePoolKind, kwokNodeClassKind] as readonly ResourceType[];

async function applyTo(client: KubeClient, objects: readonly object[]): Promise<void> {
  for (const object of objects as readonly KubeObject[]) {
    const type = types.find(({ kind }) => kind === object.kind);
    if (!type) throw new Error(`a race has no ${object.kind}`);
    await client.resource(type).apply(object, { fieldManager: 'race' });
  }
}

/** Runs a scenario with our controller. */
export async function raceOnVirtualTime(scenario: Scenario, options: VirtualRaceOptions): Promise<RaceOutcome> {
  const [clock, random] = [new VirtualClock(), new SeededRandom(options.seed)];
  const cluster = await EmbeddedCluster.start({
    clock,
    random,
    heartbeatMs: 0,
    baseNodes: [systemNode('system-1', 'test-zone-a')],
  });
  const failures: unknown[] = [];
  const cloud: EmbeddedCloud = {
    name: 'kwok',
    scenarios: [],
    furnish: (client) => applyTo(client, scenario.setup),
  };
  const autoscaler = await startEmbeddedAutoscaler({
    cluster,
    clock,
    random,
    log: { write: (line) => options.onLog?.(line) },
    clouds: [cloud],
    node: 'system-1',
    onFailure: (error) => failures.push(error),
  });
  const client = cluster.client();
  const world = new RaceWorld({ client, clock, apply: (objects) => applyTo(client, objects) });
  const bill = { nodeHours: 0, dollars: 0 };
  const steps: StepResult[] = [];
  try {
    await drive(clock, world.start());
    for (const step of scenario.steps) {
      options.onStep?.(step, world, clock);
      steps.push(await drive(clock, runStep(step, world, bill, clock)));
    }
  } finally {
    await drive(clock, world.stop());
    await drive(clock, autoscaler.stop());
    await cluster.close();
  }
  if (failures.length > 0) throw failures[0];
  return { steps, ...bill, evictions: world.evictions };
}
