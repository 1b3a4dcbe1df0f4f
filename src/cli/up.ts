// SPDX-License-Identifier: Apache-2.0
// `karpenter up`: a cluster in this process, the autoscaler in it, and a kubeconfig to drive it with.
import { accessSync, chmodSync, constants, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import type { Clock } from '../base/clock.ts';
import { KarpenterError, messageOf } from '../base/errors.ts';
import type { Random } from '../base/random.ts';
import type { EmbeddedCluster } from '../embedded/cluster.ts';
import type { EmbeddedCloud } from './embedded-clouds.ts';

interface UpOptions {
  readonly port: number;
  readonly kubeconfigOut: string;
  readonly output: 'text' | 'json';
  readonly clusterOnly?: boolean;
  readonly provider: string;
  readonly mode?: string;
}

const defaultPort = 6443;
/** Silence longer than this worries people. */
const progressAfterMs = 2000;
/** Signals this close to the first one are the same wish. */
const sameStopMs = 1000;

export function registerUp(program: Command): void {
  program
    .command('up')
    .description('start a Kubernetes cluster with the autoscaler in this process and write a kubeconfig for it')
    .option('--port <port>', 'port of the API server on loopback; 0 takes any free one', parsePort, defaultPort)
    .option('--kubeconfig-out <path>', 'where to write the kubeconfig', './karpenter.kubeconfig')
    .option('-o, --output <format>', 'how to say that it is ready: text or json', parseOutput, 'text')
    .option('--provider <names>', 'the clouds that the autoscaler buys from, separated by commas', 'kwok')
    .option('--mode <mode>', 'how a cloud makes nodes, where it knows several ways: for linode lke or instance')
    .option('--cluster-only', 'leave out the autoscaler: pods that do not fit keep waiting')
    .action(up);
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65535) throw new InvalidArgumentError('A port is a number from 0 to 65535.');
  return port;
}

function parseOutput(text: string): 'text' | 'json' {
  if (text !== 'text' && text !== 'json') throw new InvalidArgumentError('It is either text or json.');
  return text;
}

async function up(options: UpOptions): Promise<void> {
  const path = resolve(options.kubeconfigOut);
  checkWritable(path);
  // Loaded here, so that help and usage errors do not wait for it.
  const [embedded, { RealClock }, { SystemRandom }, { cloudsNamed }] = await Promise.all([
    import('../embedded/cluster.ts'),
    import('../base/clock.ts'),
    import('../base/random.ts'),
    import('./embedded-clouds.ts'),
  ]);
  const clouds = cloudsNamed(options.provider, options.mode);
  const clock = new RealClock();
  // From here on: whoever reads that it is ready may stop it in the same moment.
  const stopped = stopSignal(clock);
  const progress = clock.after(progressAfterMs, () => console.error('still starting …'));
  let started: Started;
  try {
    started = await start(embedded.EmbeddedCluster, { clock, random: new SystemRandom(), options, clouds });
  } catch (error) {
    throw explainStart(error, options.port);
  } finally {
    progress.cancel();
  }
  const { cluster, environment, close } = started;
  try {
    writeKubeconfig(path, cluster.kubeconfig());
  } catch (error) {
    await close();
    throw error;
  }
  const text = welcome(cluster.url!, options.kubeconfigOut, !options.clusterOnly, environment);
  console.log(options.output === 'json' ? readiness(cluster.url!, path, environment) : text);
  await stopped;
  if (options.output === 'text') console.log('\nstopping');
  await close();
}

interface Started {
  readonly cluster: EmbeddedCluster;
  /** For programs that speak to the clouds. */
  readonly environment: Readonly<Record<string, string>>;
  readonly close: () => Promise<void>;
}

interface StartParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly options: UpOptions;
  readonly clouds: readonly EmbeddedCloud[];
}

/** The cluster, and unless it is not wanted the autoscaler in it. */
async function start(
  cluster: typeof EmbeddedCluster,
  { clock, random, options, clouds }: StartParts,
): Promise<Started> {
  const common = { clock, random, log: stderrLog, port: options.port };
  if (options.clusterOnly) {
    const plain = await cluster.start(common);
    return { cluster: plain, environment: {}, close: () => plain.close() };
  }
  const [{ keptLogBytes, startEmbeddedAutoscaler }, { controllerLogs }, { LogBuffer }] = await Promise.all([
    import('./embedded-autoscaler.ts'),
    import('./controller-pod.ts'),
    import('../embedded/logs/log-buffer.ts'),
  ]);
  const log = new LogBuffer({ now: () => clock.now(), maxBytes: keptLogBytes });
  const running = await cluster.start({ ...common, logs: controllerLogs(log) });
  const onFailure = (error: unknown): void => stderrLog.error('the autoscaler ended', { error: messageOf(error) });
  const autoscaler = await startEmbeddedAutoscaler({
    cluster: running,
    clock,
    random,
    log,
    onFailure,
    clouds,
    node: 'base-1',
  });
  return {
    cluster: running,
    environment: autoscaler.environment,
    close: async () => {
      await autoscaler.stop();
      log.end();
      await running.close();
    },
  };
}

