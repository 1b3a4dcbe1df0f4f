// SPDX-License-Identifier: Apache-2.0
// Puts the provider together from a configuration and a door to the Linode API.
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { Cluster } from '../../runtime/clusters.ts';
import type { Logger } from '../../runtime/logging.ts';
import type { Runnable } from '../../runtime/manager.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { Account } from './account.ts';
import { ClusterInfoReader } from './bootstrap/cluster-info.ts';
import { BootstrapTokens } from './bootstrap/tokens.ts';
import { Catalog } from './catalog.ts';
import { LinodeClient } from './client.ts';
import type { LinodeDoor } from './door.ts';
import { InstanceMachines } from './instances.ts';
import { LkeMachines } from './lke.ts';
import type { Machines } from './machines.ts';
import { nodeClassController } from './node-class-controller.ts';
import { LinodeProvider } from './provider.ts';
import type { LinodeConfiguration } from './settings.ts';
import { taggingController } from './tagging-controller.ts';
import { UnavailablePlans } from './unavailable.ts';
import { Validator } from './validation.ts';

export interface AssembleOptions {
  readonly door: LinodeDoor;
  readonly configuration: LinodeConfiguration;
  /** Where NodeClaims and LinodeNodeClasses live. */
  readonly karpenter: Cluster;
  /** Where Nodes appear. */
  readonly workload: Cluster;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly userAgent?: string;
}

export interface LinodeParts {
  readonly provider: LinodeProvider;
  /** What it makes machines with, in the mode that was chosen. */
  readonly machines: Machines;
  /** Its own controllers. */
  readonly runnables: readonly Runnable[];
}

/** The provider and its controllers. Nothing is asked yet. */
export function assembleLinode(options: AssembleOptions): LinodeParts {
  const { door, configuration, karpenter, workload, clock, random, log, metrics, userAgent } = options;
  const { token, apiVersion, timeoutMs, mode, memoryOverhead, debug } = configuration;
  const client = new LinodeClient({
    door,
    token,
    apiVersion,
    timeoutMs,
    clock,
    metrics,
    ...(userAgent ? { userAgent } : {}),
    ...(debug ? { log } : {}),
  });
  const account = new Account({ client, configuration, clock });
  const unavailable = new UnavailablePlans(clock);
  const catalog = new Catalog({ client, account, workload, unavailable, mode, memoryOverhead, clock, log, metrics });
  const common = { client, account, unavailable, configuration, clock, log };
  const clusterInfo = new ClusterInfoReader({
    workload: workload.client,
    endpoint: configuration.clusterEndpoint,
    clock,
  });
  const machines: Machines =
    mode === 'lke'
      ? new LkeMachines(common)
      : new InstanceMachines({
          ...common,
          random,
          workload: workload.client,
          clusterInfo,
          tokens: new BootstrapTokens({ workload: workload.client, clock, random }),
        });
  const provider = new LinodeProvider({ machines, catalog, karpenter });
  const { lookUp } = configuration;
  const validator = new Validator({ client, account, mode, lookUp, clusterInfo });
  const controllers = { karpenter, clock, log, metrics };
  const runnables = [
    nodeClassController({ ...controllers, account, validator }),
    taggingController({ ...controllers, machines }),
  ];
  return { provider, machines, runnables };
}
