// SPDX-License-Identifier: Apache-2.0
// What an API server does to its clients on a bad day.
import type { VirtualClock } from '../../base/clock.ts';
import type { Store } from '../../embedded/store.ts';
import type { TransportRequest } from '../../kube/transport.ts';
import type { Coverage, Fault } from '../contract.ts';
import { between, chance } from '../draw.ts';
import type { Fleet } from '../process/fleet.ts';
import { type Fate, isLease, isWrite, refusal, type Weather } from './weather.ts';

export interface ApiFaultParts {
  /** There are two API servers: one of them may be away alone. */
  readonly apart?: boolean | undefined;
  readonly clock: VirtualClock;
  readonly weather: Weather;
  readonly fleet: Fleet;
  readonly stores: readonly Store[];
  readonly coverage: Coverage;
}

/** Answers that a client must be ready for at any write. */
const refusals = {
  conflict: refusal(409, 'Conflict', 'the object has been modified; please apply your changes to the latest version'),
  throttled: refusal(429, 'TooManyRequests', 'the server has received too many requests', { 'retry-after': '1' }),
  error: refusal(500, 'InternalError', 'etcdserver: leader changed'),
  unavailable: refusal(503, 'ServiceUnavailable', 'the server is currently unable to handle the request'),
};

export function apiFaults(parts: ApiFaultParts): Fault[] {
  const { weather, coverage, fleet, stores, clock } = parts;
  const rule = (
    name: string,
    share: readonly [number, number],
    applies: (request: TransportRequest) => boolean,
    fate: (r: { int(below: number): number }) => Partial<Fate>,
  ): Fault => ({
    name,
    weight: 1,
    inject: (random) =>
      weather.add({
        share: share[0] + random.next() * (share[1] - share[0]),
        applies: (request) => !isLease(request) && applies(request),
        bite: (r) => {
          coverage.count('fault', name);
          return fate(r);
        },
      }),
  });
  const update = ({ method }: TransportRequest): boolean => method === 'PUT' || method === 'PATCH';
  const everything = (): boolean => true;
  const halfAway: Fault = {
    name: 'api/half-away',
    weight: 2,
    inject: (random) => {
      const isOurs = chance(random, 0.5);
      return weather.add({
        share: 1,
        applies: (request) => !isLease(request) && request.path.startsWith('/apis/karpenter') === isOurs,
        bite: () => {
          coverage.count('fault', 'api/half-away');
          return { unreachable: true };
        },
      });
    },
  };
  return [
    ...(parts.apart ? [halfAway] : []),
    rule('api/slow', [0.2, 1], everything, (r) => ({ thereMs: r.int(3000), backMs: r.int(3000) })),
    rule('api/conflict', [0.1, 0.6], update, () => ({ refusal: refusals.conflict })),
    rule('api/throttled', [0.1, 0.6], everything, () => ({ refusal: refusals.throttled })),
    rule('api/error', [0.1, 0.6], everything, () => ({ refusal: refusals.error })),
    rule('api/unavailable', [1, 1], everything, () => ({ refusal: refusals.unavailable })),
    rule('api/unreachable', [0.2, 1], everything, () => ({ unreachable: true })),
    rule('api/answer-lost', [0.1, 0.5], isWrite, () => ({ lost: true })),
    {
      name: 'api/lease-unreachable',
      weight: 1,
      inject: () =>
        weather.add({
          share: 1,
          applies: isLease,
          bite: () => {
            coverage.count('fault', 'api/lease-unreachable');
            return { unreachable: true };
          },
        }),
    },
    {
      name: 'api/watches-break',
      weight: 1,
      inject: (random) => {
        const everyMs = between(random, 2, 60) * 1000;
        let timer = clock.after(0, breakAll);
        function breakAll(): void {
          for (const process of fleet.alive) coverage.count('fault', 'api/watches-break', process.breakWatches());
          timer = clock.after(everyMs, breakAll);
        }
        return () => timer.cancel();
      },
    },
    {
      name: 'api/watches-expire',
      weight: 1,
      inject: () => {
        // Nothing is served for a while, and when it is over the history of that time is gone: whoever comes back is told to
        // list anew, and hears of what was deleted meanwhile only by not finding it.
        const serve = weather.add({
          share: 1,
          applies: (request) => !isLease(request),
          bite: () => ({ refusal: refusals.unavailable }),
        });
        for (const process of fleet.alive) coverage.count('fault', 'api/watches-expire', process.breakWatches());
        return () => {
          for (const store of stores) for (const collection of store.collections()) collection.compact();
          serve();
        };
      },
    },
    {
      name: 'api/watches-late',
      weight: 1.5,
      inject: (random) => {
        coverage.count('fault', 'api/watches-late');
        const before = weather.watchLagMs;
        const lag = between(random, 1, 20) * 1000;
        weather.watchLagMs = Math.max(before, lag);
        return () => {
          weather.watchLagMs = 0;
        };
      },
    },
  ];
}
