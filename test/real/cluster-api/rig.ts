// SPDX-License-Identifier: Apache-2.0
// The scenarios' runner on real programs: two control planes, the manager of Cluster API, a small infrastructure provider,
// kwok as the kubelets, and our controller as the guide starts it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RealClock } from '../../../src/base/clock.ts';
import { connect } from '../../../src/cli/connect.ts';
import { KubeClient } from '../../../src/kube/client.ts';
import { MachineWitness } from '../../../src/providers/cluster-api/testing/machine-witness.ts';
import { type Rig, stateOf } from '../../../src/providers/cluster-api/testing/scenarios.ts';
import type { AuditLog } from '../audit.ts';
import { type ControlPlane, startControlPlane } from '../control-plane.ts';
import { applyCrds } from '../controllers.ts';
import { apply } from '../kubectl.ts';
import { execute, freePort, RunningProgram, startListening } from '../processes.ts';
import { startInfrastructure } from './infrastructure.ts';
import { installClusterApi, startManager } from './manager.ts';
import { auditLog, hubRights, workloadRights } from './rights.ts';

export interface RealRigOptions {
  /** How long the managers are kept from working. */
  readonly frozenMs?: number;
  /** A folder for the logs of the controller and the manager. */
  readonly logs?: string;
}

const nodeClass = {
  apiVersion: 'karpenter.cluster.x-k8s.io/v1alpha1',
  kind: 'ClusterAPINodeClass',
  metadata: { name: 'default' },
  spec: {},
};

/** The guide's, as `karpenter convert` gives it, in a hurry. */
const nodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'default' },
  spec: {
    template: {
      spec: {
        requirements: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] }],
        nodeClassRef: { group: 'karpenter.cluster.x-k8s.io', kind: 'ClusterAPINodeClass', name: 'default' },
      },
    },
    disruption: { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] },
  },
};

export class RealRig implements Rig {
  readonly hub: KubeClient;
  readonly workload: KubeClient;
  readonly frozenMs: number;
  readonly controller: RunningProgram;
  /** What the controller asked of either API server. */
  readonly audits: { hub: AuditLog; workload: AuditLog };
  /** When the hub's API server was away or starting. */
  readonly restarts: { from: number; to: number }[] = [];
  readonly #planes: { hub: ControlPlane; workload: ControlPlane };
  readonly #manager: RunningProgram;
  readonly #witness: MachineWitness;
  readonly #folder: string;
  readonly #stop: AbortController;

  private constructor(parts: {
    planes: { hub: ControlPlane; workload: ControlPlane };
    audits: { hub: AuditLog; workload: AuditLog };
    clients: { hub: KubeClient; workload: KubeClient };
    manager: RunningProgram;
    controller: RunningProgram;
    folder: string;
    stop: AbortController;
    frozenMs: number;
  }) {
    this.#planes = parts.planes;
    this.audits = parts.audits;
    this.hub = parts.clients.hub;
    this.workload = parts.clients.workload;
    this.#manager = parts.manager;
    this.controller = parts.controller;
    this.#folder = parts.folder;
    this.#stop = parts.stop;
    this.frozenMs = parts.frozenMs;
    this.#witness = new MachineWitness(this.hub, new RealClock());
    this.#witness.start(this.#stop.signal);
  }

  static async start({ frozenMs = 15_000, logs }: RealRigOptions = {}): Promise<RealRig> {
    const folder = mkdtempSync(join(tmpdir(), 'karpenter-capi-'));
    const stop = new AbortController();
    const started: { stop(): Promise<unknown> }[] = [];
    const starting = async <T extends { stop(): Promise<unknown> }>(program: Promise<T>): Promise<T> => {
      started.push(await program);
      return program;
    };
    try {
      const audits = { hub: auditLog(folder, 'hub'), workload: auditLog(folder, 'workload') };
      const [hub, workload] = await Promise.all([
        starting(startControlPlane({ apiServer: audits.hub.flags })),
        starting(startControlPlane({ workloads: true, kwok: true, apiServer: audits.workload.flags })),
      ]);
      await applyCrds(workload.kubeconfig);
      await installClusterApi(hub.kubeconfig, workload);
      const own = { hub: await hubRights(hub, folder), workload: await workloadRights(workload, folder) };
      const log = (name: string): { log?: string } => (logs ? { log: join(logs, `${name}.log`) } : {});
      const manager = await starting(startManager(hub.kubeconfig, folder, log('manager').log));
      const clients = { hub: await clientOf(hub), workload: await clientOf(workload) };
      await startInfrastructure(clients, stop.signal);
      await apply(workload.kubeconfig, [nodeClass, nodePool]);
      const controller = await starting(startGuidesController({ ...own, ...log('controller') }));
      return new RealRig({
        planes: { hub, workload },
        audits,
        clients,
        manager,
        controller,
        folder,
        stop,
        frozenMs,
      });
    } catch (error) {
      stop.abort(error);
      for (const program of started.toReversed()) await program.stop();
      throw error;
    }
  }

  get seen(): ReadonlySet<string> {
    return this.#witness.seen;
  }

  /** Between scenarios. */
  begin(): void {
    this.#witness.begin();
  }

  async until(what: string, holds: () => Promise<boolean>, withinMs = 60_000): Promise<void> {
    try {
      await this.controller.until(holds, withinMs);
    } catch (error) {
      throw new Error(`${what}: not so\n${JSON.stringify(await stateOf(this), undefined, 1)}`, { cause: error });
    }
  }

  pass(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, ms));
  }

  async freezeManagers(): Promise<void> {
    process.kill(this.#manager.pid!, 'SIGSTOP');
  }

  async thawManagers(): Promise<void> {
    process.kill(this.#manager.pid!, 'SIGCONT');
  }

  async restartHub(): Promise<void> {
    const from = Date.now();
    await this.#planes.hub.restartApiServer(3000);
    this.restarts.push({ from, to: Date.now() + 2000 });
  }

  /** Gives the controller's exit code. */
  async stop(): Promise<number | null> {
    const code = await this.controller.stop();
    this.#stop.abort(new Error('the test is over'));
    await this.thawManagers();
    await this.#manager.stop();
    await Promise.all([this.#planes.hub.stop(), this.#planes.workload.stop()]);
    rmSync(this.#folder, { recursive: true, force: true });
    return code;
  }
}

async function clientOf({ kubeconfig }: ControlPlane): Promise<KubeClient> {
  const clock = new RealClock();
  return new KubeClient({ transport: await connect(kubeconfig, clock), clock, fieldManager: 'test' });
}

/** `make build`, and the program as the guide starts it, word for word. */
async function startGuidesController(options: {
  /** Kubeconfigs. */
  hub: string;
  workload: string;
  log?: string;
}): Promise<RunningProgram> {
  const { hub, workload, log } = options;
  const { code, stdout, stderr } = await execute('make', ['build']);
  if (code !== 0) throw new Error(`make build ended with ${code}:\n${stdout}${stderr}`);
  const line = `--cluster-api-kubeconfig ${hub} --leader-election-namespace kube-system`;
  return startListening(async () => {
    const [metrics, health] = [await freePort(), await freePort()];
    const env = {
      ...process.env,
      KUBECONFIG: workload,
      SYSTEM_NAMESPACE: 'kube-system',
      METRICS_PORT: String(metrics),
      HEALTH_PROBE_PORT: String(health),
    };
    const program = new RunningProgram('the controller', './bin/karpenter-clusterapi-controller', line.split(' '), {
      env,
      ...(log ? { log } : {}),
    });
    return { program, health };
  });
}
