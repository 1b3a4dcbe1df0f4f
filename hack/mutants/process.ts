// SPDX-License-Identifier: Apache-2.0
// Running the tools of this repository in a copy of it.
import { spawn } from 'node:child_process';

export interface Ended {
  /** Undefined for what had to be ended. */
  readonly code: number | undefined;
  readonly output: string;
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** The groups that run now: who ends this process means them, too. */
const groups = new Set<number>();

function endAll(): void {
  for (const pid of groups) process.kill(-pid, 'SIGKILL');
  process.exit(143);
}

export interface Limits {
  readonly env?: Readonly<Record<string, string>>;
  readonly limitMs?: number;
}

/** Runs `hack/run.js COMMAND` to its end, or to the end of its time. */
export function ended(command: readonly string[], folder: string, { env = {}, limitMs }: Limits = {}): Promise<Ended> {
  return new Promise((settle, reject) => {
    const child = spawn(process.execPath, ['hack/run.js', ...command], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own: a runner has workers, which must end with it.
      detached: true,
      env: { ...process.env, ...env },
    });
    if (groups.size === 0) for (const signal of signals) process.on(signal, endAll);
    groups.add(child.pid!);
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output += text));
    let late = false;
    const end = (): void => {
      late = true;
      process.kill(-child.pid!, 'SIGKILL');
    };
    const timer = limitMs === undefined ? undefined : setTimeout(end, limitMs);
    child.on('error', reject);
    child.on('close', (code) => {
      clearTimeout(timer);
      groups.delete(child.pid!);
      if (groups.size === 0) for (const signal of signals) process.off(signal, endAll);
      settle({ code: late ? undefined : (code ?? 1), output });
    });
  });
}
