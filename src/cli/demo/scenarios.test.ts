// SPDX-License-Identifier: Apache-2.0
// Every scenario that the demo plays, on virtual time: what it promises comes about, and nothing is left.
import { describe, expect, test } from 'vitest';
import { cloudsNamed, embeddedClouds } from '../embedded-clouds.ts';
import type { Bought, DemoEvent, Summary } from './events.ts';
import { deployment } from './objects.ts';
import { type PerformOptions, perform } from './perform.ts';
import { DemoFailedError } from './play.ts';
import { allRunning, type Scenario } from './scenario.ts';
import { linesOf } from './text.ts';
import type { World } from './world.ts';

interface Played {
  readonly events: DemoEvent[];
  readonly summary: Summary;
  /** The worlds in which a goal was reached, one after the other. */
  readonly reached: World[];
}

async function played(name: string, options: Partial<PerformOptions> = {}): Promise<Played> {
  const clouds = cloudsNamed('kwok');
  const scenario = clouds.flatMap((cloud) => cloud.scenarios).find((one) => one.name === name)!;
  const events: DemoEvent[] = [];
  const reached: World[] = [];
  const show = (event: DemoEvent, world: World): void => {
    events.push(event);
    if (event.type === 'reached') reached.push(world);
  };
  const { signal } = new AbortController();
  const summary = await perform({ scenario, clouds, show, signal, virtual: {}, ...options });
  return { events, summary, reached };
}

const bought = ({ events }: Played): Bought[] => events.filter((event) => event.type === 'bought');

/** Everything that was bought is gone and paid for, and the summary is the last word. */
function expectCleanEnd({ events, summary }: Played): void {
  expect(summary).toMatchObject({ succeeded: true, left: { pods: 0, machines: 0, pricePerHour: 0 } });
  expect(summary.bought.length).toBeGreaterThan(0);
  for (const machine of summary.bought) {
    expect(machine.livedSeconds).toBeGreaterThan(0);
    expect(machine.cost).toBeCloseTo((machine.pricePerHour * machine.livedSeconds!) / 3600, 5);
  }
  expect(summary.cost).toBeCloseTo(
    summary.bought.reduce((sum, { cost }) => sum + cost, 0),
    6,
  );
  expect(summary.most.pricePerHour).toBeGreaterThan(0);
  expect(events.at(-1)).toEqual(summary);
  expect(events.map(({ at }) => at)).toEqual(events.map(({ at }) => at).toSorted((a, b) => a - b));
  const states = events.filter((event) => event.type === 'state');
  expect(states.at(-1)).toMatchObject({ machines: 0, nodes: 2, pricePerHour: 0 });
}

describe('inflate', () => {
  test.each([[false], [true]])('five pods come and go with their machine (two clusters: %s)', async (twoClusters) => {
    const play = await played('inflate', { twoClusters });
    expectCleanEnd(play);
    const [up, down] = play.reached as [World, World];
    expect(up.pods).toEqual({ pending: 0, starting: 0, running: 5, leaving: 0 });
    expect(up.machines.reduce((sum, { pods }) => sum + pods, 0)).toBe(5);
    expect(up.pricePerHour).toBe(play.summary.most.pricePerHour);
    expect(down.machines).toEqual([]);
    expect(play.summary.pods.started).toBe(5);
    const machines = bought(play);
    expect(machines.reduce((sum, { requests }) => sum + Number(requests['cpu']), 0)).toBe(5);
    const [machine] = machines;
    expect(machine!.capacityType).toBe('spot');
    const { cpu, pods } = machine!.requests;
    expect(machine!.why).toBe(`the cheapest of ${machine!.candidates} types that hold ${pods} pods and ${cpu} CPUs`);
    expect(machine!.next!.pricePerHour).toBeGreaterThan(machine!.pricePerHour);
    expect(machine!.onDemandPricePerHour).toBeGreaterThan(machine!.pricePerHour);
    expect(play.summary.bought[0]!.removedFor).toBe('Empty');
  });
});

test('nginx: two hundred pods that ask for nothing get a place each', async () => {
  const play = await played('nginx');
  expectCleanEnd(play);
  expect(play.reached[0]!.pods.running).toBe(200);
  expect(play.reached[0]!.machines.reduce((sum, { pods }) => sum + pods, 0)).toBe(200);
  expect(play.summary.pods).toMatchObject({ started: 200 });
});

test('zones: every zone has as many pods as the others', async () => {
  const play = await played('zones');
  expectCleanEnd(play);
  expect(play.reached.slice(0, 2).map(({ podsByZone }) => [...podsByZone.values()])).toEqual([
    [2, 2, 2, 2],
    [5, 5, 5, 5],
  ]);
});

describe('spot', () => {
  test.each([[false], [true]])('what the cloud takes back is replaced (two clusters: %s)', async (twoClusters) => {
    const play = await played('spot', { twoClusters });
    expectCleanEnd(play);
    const [before, after] = play.reached as [World, World];
    const gone = before.machines.filter((one) => after.machines.every(({ nodeClaim }) => nodeClaim !== one.nodeClaim));
    expect(gone.map(({ capacityType }) => capacityType)).toEqual(['spot']);
    expect(after.pods.running).toBe(23);
    const onDemand = after.machines.filter(({ capacityType }) => capacityType === 'on-demand');
    expect(onDemand.reduce((sum, { pods }) => sum + pods, 0)).toBe(3);
    const reasons = play.summary.bought.map(({ removedFor }) => removedFor);
    expect(reasons.filter((reason) => reason === 'Deleted')).toHaveLength(1);
  });
});

test('the same seed tells the same story to the byte, another one another', async () => {
  const told = async (seed: number): Promise<string> =>
    (await played('spot', { seed })).events.map((event) => JSON.stringify(event)).join('\n');
  const first = await told(7);
  expect(await told(7)).toBe(first);
  expect(await told(8)).not.toBe(first);
});

test('a scenario that does not come to its end says what was missing, and why', async () => {
  const scenario: Scenario = {
    name: 'giant',
    description: '',
    acts: [
      {
        title: 'a pod too large for any machine is created',
        do: (hands) => hands.create(deployment('giant', { replicas: 1, requests: { cpu: '4000' } })),
        goal: () => allRunning(1),
      },
      { title: 'this is never done', do: () => Promise.reject(new Error('it was done')) },
    ],
  };
  const events: DemoEvent[] = [];
  const show = (event: DemoEvent): void => void events.push(event);
  const { signal } = new AbortController();
  const failed = perform({ scenario, clouds: embeddedClouds, show, signal, virtual: {} });
  await expect(failed).rejects.toThrow(DemoFailedError);
  await expect(failed).rejects.toThrow(
    /^the scenario giant did not reach its end: "1 pods are running" was not true within 120 s \(0 pods running, 0 starting, 1 pending, 0 leaving; 0 machines\); the autoscaler says: could not schedule pod: /,
  );
  expect(events.at(-1)).toMatchObject({ type: 'summary', succeeded: false, left: { pods: 1 } });
  expect(linesOf(events.at(-1)!)).toContain('It did not come to its end.');
});

test('who stops it is obeyed at once, and nothing is left running', async () => {
  const stop = new AbortController();
  const [cloud] = embeddedClouds;
  const show = ({ type }: DemoEvent): void => {
    if (type === 'bought') stop.abort(new Error('enough'));
  };
  const scenario = cloud!.scenarios[0]!;
  await expect(perform({ scenario, clouds: [cloud!], show, signal: stop.signal, virtual: {} })).rejects.toThrow(
    'enough',
  );
});
