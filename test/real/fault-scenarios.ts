// SPDX-License-Identifier: Apache-2.0
// What goes wrong with a real control plane, as stories: each breaks something while pods come and go, and ends with all
// pods running, no node leaked, no machine bought twice, and an empty cluster.
import { SeededRandom } from '../../src/base/random.ts';
import { kinds } from '../../src/kube/kinds.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { applyCrds, launchController, startController } from './controllers.ts';
import { FaultWorld } from './fault-world.ts';
import { apply, kubectl } from './kubectl.ts';
import type { RunningProgram } from './processes.ts';

const namespace = 'default';
const lease = 'karpenter-leader-election';
/** Nodes of eight CPUs and pods of a quarter: thirty to a node. */
const podsPerNode = 30;

function nodePool(consolidateAfter: string): object {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'faults' },
    spec: {
      template: {
        spec: {
          expireAfter: 'Never',
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
          requirements: [
            { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
            { key: 'karpenter.kwok.sh/instance-cpu', operator: 'In', values: ['8'] },
          ],
        },
      },
      disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter, budgets: [{ nodes: '100%' }] },
    },
  };
}

function deployment(name: string, replicas: number): object {
  const labels = { app: name };
  const container = { name: 'main', image: 'pause', resources: { requests: { cpu: '250m' } } };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        // The fake kubelet lets a pod go at once; nobody waits for a grace that nothing uses.
        spec: { terminationGracePeriodSeconds: 0, containers: [container] },
      },
    },
  };
}

/** A control plane to break, and what runs on it. */
export class FaultRig {
  readonly plane: ControlPlane;
  readonly world: FaultWorld;
  readonly #controllers = new Set<RunningProgram>();
  readonly #deployments = new Set<string>();

  private constructor(plane: ControlPlane) {
    this.plane = plane;
    this.world = new FaultWorld(plane.kubeconfig);
  }

