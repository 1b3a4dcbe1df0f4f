// SPDX-License-Identifier: Apache-2.0
// The published package, as its users get it: packed, installed into an empty folder, run.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tryUp } from './up.ts';

const folder = mkdtempSync(join(tmpdir(), 'karpenter-pack-'));
try {
  const npm = (cwd: string, ...args: string[]): string =>
    execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  npm('.', 'pack', '--silent', '--pack-destination', folder);
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'empty', private: true }));
  const [tarball] = execFileSync('ls', { cwd: folder, encoding: 'utf8' }).match(/\S+\.tgz/) ?? [];
  if (!tarball) throw new Error('npm pack made no tarball');
  npm(folder, 'install', '--no-progress', `./${tarball}`);
  const karpenter = join(folder, 'node_modules', '.bin', 'karpenter');
  const version = execFileSync(karpenter, ['version'], { encoding: 'utf8' }).trim();
  const built = execFileSync('git', ['rev-parse', '--short=7', 'HEAD'], { encoding: 'utf8' }).trim();
  if (!version.includes(`commit ${built}`)) throw new Error(`built from ${built}, but it says: ${version}`);
  console.log(version);
  const cases =
    "import('karpenter-ts/cloud/conformance').then(({ conformanceCases }) => console.log(conformanceCases.length))";
  const count = execFileSync(process.execPath, ['--input-type=module', '-e', cases], { cwd: folder, encoding: 'utf8' });
  console.log(`karpenter-ts/cloud/conformance: ${count.trim()} cases`);
  await tryUp(karpenter, ['up'], folder);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
