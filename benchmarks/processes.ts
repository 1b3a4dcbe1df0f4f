// SPDX-License-Identifier: Apache-2.0
// The two programs that benchmarks compare, each in a process of its own, on the same problem file.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compileCacheFolder, compileWhole } from '../bin/compile-cache.js';
import { quickYoungSpace } from '../bin/heap.js';
import { tool } from '../hack/tools/tools.ts';
import type { Problem, SolveResult } from '../src/scheduling/problem.ts';

/** The peer program, built when it is missing or its sources changed. Needs Go. */
export function buildPeer(): Promise<string> {
  return tool('scheduler-peer');
}

const folder = compileCacheFolder();
/** Code compiled by an earlier process serves the next one, as it does for every start of the product (bin/karpenter.js). */
const compiled: Record<string, string> = folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };

/** Runs a program to its end and returns what it printed. */
function run(command: string, args: readonly string[], input?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...compiled },
    });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout!.on('data', (chunk: Buffer) => out.push(chunk));
    child.stderr!.on('data', (chunk: Buffer) => err.push(chunk));
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve(Buffer.concat(out).toString());
      else reject(new Error(`${command} ended with ${code}: ${Buffer.concat(err).toString().slice(0, 2000)}`));
    });
    if (input !== undefined) child.stdin!.end(input);
  });
}

/** What upstream answers. `placements` only when its order was asked for. */
export interface PeerResult extends Omit<SolveResult, 'stats' | 'objectErrors'> {
  readonly failure?: string;
  readonly stats: {
    readonly durationMs: number;
    readonly solveMs: number;
    readonly warmMs?: readonly number[];
    readonly pods: number;
    readonly nodes: number;
  };
}

/** Upstream on one problem file, in a fresh process. */
export async function runPeer(binary: string, file: string, repeat = 1): Promise<PeerResult> {
  const result = JSON.parse(await run(binary, ['-repeat', String(repeat), file])) as PeerResult;
  if (result.failure) throw new Error(`upstream failed: ${result.failure}`);
  return result;
}

/** Upstream on many problems in one process, with the order of its placements. */
export async function runPeerBatch(binary: string, problems: readonly Problem[]): Promise<PeerResult[]> {
  const lines = problems.map((p) => JSON.stringify(p)).join('\n');
  const out = await run(binary, ['-batch', '-order'], lines);
  return out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as PeerResult)
    .map((r) => ({ ...r, placements: r.placements ?? [], errors: r.errors ?? [] }));
}

/** What one process of ours measured. */
export interface OursResult {
  readonly coldMs: number;
  readonly warmMs: readonly number[];
  readonly nodes: number;
  readonly scheduled: number;
  readonly errors: number;
  readonly price: number;
  /** Broken rules by the independent validator; undefined when not asked for. */
  readonly violations?: number;
  readonly peakMegabytes: number;
}

const ours = fileURLToPath(new URL('./solve-once.ts', import.meta.url));

/** As the program starts itself, with room for the largest problems. */
const asStarted = ['--max-old-space-size=8192', compileWhole, quickYoungSpace];

/** Ours in a fresh process: the first solve is cold, `repeat - 1` more are warm. */
export async function runOurs(args: readonly string[], repeat = 1, judge = false): Promise<OursResult> {
  const flags = ['--repeat', String(repeat), ...(judge ? ['--judge'] : [])];
  return JSON.parse(await run(process.execPath, [...asStarted, '--expose-gc', ours, ...flags, ...args])) as OursResult;
}

/** Calls `use` with a file that holds the problem; the file is gone afterwards. */
export async function withProblemFile<T>(problem: Problem, use: (file: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'karpenter-bench-'));
  try {
    const file = join(folder, 'problem.json');
    writeFileSync(file, JSON.stringify(problem));
    return await use(file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
