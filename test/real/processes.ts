// SPDX-License-Identifier: Apache-2.0
// Child processes of the tests: started with their output kept for the moment they fail, always ended.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { createServer } from 'node:net';

/** A running program and the end of what it printed; with `log`, all of it in that file. */
export class RunningProgram {
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<number | null>;
  /** It leads a process group of its own, and signals go to all of it, as a terminal's Ctrl-C does. */
  readonly #group: boolean;
  #output = '';

  constructor(
    name: string,
    path: string,
    args: readonly string[],
    options: { env?: NodeJS.ProcessEnv; cwd?: string; uid?: number; gid?: number; group?: boolean; log?: string } = {},
  ) {
    this.#name = name;
    const { group = false, log, ...rest } = options;
    this.#group = group;
    this.#child = spawn(path, args, { ...rest, detached: group, stdio: ['ignore', 'pipe', 'pipe'] });
    const file = log ? createWriteStream(log) : undefined;
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (file) stream?.pipe(file);
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-200_000);
      });
    }
    this.#exited = new Promise((resolve, reject) => {
      this.#child.on('exit', resolve);
      this.#child.on('error', reject);
    });
    // Looked at in `until` and `stop`; an early failure must not count as unhandled.
    this.#exited.catch(() => undefined);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Resolves with its exit code once it has ended by itself. */
  get ended(): Promise<number | null> {
    return this.#exited;
  }

  get output(): string {
    return this.#output;
  }

  /** Resolves when `ready` gives a value; fails with the program's last words when it ends or takes too long. */
  async until<T>(ready: () => T | undefined | false | Promise<T | undefined | false>, timeoutMs = 60_000): Promise<T> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const value = await Promise.resolve()
        .then(ready)
        .catch(() => undefined);
      if (value !== undefined && value !== false) return value;
      if (this.#child.exitCode !== null || performance.now() > deadline) {
        const why =
          this.#child.exitCode === null ? `was not ready within ${timeoutMs} ms` : `ended with ${this.#child.exitCode}`;
        throw new Error(`${this.#name} ${why}:\n${this.#output.slice(-4000)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  #signal(signal: NodeJS.Signals): void {
    if (!this.#group) this.#child.kill(signal);
    else if (this.#child.pid !== undefined && this.#child.exitCode === null) process.kill(-this.#child.pid, signal);
  }

  /** Asks it to end, then insists. Returns its exit code. */
  async stop(signal: NodeJS.Signals = 'SIGTERM', graceMs = 10_000): Promise<number | null> {
    this.#signal(signal);
    const insist = setTimeout(() => this.#signal('SIGKILL'), graceMs);
    const code = await this.#exited;
    clearTimeout(insist);
    return code;
  }
}

const given = new Set<number>();

/**
 * A port on loopback that was free a moment ago, and was not given before. It is below those that the system picks for
 * the near end of connections: one of those may be taken by any client before the program listens.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(false) : reject(error),
    );
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** Launches a program and waits until it is ready; on other ports when somebody took one of them in the meantime. */
export async function startListening(
  launch: () => Promise<{ program: RunningProgram; health: number }>,
): Promise<RunningProgram> {
  for (let triesLeft = 4; ; triesLeft--) {
    const { program, health } = await launch();
    try {
      await program.until(async () => (await fetch(`http://127.0.0.1:${health}/readyz`)).ok);
      return program;
    } catch (error) {
      await program.stop();
      if (triesLeft === 0 || !/EADDRINUSE|address already in use/i.test(program.output)) throw error;
    }
  }
}

/** What a command printed and how it ended; never throws on a non-zero exit. */
export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command to its end. */
export function execute(
  path: string,
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; cwd?: string; input?: string; timeoutMs?: number } = {},
): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = spawn(path, args, { env: options.env, cwd: options.cwd, timeout: options.timeoutMs ?? 60_000 });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.on('error', reject);
    child.on('close', (code) => resolve({ code: code ?? -1, stdout, stderr }));
    child.stdin.on('error', () => undefined); // It may end without reading: its exit code tells.
    child.stdin.end(options.input ?? '');
  });
}
