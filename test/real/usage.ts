// SPDX-License-Identifier: Apache-2.0
// What a process cost, as the kernel counted it (Linux).
import { readdirSync, readFileSync } from 'node:fs';

/** Of a process and all its descendants that still live. */
export interface Usage {
  readonly cpuSeconds: number;
  readonly peakRssMib: number;
}

/** The kernel counts CPU in hundredths of a second for user space, whatever its own tick (USER_HZ). */
const ticksPerSecond = 100;

/** Reads it now: a process that ended is gone from here. */
export function usageOf(pid: number): Usage {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync('/proc')) {
    const child = Number(entry);
    if (!Number.isInteger(child)) continue;
    const parent = statOf(child)?.parent;
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), child]);
  }
  const sum = (process: number): Usage => {
    const own = { cpuSeconds: (statOf(process)?.ticks ?? 0) / ticksPerSecond, peakRssMib: peakRssMib(process) };
    return (children.get(process) ?? []).map(sum).reduce(plus, own);
  };
  return sum(pid);
}

const plus = (a: Usage, b: Usage): Usage => ({
  cpuSeconds: a.cpuSeconds + b.cpuSeconds,
  peakRssMib: a.peakRssMib + b.peakRssMib,
});

function statOf(pid: number): { parent: number; ticks: number } | undefined {
  // The name, in parentheses, may hold anything; what follows is state, parent, ... user time (12th), system time.
  const fields = read(`/proc/${pid}/stat`)
    ?.replace(/^.*\) /s, '')
    .split(' ');
  return fields && { parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) };
}

function peakRssMib(pid: number): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`) ?? '')?.[1] ?? 0) / 1024;
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined; // It ended between two looks.
  }
}
