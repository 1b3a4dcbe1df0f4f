// SPDX-License-Identifier: Apache-2.0
// What can be asked of timestamps and durations in CEL. Days of the week and of the year count from 0.

import { CelDuration, CelError, type CelFunction, CelTimestamp, int, noSuchOverload } from './cel-values.ts';

const units = {
  getHours: 3_600_000_000_000n,
  getMinutes: 60_000_000_000n,
  getSeconds: 1_000_000_000n,
  getMilliseconds: 1_000_000n,
} as const;

const onTimestamp: Readonly<Record<string, (date: Date) => number>> = {
  getFullYear: (date) => date.getUTCFullYear(),
  getMonth: (date) => date.getUTCMonth(),
  getDate: (date) => date.getUTCDate(),
  getDayOfMonth: (date) => date.getUTCDate() - 1,
  getDayOfWeek: (date) => date.getUTCDay(),
  getDayOfYear: (date) => Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / 86_400_000),
  getHours: (date) => date.getUTCHours(),
  getMinutes: (date) => date.getUTCMinutes(),
  getSeconds: (date) => date.getUTCSeconds(),
  getMilliseconds: (date) => date.getUTCMilliseconds(),
};

export const timeMethods: ReadonlyMap<string, CelFunction> = new Map(
  Object.entries(onTimestamp).map(([name, read]): [string, CelFunction] => [
    name,
    (value, zone) => {
      if (value instanceof CelDuration) return ofDuration(name, value.nanos);
      if (!(value instanceof CelTimestamp)) throw noSuchOverload();
      const ms = Number(floorDivide(value.nanos, 1_000_000n));
      return read(new Date(ms + (zone === undefined ? 0 : offsetOf(zone, ms))));
    },
  ]),
);

function ofDuration(name: string, nanos: bigint): number | bigint {
  if (!Object.hasOwn(units, name)) throw noSuchOverload();
  return int(nanos / units[name as keyof typeof units]);
}

function floorDivide(amount: bigint, divisor: bigint): bigint {
  const quotient = amount / divisor;
  return amount < 0n && quotient * divisor !== amount ? quotient - 1n : quotient;
}

/** Milliseconds east of UTC, for `+02:00` or a name such as `Europe/Paris`. */
function offsetOf(zone: unknown, ms: number): number {
  if (typeof zone !== 'string') throw noSuchOverload();
  const fixed = /^([+-]?)(\d\d?):(\d\d)$/.exec(zone);
  if (fixed !== null) {
    const minutes = Number(fixed[2]) * 60 + Number(fixed[3]);
    return (fixed[1] === '-' ? -minutes : minutes) * 60_000;
  }
  try {
    const parts = new Intl.DateTimeFormat('en-US', {
      timeZone: zone || 'UTC',
      timeZoneName: 'longOffset',
    }).formatToParts(ms);
    const offset = /GMT(?:([+-])(\d\d):(\d\d))?/.exec(parts.find((part) => part.type === 'timeZoneName')?.value ?? '');
    const minutes = Number(offset?.[2] ?? 0) * 60 + Number(offset?.[3] ?? 0);
    return (offset?.[1] === '-' ? -minutes : minutes) * 60_000;
  } catch {
    // Intl says nothing more than that it does not know the zone.
    throw new CelError(`unknown time zone ${zone}`);
  }
}
