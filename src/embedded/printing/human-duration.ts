// SPDX-License-Identifier: Apache-2.0
// Ages as kubectl shows them: `45s`, `3m12s`, `5h`, `12d`.
import { parseTime } from '../../kube/time.ts';

/** A span in at most two units, the coarser the longer it is. */
export function humanDuration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return twoUnits(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return twoUnits(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (days < 8) return twoUnits(days, 'd', hours % 24, 'h');
  if (days < 365 * 2) return `${days}d`;
  const years = Math.floor(days / 365);
  return years < 8 ? twoUnits(years, 'y', days % 365, 'd') : `${years}y`;
}

/** How long ago a timestamp was; `<unknown>` when there is none. */
export function age(timestamp: unknown, now: number): string {
  if (typeof timestamp !== 'string' || timestamp === '') return '<unknown>';
  try {
    return humanDuration(now - parseTime(timestamp));
  } catch {
    // A custom resource may hold any text in a column of type date.
    return '<invalid>';
  }
}

function twoUnits(big: number, bigUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${big}${bigUnit}` : `${big}${bigUnit}${small}${smallUnit}`;
}
