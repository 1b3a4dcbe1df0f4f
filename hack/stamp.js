// SPDX-License-Identifier: Apache-2.0
// `node hack/stamp.js`: notes beside the built program which commit it was built from. Where there is no git, as in an
// image, the variable COMMIT says it.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';

function commit() {
  if (process.env['COMMIT']) return process.env['COMMIT'];
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return 'unknown';
  }
}

writeFileSync(new URL('../dist/build.json', import.meta.url), `${JSON.stringify({ commit: commit().slice(0, 7) })}\n`);
