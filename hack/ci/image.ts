// SPDX-License-Identifier: Apache-2.0
// What the Dockerfile puts into the image, put into a folder by the same lines, and started as the image would be: with
// an empty environment, as a user without rights, where nothing can be written. No container engine is needed.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { freePort, RunningProgram } from '../../test/real/processes.ts';

const nobody = 65532;
const root = mkdtempSync(join(tmpdir(), 'karpenter-image-'));
const build = join(root, 'build');
const image = join(root, 'image');

interface Instruction {
  readonly name: string;
  readonly text: string;
}

/** The instructions of each stage, the last one being the image. */
function stagesOf(dockerfile: string): Instruction[][] {
  const lines = dockerfile.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
  const stages: Instruction[][] = [];
  for (const line of lines) {
    const [name = '', ...rest] = line.split(' ');
    if (name === 'FROM') stages.push([]);
    stages.at(-1)?.push({ name, text: rest.join(' ') });
  }
  return stages;
}

/** Plays a stage: copies and runs what it says; paths below /app are below `folder`. */
function play(stage: readonly Instruction[], folder: string): Map<string, string> {
  mkdirSync(folder, { recursive: true });
  const settings = new Map<string, string>();
  for (const { name, text } of stage) {
    if (name === 'COPY') copy(text.split(' '), folder);
    else if (name === 'RUN') execFileSync('sh', ['-ec', text], { cwd: folder, stdio: ['ignore', 2, 2] });
    else settings.set(name, text);
  }
  return settings;
}

function copy(words: readonly string[], folder: string): void {
  const fromBuild = words.includes('--from=build');
  const paths = words.filter((word) => !word.startsWith('--'));
  const target = paths.at(-1)!;
  for (const source of paths.slice(0, -1)) {
    const from = fromBuild ? source.replace('/app', build) : source;
    const to = target.endsWith('/') ? join(folder, target, source) : join(folder, target);
    mkdirSync(dirname(to), { recursive: true });
    cpSync(from, to, { recursive: true, verbatimSymlinks: true });
  }
}

/** Everything can be read and run by everybody, nothing can be written by anybody. */
function makeReadOnly(folder: string): void {
  execFileSync('chmod', ['-R', 'a+rX,a-w', folder]);
  chmodSync(root, 0o755);
}

async function run(settings: ReadonlyMap<string, string>): Promise<void> {
  // The image has a Node of its own where the entry point says; here it is a copy of ours, for whoever may not see ours.
  const node = join(root, 'node');
  cpSync(process.execPath, node);
  const words = (name: string): string[] => JSON.parse(settings.get(name) ?? '[]') as string[];
  const [entry, ...fixed] = words('ENTRYPOINT').map((word) => word.replace('/app', image));
  if (entry !== '/nodejs/bin/node') throw new Error(`the entry point is ${entry}`);
  if (settings.get('USER') !== `${nobody}:${nobody}`) throw new Error(`the user is ${settings.get('USER')}`);

  const kubeconfig = join(root, 'kubeconfig');
  const up = ['bin/karpenter.js', 'up', '--cluster-only', '--port', '0', '--kubeconfig-out', kubeconfig];
  const cluster = new RunningProgram('karpenter up', process.execPath, up);
  try {
    await cluster.until(() => existsSync(kubeconfig));
    chmodSync(kubeconfig, 0o644);
    const [metrics, health] = [await freePort(), await freePort()];
    const flags = [
      `--kubeconfig=${kubeconfig}`,
      '--leader-election-namespace=kube-system',
      `--metrics-port=${metrics}`,
      `--health-probe-port=${health}`,
    ];
    // Only root can become somebody else; anybody else has few rights already.
    const user = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {};
    const args = [...fixed, ...words('CMD'), ...flags];
    const controller = new RunningProgram('the controller', node, args, { cwd: image, env: {}, ...user });
    for (const path of [`${health}/healthz`, `${health}/readyz`, `${metrics}/metrics`])
      await controller.until(async () => (await fetch(`http://127.0.0.1:${path}`)).ok);
    const code = await controller.stop();
    if (code !== 0) throw new Error(`asked to stop, it ended with ${code}\n${controller.output}`);
    console.log(`as user ${user.uid ?? process.getuid?.()} it served /healthz, /readyz and /metrics, and stopped`);
  } finally {
    await cluster.stop();
  }
}

/** Nothing but what runs: no sources, no tests, no compiler, no second Node. */
function checkContent(): void {
  // npm leaves the empty folder of a scope behind.
  const modules = join(image, 'node_modules');
  const folders = readdirSync(modules, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const packages = folders.map(({ name }) => name).filter((name) => readdirSync(join(modules, name)).length > 0);
  const unwanted = packages.filter((name) =>
    /^(?:typescript|vitest|@biomejs|oxlint|node-(?:linux|darwin|win|bin))/.test(name),
  );
  if (unwanted.length > 0) throw new Error(`the image holds ${unwanted.join(', ')}`);
  const found = readdirSync(image).toSorted().join(' ');
  if (found !== 'bin dist node_modules package.json') throw new Error(`the image holds ${found}`);
  const files = readdirSync(image, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const bytes = files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
  console.log(
    `the image's own files: ${files.length}, ${Math.round(bytes / 1e6)} MB; ${packages.length} in node_modules`,
  );
}

try {
  const [building, final, ...more] = stagesOf(readFileSync('Dockerfile', 'utf8'));
  if (!building || !final || more.length > 0) throw new Error('the Dockerfile has two stages');
  play(building, build);
  const settings = play(final, image);
  checkContent();
  makeReadOnly(image);
  await run(settings);
} finally {
  execFileSync('chmod', ['-R', 'u+w', root]);
  rmSync(root, { recursive: true, force: true });
}
