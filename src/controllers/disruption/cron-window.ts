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
const remembered = new Map<string, Cron>();

/**
 * Whether the schedule was hit within the last `durationMs`, this instant and that one included. Throws CronError for a
 * schedule that cannot be read; one that never comes opens no window.
 */
export function isInWindow({ schedule, durationMs }: BudgetWindow, now: number): boolean {
  const cron = cronOf(schedule);
  const opened = now - durationMs;
  // Hits fall on whole minutes: one second earlier is before any that counts, and after any that does not.
  const hit = nextAfter(cron, opened - 1000);
  if (hit !== undefined && hit < opened) return (nextAfter(cron, hit) ?? Number.POSITIVE_INFINITY) <= now;
  return hit !== undefined && hit <= now;
}

function nextAfter(cron: Cron, ms: number): number | undefined {
  return cron.nextRun(new Date(ms))?.getTime();
}

function cronOf(schedule: string): Cron {
  const known = remembered.get(schedule);
  if (known) return known;
  const cron = parse(schedule);
  // Schedules come from users' objects: no more of them are kept than any cluster has.
  if (remembered.size >= mostRemembered) remembered.clear();
  remembered.set(schedule, cron);
  return cron;
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
