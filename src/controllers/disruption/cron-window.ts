// SPDX-License-Identifier: Apache-2.0
// Whether a moment lies in a window that a cron schedule opens. In UTC, with the five fields and shorthands that
// Kubernetes' own CronJobs know, and nothing beyond them.
import { Cron } from 'croner';
import type { BudgetWindow } from '../../api/budgets.ts';
import { KarpenterError } from '../../base/errors.ts';

/** A schedule that cannot be read. */
export class CronError extends KarpenterError {
  constructor(schedule: string, cause?: unknown) {
    super('KRP_CRON_INVALID', `schedule ${JSON.stringify(schedule)} cannot be read`, { cause });
  }
}

const shorthands = new Set(['@annually', '@yearly', '@monthly', '@weekly', '@daily', '@midnight', '@hourly']);
/** Numbers, names of days and months, ranges, steps and lists: the extensions of other crons are refused. */
const field = /^(?:[0-9*?/,-]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat)+$/i;
const mostRemembered = 1000;
const remembered = new Map<string, Schedule>();

/** A schedule, and the last hit that was looked for: the next after any moment between `asked` and `hit` is the same. */
interface Schedule {
  readonly cron: Cron;
  asked: number;
  hit: number;
}

/**
 * Whether the schedule was hit within the last `durationMs`, this instant and that one included. Throws CronError for a
 * schedule that cannot be read; one that never comes opens no window.
 */
export function isInWindow({ schedule, durationMs }: BudgetWindow, now: number): boolean {
  const read = scheduleOf(schedule);
  const opened = now - durationMs;
  // Hits fall on whole minutes: one second earlier is before any that counts, and after any that does not.
  const hit = nextAfter(read, opened - 1000);
  return (hit < opened ? nextAfter(read, hit) : hit) <= now;
}

/** The first hit after a moment; infinite when there is none. */
function nextAfter(schedule: Schedule, ms: number): number {
  if (ms >= schedule.asked && ms < schedule.hit) return schedule.hit;
  const hit = schedule.cron.nextRun(new Date(ms))?.getTime() ?? Number.POSITIVE_INFINITY;
  schedule.asked = ms;
  schedule.hit = hit;
  return hit;
}

function scheduleOf(text: string): Schedule {
  const known = remembered.get(text);
  if (known) return known;
  const schedule = { cron: parse(text), asked: Number.POSITIVE_INFINITY, hit: Number.NEGATIVE_INFINITY };
  // Schedules come from users' objects: no more of them are kept than any cluster has.
  if (remembered.size >= mostRemembered) remembered.clear();
  remembered.set(text, schedule);
  return schedule;
}

function parse(schedule: string): Cron {
  const text = schedule.trim();
  const fields = text.split(/\s+/);
  if (!shorthands.has(text) && !(fields.length === 5 && fields.every((part) => field.test(part)))) {
    throw new CronError(schedule);
  }
  try {
    return new Cron(text.replaceAll('?', '*'), { timezone: 'UTC', paused: true, sloppyRanges: true });
  } catch (error) {
    throw new CronError(schedule, error);
  }
}
