// SPDX-License-Identifier: Apache-2.0
// A scenario from the empty stage to the swept one, in real time or in virtual time.
import { type Clock, RealClock, type Timer, VirtualClock } from '../../base/clock.ts';
import { SeededRandom, SystemRandom } from '../../base/random.ts';
import type { EmbeddedCloud } from '../embedded-clouds.ts';
import type { DemoEvent, Summary } from './events.ts';
import { drive } from './pace.ts';
import { play } from './play.ts';
import type { Scenario } from './scenario.ts';
import { openStage, type Stage } from './stage.ts';
import type { World } from './world.ts';

/** Shown to somebody: what happened, and the world at that moment. */
export type Show = (event: DemoEvent, world: World) => void;

export interface PerformOptions {
  readonly scenario: Scenario;
  readonly clouds: readonly EmbeddedCloud[];
  readonly show: Show;
  readonly signal: AbortSignal;
  readonly twoClusters?: boolean;
  /** Of all chance. Virtual time has 1 unless told; real time is different each time. */
  readonly seed?: number;
  /** On virtual time: so many times as fast as real time, or without a number as fast as it goes. */
  readonly virtual?: { readonly times?: number };
  /** Show the state this often, also when nothing has changed: for pictures with a clock in them. */
  readonly tickMs?: number;
}

/** Plays it. On virtual time the same seed tells the same events. Throws as `play` does; leaves nothing running. */
export async function perform(options: PerformOptions): Promise<Summary> {
  const { scenario, clouds, show, signal, seed, virtual, twoClusters = false } = options;
  const clock = virtual ? new VirtualClock() : undefined;
  const time = clock ?? new RealClock();
  const inTime = <T>(work: Promise<T>, times?: number): Promise<T> => (clock ? drive(clock, work, times) : work);
  const open: { stage?: Stage } = {};
  const emit = (event: DemoEvent): void => {
    // Before the curtain rises there is nothing to tell, and the summary is the last word.
    if (open.stage) show(event, open.stage.watcher.world);
    if (event.type === 'summary') delete open.stage;
  };
  // Time stands still until it is open: how long the machine takes to load files must not be part of the play.
  const stage = await openStage({
    clock: time,
    random: virtual || seed !== undefined ? new SeededRandom(seed ?? 1) : new SystemRandom(),
    clouds,
    emit,
    twoClusters,
    // Nobody falls silent in virtual time.
    ...(virtual ? { heartbeatMs: 0 } : {}),
  });
  open.stage = stage;
  const stopTicking = options.tickMs === undefined ? undefined : tick(stage, time, options.tickMs);
  try {
    const providers = clouds.map(({ name }) => name);
    return await inTime(play({ scenario, providers, stage, clock: time, emit, signal }), virtual?.times);
  } finally {
    stopTicking?.();
    await inTime(stage.close());
  }
}

function tick(stage: Stage, clock: Clock, everyMs: number): () => void {
  let timer: Timer;
  const next = (): Timer =>
    clock.after(everyMs, () => {
      stage.watcher.tellState(true);
      timer = next();
    });
  timer = next();
  return () => timer.cancel();
}
