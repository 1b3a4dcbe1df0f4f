// SPDX-License-Identifier: Apache-2.0
// The embedded cluster as its users have it: `karpenter up` as a program, and the real kubectl pointed at it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { stringify } from 'yaml';
import { tool } from '../../hack/tools/tools.ts';
import { execute, type Finished, RunningProgram } from './processes.ts';

/** A cluster of a test's own. */
export interface UpCluster {
  readonly program: RunningProgram;
  readonly kubeconfig: string;
  /** A folder that goes with the cluster. */
  readonly folder: string;
  /** Runs kubectl, which must succeed, and gives what it printed. */
  kubectl(line: string, input?: object | readonly object[]): Promise<string>;
  /** Runs kubectl and gives how it ended. `line` is split at blanks; a `'quoted part'` stays whole. */
  attempt(line: string, input?: object | readonly object[]): Promise<Finished>;
  /** Starts a kubectl that goes on until it is stopped. */
  start(line: string): RunningProgram;
  /** Ends it; it must end well. */
  stop(): Promise<void>;
}

/** Starts `karpenter up` with these flags on a free port and waits until it answers. */
export async function startUp(...flags: string[]): Promise<UpCluster> {
  const folder = mkdtempSync(join(tmpdir(), 'karpenter-up-'));
  const kubeconfig = join(folder, 'config');
  const path = await tool('kubectl');
  // A home of its own: kubectl caches discovery below it.
  const env = { ...process.env, KUBECONFIG: kubeconfig, HOME: folder };
  const args = ['bin/karpenter.js', 'up', '--port', '0', '--kubeconfig-out', kubeconfig, ...flags];
  const program = new RunningProgram('karpenter up', 'node', args);
  await program.until(async () => (await execute(path, ['get', '--raw', '/readyz'], { env })).code === 0, 30_000);
  const attempt: UpCluster['attempt'] = (line, input) =>
    execute(path, words(line), { env, ...(input ? { input: documents(input) } : {}) });
  return {
    program,
    kubeconfig,
    folder,
    attempt,
    kubectl: async (line, input) => {
      const done = await attempt(line, input);
      expect(done.code, `kubectl ${line}\n${done.stdout}${done.stderr}`).toBe(0);
      return done.stdout;
    },
    start: (line) => new RunningProgram(`kubectl ${line}`, path, words(line), { env }),
    stop: async () => {
      expect(await program.stop(), program.output).toBe(0);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function words(line: string): string[] {
  return Array.from(line.matchAll(/(?:[^\s']|'[^']*')+/g), ([word]) => word.replaceAll("'", ''));
}

function documents(input: object | readonly object[]): string {
  return [input]
    .flat()
    .map((document) => stringify(document))
    .join('---\n');
}
