// SPDX-License-Identifier: Apache-2.0
// The commands of the guides, as they stand there: blocks that are marked `<!-- run: … -->` run in their order, the others
// start something that this test starts itself.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { tool } from '../../hack/tools/tools.ts';
import { execute, RunningProgram } from './processes.ts';

const running: RunningProgram[] = [];
afterEach(async () => {
  for (const program of running.splice(0).toReversed()) await program.stop();
});

interface Block {
  readonly where: string;
  readonly commands: string;
}

function blocksOf(file: string): Block[] {
  const marked = /<!-- run: ([\w, ]+) -->\n```sh\n(.*?)```/gs;
  return [...readFileSync(file, 'utf8').matchAll(marked)].map(([, where, commands]) => ({
    where: where!,
    commands: commands!,
  }));
}

/** A shell whose kubectl and karpenter are ours. */
async function shell(kubeconfig: string): Promise<NodeJS.ProcessEnv> {
  const bin = join(dirname(kubeconfig), 'bin');
  mkdirSync(bin);
  symlinkSync(await tool('kubectl'), join(bin, 'kubectl'));
  const { KUBERNETES_SERVICE_HOST: _, ...env } = process.env;
  return { ...env, KUBECONFIG: kubeconfig, PATH: `${bin}${delimiter}${process.env['PATH']}`, CI: 'true' };
}

async function run({ commands }: Block, env: NodeJS.ProcessEnv): Promise<void> {
  const { code, stdout, stderr } = await execute('bash', ['-euo', 'pipefail', '-c', commands], {
    env,
    timeoutMs: 240_000,
  });
  expect(code, `${commands}\n${stdout}\n${stderr}`).toBe(0);
}

async function start(name: string, args: readonly string[], env: NodeJS.ProcessEnv, ready: string): Promise<void> {
  const program = new RunningProgram(name, 'node', ['bin/karpenter.js', ...args], { env });
  running.push(program);
  await program.until(() => program.output.includes(ready), 60_000);
}

test.each([
  ['embedded', []],
  ['any', ['--cluster-only']],
])('getting started: %s', async (where, options) => {
  const folder = mkdtempSync(join(tmpdir(), 'karpenter-docs-'));
  const env = await shell(join(folder, 'config'));
  await start(
    'karpenter up',
    ['up', '--port', '0', '--kubeconfig-out', env['KUBECONFIG']!, ...options],
    env,
    'is ready at',
  );
  const blocks = blocksOf('docs/getting-started.md').filter((block) => block.where.startsWith(where));
  expect(blocks.length).toBeGreaterThan(2);
  let isControlled = false;
  for (const block of blocks) {
    if (block.where.endsWith('with the controller') && !isControlled) {
      isControlled = true;
      const ports = ['--metrics-port', '0', '--health-probe-port', '0'];
      const args = ['controller', '--leader-election-namespace', 'kube-system', ...ports];
      await start('karpenter controller', args, env, 'became leader');
    }
    await run(block, env);
  }
  rmSync(folder, { recursive: true, force: true });
});

test('getting started: the demo', async () => {
  const blocks = blocksOf('docs/getting-started.md').filter(({ where }) => where === 'plain');
  expect(blocks).toHaveLength(1);
  for (const block of blocks) await run(block, process.env);
});
