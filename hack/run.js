// SPDX-License-Identifier: Apache-2.0
// `node hack/run.js COMMAND ARGS…`: runs a tool of this repo on the pinned Node, whatever Node npm runs on.
import { spawn } from 'node:child_process';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isAtLeast, oldestNodeForSources, pinnedNode } from '../bin/pinned-node.js';

const node = pinnedNode() ?? (isAtLeast(process.version, oldestNodeForSources) ? process.execPath : undefined);
if (!node) {
  console.error(
    `This repo needs Node ${oldestNodeForSources.join('.')} (this is ${process.version}): run npm ci without --omit=optional.`,
  );
  process.exit(2);
}
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const path = [dirname(node), join(root, 'node_modules', '.bin'), process.env['PATH']].join(delimiter);
const [command, ...args] = process.argv.slice(2);
const child = spawn(command, args, {
  stdio: 'inherit',
  env: { ...process.env, PATH: path },
  shell: process.platform === 'win32',
});
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('error', (error) => {
  console.error(`${command}: ${error.message}`);
  process.exit(127);
});
child.on('exit', (code, signal) => process.exit(signal ? 143 : (code ?? 1)));
