// SPDX-License-Identifier: Apache-2.0
// What the controller costs on a large cluster: it runs as users run it (the built package, HTTPS, a kubeconfig), the
// cluster in another process. CPU and memory come from the kernel.
import { type ChildProcess, execFileSync, fork, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { smallYoungSpace } from '../bin/heap.js';
import { RealClock } from '../src/base/clock.ts';
import type { Answer, Command } from './controller-cluster.ts';
import type { Group, Progress, Row } from './rows.ts';

const clock = new RealClock();
/** A window ends when no pod came for this long: the controller's default. */
const batchIdleMs = 1000;
const burst = 1000;
const touched = 10_000;
const idleMs = 20_000;
const sizes = [
  { nodes: 5000, pods: 50_000 },
  { nodes: 500, pods: 5000 },
] as const;

/** What the issue asks for, at the full size. */
const targets = { syncSeconds: 15, idlePercent: 5, megabytes: 500, claimsSeconds: 3, eventMicros: 100 } as const;

/** A process and what the kernel knows about it. */
class Measured {
  readonly child: ChildProcess;

  constructor(child: ChildProcess) {
    this.child = child;
  }

  /** Seconds on a CPU since it started, all threads. */
  get cpuSeconds(): number {
    const stat = readFileSync(`/proc/${this.child.pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // utime and stime are the 14th and 15th field; ticks are hundredths of a second on every Linux we know.
    return (Number(fields[11]) + Number(fields[12])) / 100;
  }

  /** What it ever read, from files and from the network. */
  get bytesRead(): number {
    return Number(/rchar: (\d+)/.exec(readFileSync(`/proc/${this.child.pid}/io`, 'utf8'))?.[1]);
  }

  /** `VmRSS` is what it holds now, `VmHWM` the most it ever held. */
  megabytes(field: 'VmRSS' | 'VmHWM'): number {
    const status = readFileSync(`/proc/${this.child.pid}/status`, 'utf8');
    return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1024;
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null) return;
    const gone = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGKILL');
    await gone;
  }
}

class Cluster extends Measured {
  ask<D extends Command['do']>(command: Extract<Command, { do: D }>): Promise<Extract<Answer, { of: D }>> {
    this.child.send(command);
    return this.answer(command.do);
  }

  answer<D extends Answer['of']>(of: D): Promise<Extract<Answer, { of: D }>> {
    return new Promise((resolve, reject) => {
      const onMessage = (answer: Answer): void => {
        if (answer.of !== of) return;
        this.child.off('message', onMessage);
        resolve(answer as Extract<Answer, { of: D }>);
      };
      this.child.on('message', onMessage);
      this.child.once('exit', (code) => reject(new Error(`the cluster ended with ${code}`)));
    });
  }
}

const root = fileURLToPath(new URL('..', import.meta.url));
const built = join(root, 'dist/cli/main.js');

export const rows: Group = async (progress, wanted) => {
  const results: Row[] = [];
  progress('building the package');
  execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
  for (const size of sizes) {
    const names = namesOf(size.nodes);
    if (Object.values(names).some(wanted)) results.push(...(await measure(size, progress)));
  }
  return results.filter(({ name }) => wanted(name));
};

function namesOf(nodes: number) {
  return {
    sync: `controller/sync-${nodes}`,
    idle: `controller/idle-cpu-${nodes}`,
    memory: `controller/rss-${nodes}`,
    claims: `controller/claims-for-${burst}-pods-${nodes}`,
    event: `controller/pod-event-${nodes}`,
  } as const;
}

async function measure({ nodes, pods }: (typeof sizes)[number], progress: Progress): Promise<Row[]> {
  const names = namesOf(nodes);
  const folder = mkdtempSync(join(tmpdir(), 'karpenter-bench-'));
  const kubeconfig = join(folder, 'kubeconfig');
  const script = fileURLToPath(new URL('./controller-cluster.ts', import.meta.url));
  progress(`filling a cluster with ${nodes} nodes and ${pods} pods`);
  const cluster = new Cluster(
    fork(script, [kubeconfig, String(nodes), String(pods)], { execArgv: ['--max-old-space-size=6144'] }),
  );
  let controller: Measured | undefined;
  try {
    await cluster.answer('ready');
    const [healthPort, metricsPort] = [await freePort(), await freePort()];
    progress('starting the controller');
    const started = clock.monotonic();
    controller = new Measured(startController(kubeconfig, healthPort, metricsPort));
    await untilReady(healthPort, controller);
    const syncSeconds = (clock.monotonic() - started) / 1000;
    const syncCpu = controller.cpuSeconds;
    progress(`synced after ${syncSeconds.toFixed(1)} s, ${syncCpu.toFixed(1)} s of CPU`);
    // What follows from the first look at everything is work, not rest.
    await quiet(controller, progress);

    progress(`idle for ${idleMs / 1000} s`);
    const idleFrom = { cpu: controller.cpuSeconds, at: clock.monotonic() };
    const { sent } = await cluster.ask({ do: 'heartbeats', ms: idleMs });
    const idleSeconds = (clock.monotonic() - idleFrom.at) / 1000;
    const idlePercent = ((controller.cpuSeconds - idleFrom.cpu) / idleSeconds) * 100;
    const idleMegabytes = controller.megabytes('VmRSS');

    progress(`changing ${touched} pods`);
    const eventsFrom = { cpu: controller.cpuSeconds, at: clock.monotonic(), read: controller.bytesRead };
    const { bytes } = await cluster.ask({ do: 'touch-pods', count: touched });
    await untilRead(controller, eventsFrom.read + bytes);
    await clock.sleep(2000);
    const allCpu = controller.cpuSeconds - eventsFrom.cpu;
    // What the controller does anyway is no part of an event; on a busy machine the changes take long.
    const eventCpu = Math.max(0, allCpu - (idlePercent / 100) * ((clock.monotonic() - eventsFrom.at) / 1000));

    progress(`${burst} pods that fit nowhere`);
    const { firstAt, lastAt } = await cluster.ask({ do: 'pend', pods: burst });
    const { claims, lastClaimAt, runningAt } = await cluster.ask({ do: 'await-running' });
    const claimsSeconds = (lastClaimAt - lastAt - batchIdleMs) / 1000;
    const peak = controller.megabytes('VmHWM');
    const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
    const of = `${nodes} nodes, ${pods} pods`;
    return [
      row(
        names.sync,
        's',
        syncSeconds,
        `${of}; process start to ready; ${syncCpu.toFixed(1)} s of CPU; target ${targets.syncSeconds} s`,
      ),
      row(
        names.idle,
        '% of a core',
        idlePercent,
        `${of}; ${sent} node heartbeats in ${seconds(idleSeconds * 1000)}; target ${targets.idlePercent} %`,
      ),
      row(
        names.memory,
        'MB',
        Math.max(idleMegabytes, controller.megabytes('VmRSS')),
        `${of}; at rest ${idleMegabytes.toFixed(0)} MB, peak ${peak.toFixed(0)} MB; target ${targets.megabytes} MB`,
      ),
      row(
        names.event,
        'µs',
        (eventCpu / touched) * 1e6,
        `${of}; CPU of the controller per changed pod, ${touched} changes, TLS and decoding included, without what it uses at rest (with it: ${((allCpu / touched) * 1e6).toFixed(0)} µs); target ${targets.eventMicros} µs`,
      ),
      row(
        names.claims,
        's',
        claimsSeconds,
        `${of}; last of ${claims} NodeClaims after the end of the batch window; pods waited from ${seconds(lastAt - firstAt)} before its last one; all running ${seconds(runningAt - lastAt)} after it; target ${targets.claimsSeconds} s`,
      ),
    ];
  } finally {
    await controller?.stop();
    await cluster.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function row(name: string, unit: string, ours: number, detail: string): Row {
  return { name, unit, ours: Math.round(ours * 100) / 100, upstream: null, ratio: null, detail };
}

function startController(kubeconfig: string, healthPort: number, metricsPort: number): ChildProcess {
  const flags = [
    '--disable-leader-election=true',
    `--health-probe-port=${healthPort}`,
    `--metrics-port=${metricsPort}`,
  ];
  // As the image starts it.
  return spawn(
    process.execPath,
    [smallYoungSpace, built, 'controller', `--kubeconfig=${kubeconfig}`, '--log-level=error', ...flags],
    {
      stdio: ['ignore', 2, 2],
    },
  );
}

async function untilReady(port: number, controller: Measured): Promise<void> {
  for (;;) {
    if (controller.child.exitCode !== null) throw new Error(`the controller ended with ${controller.child.exitCode}`);
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    if (answer?.ok) return;
    await clock.sleep(50);
  }
}

/** Events that are still on their way would count as cheap ones. */
async function untilRead(controller: Measured, bytes: number): Promise<void> {
  for (const from = clock.monotonic(); controller.bytesRead < bytes; await clock.sleep(50))
    if (clock.monotonic() - from > 60_000) throw new Error('the controller did not get every event within a minute');
}

/** Waits until it has used less than a tenth of a core for five seconds; two minutes at most. */
async function quiet(controller: Measured, progress: Progress): Promise<void> {
  const from = clock.monotonic();
  for (let before = controller.cpuSeconds; clock.monotonic() - from < 120_000; ) {
    await clock.sleep(5000);
    const now = controller.cpuSeconds;
    progress(
      `${(clock.monotonic() - from).toFixed(0)} ms after ready: ${((now - before) * 20).toFixed(0)} % of a core, ${controller.megabytes('VmRSS').toFixed(0)} MB`,
    );
    if (now - before < 0.5) return;
    before = now;
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
