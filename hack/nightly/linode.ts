// SPDX-License-Identifier: Apache-2.0
// The guide of the Linode provider, step by step in both modes, on a real control plane.
import { spawn } from 'node:child_process';

/** Gives whether every step went as written. */
export function linode(): Promise<boolean> {
  const args = ['hack/run.js', 'vitest', 'run', '--config', 'vitest.nightly.config.ts', 'linode-document'];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: 'inherit' });
    child.on('error', reject);
    child.on('exit', (code) => resolve(code === 0));
  });
}
