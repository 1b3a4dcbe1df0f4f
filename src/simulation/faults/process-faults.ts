// SPDX-License-Identifier: Apache-2.0
// What happens to the processes of the autoscaler: they are killed at any await, hang, come back, and have wrong clocks.
import type { VirtualClock } from '../../base/clock.ts';
import type { Coverage, Fault } from '../contract.ts';
import { between, chance, pick } from '../draw.ts';
import type { KillMoment } from '../process/controller-process.ts';
import type { Fleet } from '../process/fleet.ts';

export interface ProcessFaultParts {
  readonly clock: VirtualClock;
  readonly fleet: Fleet;
  readonly coverage: Coverage;
}

const nothing = (): void => undefined;

export function processFaults({ fleet, coverage, clock }: ProcessFaultParts): Fault[] {
  const killAtWrite = (moment: KillMoment): Fault => ({
    name: `process/killed-${moment}-write`,
    weight: 1.5,
    inject: (random) => {
      const process = pick(random, fleet.alive);
      if (!process) return nothing;
      process.killAtWrite(between(random, 1, 12), moment, () => {
        coverage.count('fault', `process/killed-${moment}-write`);
        fleet.replace(process, `killed ${moment} a write`);
      });
      return () => void process.spare();
    },
  });
  return [
    killAtWrite('before'),
    killAtWrite('after'),
    {
      name: 'process/killed',
      weight: 1,
      inject: (random) => {
        const process = pick(random, fleet.alive);
        if (!process) return nothing;
        // At any moment, not only when something is written.
        const timer = clock.after(random.int(5000), () => {
          if (process.isDead) return;
          coverage.count('fault', 'process/killed');
          fleet.replace(process, 'killed');
        });
        return () => timer.cancel();
      },
    },
    {
      name: 'process/hangs',
      weight: 1,
      inject: (random) => {
        const process = pick(
          random,
          fleet.alive.filter(({ isHung }) => !isHung),
        );
        if (!process) return nothing;
        coverage.count('fault', 'process/hangs');
        process.hang();
        return () => process.resume();
      },
    },
    {
      name: 'process/clock-wrong',
      weight: 0.7,
      inject: (random) => {
        const process = pick(random, fleet.alive);
        if (!process) return nothing;
        coverage.count('fault', 'process/clock-wrong');
        process.clock.skewMs = (chance(random, 0.5) ? 1 : -1) * between(random, 1, 120) * 1000;
        return () => {
          process.clock.skewMs = 0;
        };
      },
    },
  ];
}