/** Fails early, before a cluster is started for nothing; never replaces a file that we did not write. */
function checkWritable(path: string): void {
  try {
    if (!existsSync(path)) return accessSync(dirname(path), constants.W_OK);
    if (statSync(path).isDirectory()) throw new Error(`${path} is a folder`);
    accessSync(path, constants.W_OK);
  } catch (error) {
    throw new KarpenterError('KRP_KUBECONFIG_UNWRITABLE', `cannot write the kubeconfig: ${messageOf(error)}`, {
      cause: error,
    });
  }
  const content = readFileSync(path, 'utf8');
  if (content !== '' && !content.includes('"karpenter-embedded"')) {
    throw new KarpenterError(
      'KRP_KUBECONFIG_FOREIGN',
      `${path} exists and is not a kubeconfig of ours; choose another place with --kubeconfig-out`,
    );
  }
}

/** It holds a token: nobody else may read it, also when the file was there before. */
function writeKubeconfig(path: string, content: string): void {
  writeFileSync(path, content, { mode: 0o600 });
  chmodSync(path, 0o600);
}

function explainStart(error: unknown, port: number): unknown {
  const code = (error as { code?: unknown }).code;
  const why =
    code === 'EADDRINUSE'
      ? `port ${port} is in use; choose another with --port, or --port 0 for any free one`
      : code === 'EACCES'
        ? `port ${port} needs more rights than this process has; choose one above 1023`
        : undefined;
  return why === undefined ? error : new KarpenterError('KRP_PORT_UNAVAILABLE', why, { cause: error });
}

function readiness(server: string, kubeconfig: string, environment: Readonly<Record<string, string>>): string {
  const more = Object.keys(environment).length > 0 ? { environment } : {};
  return JSON.stringify({ ready: true, server, kubeconfig, pid: process.pid, ...more });
}

function welcome(
  server: string,
  kubeconfig: string,
  autoscales: boolean,
  environment: Readonly<Record<string, string>>,
): string {
  const beginning = `A Kubernetes cluster is ready at ${server}, with two nodes of 2 CPUs.

  export KUBECONFIG=${kubeconfig}
  kubectl get nodes
`;
  const exports = Object.entries(environment).map(([name, value]) => `  export ${name}=${value}\n`);
  const clouds =
    exports.length > 0 ? `\nThe cloud is in this process too. For its own tools:\n\n${exports.join('')}` : '';
  const scaling = `  kubectl create deployment web --image=nginx --replicas=200
  kubectl get nodeclaims,nodes --watch                          # machines come as pods need them
  kubectl logs -f -n kube-system karpenter -c controller        # and why
  kubectl delete deployment web                                 # and go again
`;
  const plain = `  kubectl create deployment web --image=nginx --replicas=3
  kubectl get pods -o wide --watch
`;
  return `${beginning}${autoscales ? scaling : plain}${clouds}
No kubectl yet? https://kubernetes.io/docs/tasks/tools/ or \`brew install kubectl\`, \`snap install kubectl --classic\`.
Machines and pods are simulated; the API is real. Ctrl-C stops it, and everything in it is gone.`;
}

/**
 * Resolves at the first SIGINT or SIGTERM. Another one ends the process at once, but not within a moment: Ctrl-C reaches
 * the whole process group, and whoever started us passes it on as well.
 */
function stopSignal(clock: Clock): Promise<void> {
  return new Promise((done) => {
    let first: number | undefined;
    const stop = (): void => {
      if (first === undefined) done();
      else if (clock.monotonic() - first > sameStopMs) process.exit(1);
      first ??= clock.monotonic();
    };
    process.on('SIGINT', stop);
    process.on('SIGTERM', stop);
  });
}

/** Warnings and errors only, one line each: standard output belongs to the user. */
const stderrLog = {
  debug: () => undefined,
  info: () => undefined,
  warn: (message: string, fields?: object | (() => object)) => logLine('warning', message, fields),
  error: (message: string, fields?: object | (() => object)) => logLine('error', message, fields),
  with: () => stderrLog,
};

function logLine(level: string, message: string, fields: object | (() => object) = {}): void {
  const data = typeof fields === 'function' ? fields() : fields;
  const text = JSON.stringify(data, (_, value: unknown) => (value instanceof Error ? value.message : value));
  console.error(`${level}: ${message}${text === '{}' ? '' : ` ${text}`}`);
}