  static async start(): Promise<FaultRig> {
    const plane = await startControlPlane({ workloads: true, kwok: true });
    try {
      await applyCrds(plane.kubeconfig);
      const nodeClass = {
        apiVersion: 'karpenter.kwok.sh/v1alpha1',
        kind: 'KWOKNodeClass',
        metadata: { name: 'default' },
      };
      await apply(plane.kubeconfig, [nodeClass, nodePool('Never')]);
      const rig = new FaultRig(plane);
      await rig.world.start();
      return rig;
    } catch (error) {
      await plane.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    await this.stopControllers();
    await this.world.stop();
    await this.plane.stop();
  }

  async stopControllers(): Promise<void> {
    for (const program of this.#controllers) await this.kill(program);
  }

  /** A controller that is ready; alone unless it asks for a lease. */
  async controller(options: { lease?: boolean } = {}): Promise<RunningProgram> {
    const program = await startController('ours', this.#settings(options.lease === true));
    this.#controllers.add(program);
    return program;
  }

  /** The same, not waited for. */
  async hurriedController(): Promise<RunningProgram> {
    const { program } = await launchController('ours', this.#settings(false));
    this.#controllers.add(program);
    return program;
  }

  #settings(elected: boolean): Parameters<typeof startController>[1] {
    const env = elected ? {} : { DISABLE_LEADER_ELECTION: 'true' };
    return { kubeconfig: this.plane.kubeconfig, env };
  }

  /** Ends a controller as the machine under it would: without a word. */
  async kill(program: RunningProgram): Promise<void> {
    await program.stop('SIGKILL');
    this.#controllers.delete(program);
  }

  /** Wants this many pods of one name. */
  async want(name: string, replicas: number): Promise<void> {
    if (!this.#deployments.has(name)) await apply(this.plane.kubeconfig, [deployment(name, replicas)]);
    else await this.world.client.resource(kinds.Deployment).patch(name, { spec: { replicas } }, { namespace });
    this.#deployments.add(name);
  }

  async holder(): Promise<string> {
    const found = await this.world.client.resource(kinds.Lease).get(lease, { namespace: 'kube-system' });
    return found.spec?.holderIdentity ?? '';
  }

  /** All pods run, on machines that are all accounted for, none of which was launched twice. */
  async settled(pods: number, seconds = 240): Promise<void> {
    const { world } = this;
    await world.until(`${pods} pods run`, () => world.runningPods === pods && world.pods === pods, seconds);
    await world.until('nothing leaked', () => world.leaks().length === 0, seconds);
    const doubles = world.doubleLaunches();
    if (doubles.length > 0) throw new Error(doubles.join('\n'));
  }

  /** Everything goes; nothing may stay. A controller must run. */
  async empty(seconds = 240): Promise<void> {
    const { kubeconfig } = this.plane;
    await kubectl(kubeconfig, ['delete', 'deployments', '--all', '--namespace', namespace, '--wait=false']);
    this.#deployments.clear();
    await apply(kubeconfig, [nodePool('0s')]);
    const { world } = this;
    await world.until('an empty cluster', () => world.pods + world.nodes + world.claims === 0, seconds);
    await apply(kubeconfig, [nodePool('Never')]);
  }
}

/** Nothing was bought twice: no node stands idle, and there are no more than the pods need. */
function boughtOnce({ world }: FaultRig, pods: number): void {
  const most = Math.ceil(pods / podsPerNode) + 1;
  if (world.nodes > most) throw new Error(`${world.nodes} nodes were bought where ${most} would do`);
  const idle = world.idleNodes();
  if (idle.length > 0) throw new Error(`bought for nobody: ${idle.join(', ')}`);
}

/** Breaks something while machines are being bought, then wants more. */
async function outage(rig: FaultRig, pods: number, away: () => Promise<void>): Promise<void> {
  const controller = await rig.controller();
  await rig.want('before', pods / 2);
  await rig.world.until('a first NodeClaim', () => rig.world.claims > 0, 60);
  await away();
  await rig.want('after', pods / 2);
  await rig.settled(pods);
  // Two rounds of pods, each rounded up to whole nodes.
  boughtOnce(rig, pods + podsPerNode);
  await rig.empty();
  await rig.kill(controller);
}

export const etcdOutage = (rig: FaultRig, pods: number, awayMs: number): Promise<void> =>
  outage(rig, pods, () => rig.plane.restartEtcd(awayMs));

export const apiServerKilled = (rig: FaultRig, pods: number, awayMs: number): Promise<void> =>
  outage(rig, pods, () => rig.plane.restartApiServer(awayMs));

/** The controller dies at any moment, again and again, while pods come and go. */
export async function killLoop(
  rig: FaultRig,
  options: { pods: number; seconds: number; seed: number },
): Promise<number> {
  const { pods, seconds, seed } = options;
  const random = new SeededRandom(seed);
  const names = Array.from({ length: 10 }, (_, i) => `churn-${i}`);
  for (const name of names) await rig.want(name, pods / names.length);
  const end = performance.now() + seconds * 1000;
  let kills = 0;
  const killing = async (): Promise<void> => {
    while (performance.now() < end) {
      const program = await rig.hurriedController();
      await rig.world.pause(1500 + random.int(7000));
      await rig.kill(program);
      kills++;
    }
  };
  const churning = async (): Promise<void> => {
    while (performance.now() < end) {
      await rig.want(names[random.int(names.length)]!, random.int((2 * pods) / names.length));
      await rig.world.pause(1000);
    }
  };
  await Promise.all([killing(), churning()]);
  for (const name of names) await rig.want(name, pods / names.length);
  const last = await rig.controller();
  await rig.settled(pods, 480);
  await rig.empty();
  await rig.kill(last);
  return kills;
}

/** A leader hangs while it buys; another takes over; the first comes back and must not go on where it was. */
export async function leaseFight(rig: FaultRig, options: { pods: number; rounds: number }): Promise<void> {
  const { pods, rounds } = options;
  let leader = await rig.controller({ lease: true });
  for (let round = 0; round < rounds; round++) {
    const before = await held(rig, '');
    const other = await rig.controller({ lease: true });
    await rig.want('first', pods / 2);
    await rig.world.until('a first NodeClaim', () => rig.world.claims > 0, 60);
    process.kill(leader.pid!, 'SIGSTOP');
    await rig.want('second', pods / 2);
    const after = await held(rig, before);
    process.kill(leader.pid!, 'SIGCONT');
    await rig.settled(pods);
    boughtOnce(rig, pods + podsPerNode);
    // Who lost the lease ends by itself, so that it starts afresh.
    const code = await Promise.race([leader.ended, rig.world.pause(30_000).then(() => 'still there')]);
    if (code === 'still there') throw new Error('a leader that lost its lease went on');
    if ((await rig.holder()) !== after) throw new Error('the lease changed hands again');
    await rig.kill(leader);
    await rig.empty();
    leader = other;
  }
  await rig.kill(leader);
}

/** Who holds the lease, once it is another than before. */
async function held(rig: FaultRig, before: string): Promise<string> {
  for (let i = 0; i < 1200; i++) {
    const now = await rig.holder().catch(() => '');
    if (now !== '' && now !== before) return now;
    await rig.world.pause(100);
  }
  throw new Error('the lease did not change hands within two minutes');
}
