// SPDX-License-Identifier: Apache-2.0
// Controllers as processes against a real API server: ours and, for the race, upstream's, with the same settings.
import { smallYoungSpace } from '../../bin/heap.js';
import { tool } from '../../hack/tools/tools.ts';
import { kubectl } from './kubectl.ts';
import { freePort, RunningProgram, startListening } from './processes.ts';

export type ControllerName = 'ours' | 'upstream';

export interface ControllerOptions {
  readonly kubeconfig: string;
  /** Variables beside the usual ones. */
  readonly env?: Readonly<Record<string, string>>;
  /** A file for its whole log. */
  readonly log?: string;
}

/** Our CRDs, which upstream's controller and suite take as well. */
export async function applyCrds(kubeconfig: string): Promise<void> {
  await kubectl(kubeconfig, ['apply', '--server-side', '-f', 'crds']);
  await kubectl(kubeconfig, ['wait', '--for=condition=Established', 'crd', '--all']);
}

/** Starts a controller with upstream's end-to-end settings and waits until it says that it is ready. */
export async function startController(which: ControllerName, options: ControllerOptions): Promise<RunningProgram> {
  return startListening(() => launchController(which, options));
}

/** The same without waiting; `health` is the port of its probes. */
export async function launchController(
  which: ControllerName,
  options: ControllerOptions,
): Promise<{ program: RunningProgram; health: number }> {
  const [metrics, health] = [await freePort(), await freePort()];
  const env = {
    ...process.env,
    KUBECONFIG: options.kubeconfig,
    SYSTEM_NAMESPACE: 'kube-system',
    LEADER_ELECTION_NAMESPACE: 'kube-system',
    METRICS_PORT: String(metrics),
    HEALTH_PROBE_PORT: String(health),
    FEATURE_GATES: 'StaticCapacity=true,NodeRepair=true,CapacityBuffer=true',
    ...options.env,
  };
  const [path, args] =
    which === 'ours'
      ? [process.execPath, [smallYoungSpace, 'bin/karpenter.js', 'controller']]
      : [await tool('upstream-controller'), [] as string[]];
  const program = new RunningProgram(`${which} controller`, path, args, {
    env,
    ...(options.log ? { log: options.log } : {}),
  });
  return { program, health };
}
