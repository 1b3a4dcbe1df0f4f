// SPDX-License-Identifier: Apache-2.0
// Everything around an API server that makes it a cluster: controllers, scheduler and kubelet over one client.
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Controller } from '../../runtime/controller.ts';
import type { Logger } from '../../runtime/logging.ts';
import { Metrics } from '../../runtime/metrics.ts';
import { AddressBook } from '../kubelet/addresses.ts';
import { fakeNodeController } from '../kubelet/fake-node.ts';
import { fakePodController } from '../kubelet/fake-pod.ts';
import { Scheduler } from '../scheduler/scheduler.ts';
import { type ControlPlane, mute, SharedInformers, Voices } from './context.ts';
import { daemonSetController } from './daemon-set.ts';
import { deploymentController } from './deployment/controller.ts';
import { disruptionBudgetController } from './disruption-budget.ts';
import { jobController } from './job.ts';
import { namespaceController } from './namespaces.ts';
import { nodeLifecycleController } from './node-lifecycle.ts';
import { podGarbageCollector } from './pod-gc.ts';
import { replicaSetController } from './replica-set.ts';
import { statefulSetController } from './stateful-set/controller.ts';
import { taintEvictionController } from './taint-eviction.ts';
import { volumeBinder } from './volume-binder.ts';
import { volumeProtection } from './volume-protection.ts';

export interface ControlPlaneOptions {
  readonly client: KubeClient;
  /** The server is in this process: nothing can cut what it tells. */
  readonly isDirect?: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics?: Metrics;
  /** PEM, for the `kube-root-ca.crt` of every namespace. */
  readonly certificateAuthority: string;
  /** How often fake nodes renew their leases; 0 turns heartbeats, and the watch over them, off. */
  readonly heartbeatMs?: number;
  /** From a pod being placed to it running. */
  readonly podStartMs?: number;
  /** Tells of nothing by events, and writes less. */
  readonly lean?: boolean;
  /** From a Job's pod running to it having completed. */
  readonly jobMs?: number;
}

export interface RunningControlPlane {
  readonly informers: SharedInformers;
  readonly scheduler: Scheduler;
  /** Stops everything, in order; resolves when nothing runs any more. */
  stop(): Promise<void>;
}

/** Starts a control plane; resolves when its caches are filled and all parts work. */
export async function runControlPlane(options: ControlPlaneOptions): Promise<RunningControlPlane> {
  const { client, clock, random, log, heartbeatMs = 20_000, podStartMs = 200, jobMs = 1000 } = options;
  const voices = new Voices({ client, clock, log });
  const informers = new SharedInformers({ client, clock, random, log, isDirect: options.isDirect });
  const metrics = options.metrics ?? new Metrics();
  const as = (component: string): ControlPlane => ({
    client,
    informers,
    clock,
    random,
    log,
    metrics,
    events: options.lean ? mute : voices.of(component),
    lean: options.lean ?? false,
  });
  const addresses = new AddressBook();
  const controllers: Controller[] = [
    deploymentController(as('deployment-controller')),
    replicaSetController(as('replicaset-controller')),
    daemonSetController(as('daemonset-controller')),
    statefulSetController(as('statefulset-controller')),
    jobController(as('job-controller')),
    disruptionBudgetController(as('controllermanager')),
    namespaceController(as('namespace-controller'), options.certificateAuthority),
    nodeLifecycleController(as('node-controller'), { watchHeartbeats: heartbeatMs > 0 }),
    taintEvictionController(as('taint-eviction-controller')),
    podGarbageCollector(as('pod-garbage-collector')),
    volumeBinder(as('persistentvolume-controller')),
    volumeProtection(as('persistentvolume-controller')),
    fakeNodeController(as('kubelet'), { heartbeatMs, addresses }),
    fakePodController(as('kubelet'), { startMs: podStartMs, jobMs, addresses }),
  ];
  const scheduler = new Scheduler(as('default-scheduler'));
  const stopping = new AbortController();
  const { signal } = stopping;
  await informers.start(signal);
  const running = Promise.all([scheduler.start(signal), ...controllers.map((controller) => controller.start(signal))]);
  return {
    informers,
    scheduler,
    stop: async () => {
      stopping.abort(new DOMException('the control plane stops', 'AbortError'));
      await running;
      voices.stop();
      await informers.stopped();
    },
  };
}
