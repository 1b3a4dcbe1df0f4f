// SPDX-License-Identifier: Apache-2.0
// Programs we did not write, and test against: what they are, how they are built, where they are kept. They come by
// name from the Go module proxy, are built once into a cache folder outside the repo and reused until their pins change.
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** One program of the cache. */
interface Tool {
  /** Folder of its Go module, relative to the repo. */
  readonly module: string;
  /** The package to build; `.` is the module itself. */
  readonly package: string;
  readonly ldflags?: string;
  /** The package's tests as a program (`go test -c`). */
  readonly tests?: boolean;
  /** Only the nightly runs need it: not built with the others. */
  readonly nightly?: boolean;
}

const kubernetes = (program: string, module = 'hack/tools/kubernetes', version = 'v1.36.1'): Tool => ({
  module,
  package: `k8s.io/kubernetes/cmd/${program}`,
  ldflags: [
    `-X k8s.io/component-base/version.gitVersion=${version}`,
    '-X k8s.io/component-base/version.gitMajor=1',
    `-X k8s.io/component-base/version.gitMinor=${version.split('.')[1]}`,
  ].join(' '),
});

const olderKubernetes = (program: string): Tool => ({
  ...kubernetes(program, 'hack/tools/kubernetes-1.33', 'v1.33.13'),
  nightly: true,
});

/** Every program the tests and benchmarks use, by the name of its binary. */
export const tools = {
  etcd: { module: 'hack/tools/etcd', package: 'go.etcd.io/etcd/server/v3' },
  'kube-apiserver': kubernetes('kube-apiserver'),
  'kube-controller-manager': kubernetes('kube-controller-manager'),
  'kube-scheduler': kubernetes('kube-scheduler'),
  kubectl: kubernetes('kubectl'),
  /** What a machine of its own joins a cluster with: our user data is in their hands. */
  kubeadm: kubernetes('kubeadm'),
  kubelet: kubernetes('kubelet'),
  /** The fake kubelet of the nodes that the KWOK provider makes. */
  kwok: { module: 'hack/tools/kwok', package: 'sigs.k8s.io/kwok/cmd/kwok' },
  /** The managers of MachineDeployments, MachineSets and Machines. */
  'cluster-api': { module: 'hack/tools/cluster-api', package: 'sigs.k8s.io/cluster-api' },
  /** Upstream's own end-to-end suite. */
  'upstream-suite': {
    module: 'hack/tools/karpenter',
    package: 'sigs.k8s.io/karpenter/test/suites/regression',
    tests: true,
  },
  /** Its performance scenarios. */
  'upstream-performance': {
    module: 'hack/tools/karpenter',
    package: 'sigs.k8s.io/karpenter/test/suites/performance',
    tests: true,
    nightly: true,
  },
  /** Upstream's controller with its KWOK provider: whom ours races. */
  'upstream-controller': { module: 'hack/tools/karpenter', package: 'sigs.k8s.io/karpenter/kwok', nightly: true },
  /** The same, but speaking JSON: a client of the embedded API server, which knows no protobuf. */
  'upstream-json': { module: 'hack/tools/upstream-json', package: '.' },
  'kube-apiserver-1.33': olderKubernetes('kube-apiserver'),
  'kube-controller-manager-1.33': olderKubernetes('kube-controller-manager'),
  'kube-scheduler-1.33': olderKubernetes('kube-scheduler'),
  helm: {
    module: 'hack/tools/helm',
    package: 'helm.sh/helm/v3/cmd/helm',
    ldflags: '-X helm.sh/helm/v3/internal/version.version=v3.22.0',
  },
  /** A client on Linode's own Go library: what the emulated Linode API is driven with. */
  'linode-client': { module: 'hack/tools/linode-client', package: '.' },
  /** Upstream's scheduler behind our problem file: the benchmarks' peer. */
  'scheduler-peer': { module: 'benchmarks/peer', package: '.' },
} as const satisfies Record<string, Tool>;

export type ToolName = keyof typeof tools;

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Where built programs live: `KARPENTER_TOOLS`, or a folder of ours below the user's cache directory. */
export function toolsFolder(): string {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  return process.env['KARPENTER_TOOLS'] ?? join(cache, 'karpenter-ts');
}

