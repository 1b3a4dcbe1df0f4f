#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Plain JavaScript, so that an old Node can still read it: hands over to the pinned Node when this one is too old,
// or says a clear word when there is none.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { keepCompiledCode } from './compile-cache.js';
import { growYoungSpaceQuickly, heapFlagsFor } from './heap.js';
import { isAtLeast, oldestNode, oldestNodeForSources, pinnedNode } from './pinned-node.js';

// A clone runs the sources as they are; the published package carries dist/, because Node strips no types below
// node_modules.
const sources = new URL('../src/cli/main.ts', import.meta.url);
const built = new URL('../dist/cli/main.js', import.meta.url);
const fromSources = existsSync(sources);
const main = fromSources ? sources : built;
const floor = fromSources ? oldestNodeForSources : oldestNode;

const heapFlags = heapFlagsFor(process.argv.slice(2), process.env, process.execArgv);
const fits = isAtLeast(process.version, floor);

if (fits && heapFlags.length === 0) {
  keepCompiledCode();
  growYoungSpaceQuickly();
  await import(main.href);
} else {
  const node = fits ? process.execPath : pinnedNode();
  if (!node) {
    console.error(
      `karpenter needs Node ${floor.join('.')} or newer; this is ${process.version}, and no pinned Node was installed for ${process.platform}-${process.arch}.\n` +
        'Install a newer Node, or run npm ci again without --omit=optional.',
    );
    process.exit(2);
  }
  const args = [...heapFlags, fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  const child = spawn(node, args, { stdio: 'inherit' });
  // The terminal signals the whole group itself; a supervisor signals only us, so pass it on.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => {
    console.error(`karpenter could not start ${node}: ${error.message}`);
    process.exit(2);
  });
  child.on('exit', (code, signal) => process.exit(signal ? 128 + (signal === 'SIGINT' ? 2 : 15) : (code ?? 1)));
}
