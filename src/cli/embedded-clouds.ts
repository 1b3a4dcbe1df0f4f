// SPDX-License-Identifier: Apache-2.0
// The clouds that the embedded cluster knows: what it is furnished with for each of them, and the scenarios it can play.
// A new cloud is one more entry.
import { kwokNodeClassKind } from '../api/kwok-node-class.ts';
import { type NodePool, nodePoolKind } from '../api/node-pool.ts';
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import type { KubeClient } from '../kube/client.ts';
import { apiVersionOf } from '../kube/object.ts';
import { inflate } from './demo/inflate.ts';
import { nginx } from './demo/nginx.ts';
import type { Scenario } from './demo/scenario.ts';
import { spot } from './demo/spot.ts';
import { zones } from './demo/zones.ts';
import { clusterApi } from './embedded-cluster-api.ts';
import { linode } from './embedded-linode.ts';
import type { KnownProvider } from './known-providers.ts';
import type { ProgramSettings } from './program-settings.ts';
import { UsageError } from './usage-error.ts';

export interface EmbeddedCloud {
  /** As `--providers` names it. */
  readonly name: string;
  readonly scenarios: readonly Scenario[];
  /** Creates its NodeClass and a NodePool to begin with. `bootTime` (`3s`) is how long machines take to join, where that can be told. */
  furnish(karpenter: KubeClient, bootTime?: string): Promise<void>;
  /** Starts what plays the cloud, where that is more than objects. */
  run?(options: CloudRun): Promise<RunningCloud>;
  /** Other ways of playing it, as `--mode` names them. */
  readonly modes?: Readonly<Record<string, EmbeddedCloud>>;
}

/** A cloud that runs beside the cluster. */
export interface RunningCloud {
  stop(): Promise<void>;
  /** What its provider must be told to find it. */
  readonly settings?: Partial<ProgramSettings>;
  /** Loads its provider, where that is not what the program does elsewhere: through a door in this process. */
  readonly load?: KnownProvider['load'];
  /** What other programs need in their environment to find it. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** What a cloud needs to run beside the cluster. */
export interface CloudRun {
  readonly karpenter: KubeClient;
  readonly workload: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly bootTime?: string;
  /** An administrator's kubeconfig of the workload cluster, when it listens: then the cloud listens as well. */
  readonly kubeconfig?: string;
}

/** Not `default`: that name belongs to the pools in other people's guides. */
const kwokPool: NodePool = {
  apiVersion: apiVersionOf(nodePoolKind),
  kind: nodePoolKind.kind,
  metadata: { name: 'kwok' },
  spec: {
    template: {
      spec: {
        nodeClassRef: { group: kwokNodeClassKind.group, kind: kwokNodeClassKind.kind, name: 'default' },
        requirements: [
          { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
          { key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] },
        ],
      },
    },
    limits: { cpu: '1000' },
    // What is not needed goes at once, not a tenth of it at a time: somebody is watching.
    disruption: { budgets: [{ nodes: '100%' }] },
  },
};

const kwok: EmbeddedCloud = {
  name: 'kwok',
  scenarios: [inflate, nginx, zones, spot],
  async furnish(client, bootTime) {
    await client.resource(kwokNodeClassKind).create({
      apiVersion: apiVersionOf(kwokNodeClassKind),
      kind: kwokNodeClassKind.kind,
      metadata: { name: 'default' },
      ...(bootTime === undefined ? {} : { spec: { nodeRegistrationDelay: bootTime } }),
    });
    await client.resource(nodePoolKind).create(kwokPool);
  },
};

export const embeddedClouds: readonly EmbeddedCloud[] = [kwok, clusterApi, linode];

/** The clouds of a comma-separated list, in a mode. Throws UsageError for one that nobody knows. */
export function cloudsNamed(list: string, mode?: string): EmbeddedCloud[] {
  const clouds = named(list);
  if (mode === undefined) return clouds;
  const modes = clouds.flatMap((cloud) => Object.keys(cloud.modes ?? {}));
  if (!modes.includes(mode)) {
    const known = modes.length > 0 ? `there are: ${modes.join(', ')}` : 'there are none';
    throw new UsageError(`no such mode of ${list}: ${mode || '""'}; ${known}`);
  }
  return clouds.map((cloud) => cloud.modes?.[mode] ?? cloud);
}

function named(list: string): EmbeddedCloud[] {
  const names = [...new Set(list.split(',').map((name) => name.trim()))];
  return names.map((name) => {
    const found = embeddedClouds.find((cloud) => cloud.name === name);
    if (found) return found;
    const known = embeddedClouds.map((cloud) => cloud.name).join(', ');
    throw new UsageError(`no such provider: ${name || '""'}; the embedded cluster knows: ${known}`);
  });
}