/** Path of a program, built first when it is missing or its module changed. Fails with what to install. */
export async function tool(name: ToolName): Promise<string> {
  const { module, package: pkg, ldflags, tests }: Tool = tools[name];
  const folder = join(toolsFolder(), 'bin');
  const binary = join(folder, name);
  const stamp = `${binary}.stamp`;
  const wanted = stampOf(join(root, module), pkg, ldflags);
  if (existsSync(binary) && existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return binary;
  mkdirSync(folder, { recursive: true });
  const started = performance.now();
  console.error(`building ${name} (once; minutes on a new machine)`);
  const flags = ldflags ? ['-ldflags', ldflags] : [];
  await run(
    'go',
    [...(tests ? ['test', '-c'] : ['build']), '-trimpath', ...flags, '-o', binary, pkg],
    join(root, module),
  );
  writeFileSync(stamp, wanted);
  console.error(`built ${name} in ${Math.round((performance.now() - started) / 1000)} s`);
  return binary;
}

/** Programs from PyPI, each pinned in the `requirements.txt` of its folder, by the name of the program. */
const pythonTools = { 'linode-cli': 'hack/tools/linode-cli' } as const;

/** Path of a Python program, installed first into an environment of its own. Fails with what to install. */
export async function pythonTool(name: keyof typeof pythonTools): Promise<string> {
  const requirements = join(root, pythonTools[name], 'requirements.txt');
  const wanted = createHash('sha256').update(readFileSync(requirements)).digest('hex');
  const folder = join(toolsFolder(), 'python', `${name}-${wanted.slice(0, 12)}`);
  const [program, stamp] = [join(folder, 'bin', name), join(folder, 'stamp')];
  if (existsSync(program) && existsSync(stamp)) return program;
  mkdirSync(dirname(folder), { recursive: true });
  console.error(`installing ${name} (once)`);
  await run('python3', ['-m', 'venv', '--clear', folder], root, 'Python 3 with venv');
  await run(join(folder, 'bin', 'pip'), ['install', '--quiet', '--no-deps', '-r', requirements], root, 'pip');
  writeFileSync(stamp, wanted);
  return program;
}

/** Programs of Debian, by their names: the package has the same. */
type SystemToolName = 'cloud-init';

/** Path of a program of Debian, installed first where it is missing. Fails with what to install. */
export async function systemTool(name: SystemToolName): Promise<string> {
  const find = (): string | undefined =>
    (process.env['PATH'] ?? '')
      .split(':')
      .map((folder) => join(folder, name))
      .find((path) => existsSync(path));
  const found = find();
  if (found) return found;
  if (process.getuid?.() !== 0) throw new Error(`${name} is missing: apt-get install ${name}`);
  console.error(`installing ${name} (once)`);
  // It must not act on this machine, only look at files.
  mkdirSync('/etc/cloud', { recursive: true });
  writeFileSync('/etc/cloud/cloud-init.disabled', '');
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  await run('apt-get', ['-q', 'update'], root, 'a Debian with apt-get', env);
  const options = ['-qy', '--no-install-recommends'];
  await run('apt-get', ['install', ...options, name], root, 'a Debian with apt-get', env);
  const installed = find();
  if (!installed) throw new Error(`${name} is missing after its package was installed`);
  return installed;
}

/** Folder of a Go module's sources as a tool pins it, for the manifests it brings: read there, never copied. */
export async function sourcesOf(name: ToolName, module: string): Promise<string> {
  const { module: wrapper }: Tool = tools[name];
  // Answers from the module cache; fetches only what is not there.
  const { stdout } = await promisify(execFile)('go', ['mod', 'download', '-json', module], {
    cwd: join(root, wrapper),
  });
  return (JSON.parse(stdout) as { Dir: string }).Dir;
}

/** Changes whenever the module's pins, its own sources or the build's flags do. */
function stampOf(module: string, pkg: string, ldflags = ''): string {
  const hash = createHash('sha256').update(`${pkg}\n${ldflags}\n`);
  for (const file of readdirSync(module).toSorted()) {
    if (/^go\.(?:mod|sum)$|\.go$/.test(file)) hash.update(file).update(readFileSync(join(module, file)));
  }
  return hash.digest('hex');
}

function run(command: string, args: readonly string[], cwd: string, install = 'Go', env = process.env): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 2, 2] });
    child.on('error', (error) =>
      reject(
        new Error(
          `${command} could not start (${error.message}): install ${install} to get the programs we test against`,
        ),
      ),
    );
    child.on('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`${command} ${args[0]} in ${cwd} exited with ${code}`)),
    );
  });
}

// `node hack/tools/tools.ts [NAME…]` builds what is named, or everything but what only the nights need.
if (import.meta.main) {
  const names = process.argv.slice(2);
  const usual = Object.entries<Tool>(tools).filter(([, { nightly }]) => !nightly);
  for (const name of names.length > 0 ? names : usual.map(([name]) => name)) {
    if (!(name in tools)) {
      console.error(`${name} is no tool of ours; there are ${Object.keys(tools).join(', ')}`);
      process.exit(2);
    }
    console.log(await tool(name as ToolName));
  }
}
