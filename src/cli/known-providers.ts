// SPDX-License-Identifier: Apache-2.0
// The clouds this program knows, each with the way to load it. A new cloud is one more entry, and a file in the chart.
import { readFileSync } from 'node:fs';
import { clusterApiNodeClassKind } from '../api/cluster-api-node-class.ts';
import { kwokNodeClassKind } from '../api/kwok-node-class.ts';
import { linodeNodeClassKind } from '../api/linode-node-class.ts';
import type { Clock } from '../base/clock.ts';
import { KarpenterError, messageOf } from '../base/errors.ts';
import type { CloudProvider } from '../cloud/provider.ts';
import type { KubeObject, ResourceType } from '../kube/object.ts';
import type { ClusterApiSettings } from '../providers/cluster-api/settings.ts';
import { type LinodeSettings, missingLinodeSetting } from '../providers/linode/settings.ts';
import type { Clusters } from '../runtime/clusters.ts';
import type { Logger } from '../runtime/logging.ts';
import type { Runnable } from '../runtime/manager.ts';
import type { Metrics } from '../runtime/metrics.ts';
import type { ProgramSettings } from './program-settings.ts';
import type { Sharing } from './shared-settings.ts';

/** The settings that matter for loading clouds. */
export type ProviderSettings = Pick<
  ProgramSettings,
  | 'providers'
  | 'clusterName'
  | 'clusterEndpoint'
  | 'instanceTypesFilePath'
  | 'kubeClientQps'
  | 'kubeClientBurst'
  | keyof ClusterApiSettings
  | keyof LinodeSettings
>;

export interface ProviderParts {
  readonly clusters: Clusters;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly settings: ProviderSettings;
}

export interface LoadedProvider {
  readonly provider: CloudProvider;
  /** Its own controllers. */
  readonly runnables: readonly Runnable[];
}

export interface KnownProvider extends Sharing {
  /** Its name, in `--providers`, in metrics and in the chart. */
  readonly name: string;
  /** Whoever installs this kind wants the cloud. */
  readonly nodeClass: ResourceType<KubeObject>;
  /** What keeps it from working, as a sentence that says what to set; undefined when nothing does. */
  unconfigured(settings: ProviderSettings): string | undefined | Promise<string | undefined>;
  /** Throws when a setting is wrong, as opposed to missing. */
  load(parts: ProviderParts): Promise<LoadedProvider>;
}

const kwok: KnownProvider = {
  name: 'kwok',
  nodeClass: kwokNodeClassKind as ResourceType<KubeObject>,
  // Its machines are Node objects: the API server is all it needs.
  unconfigured: () => undefined,
  async load(parts) {
    const { clusters, clock, log, metrics } = parts;
    const [{ KwokProvider }, { kwokRunnables }] = await Promise.all([
      import('../providers/kwok/provider.ts'),
      import('../providers/kwok/resumption.ts'),
    ]);
    const types = await instanceTypesOf(parts);
    const provider = new KwokProvider({
      karpenter: clusters.karpenter.client,
      workload: clusters.workload.client,
      clock,
      log: log.with({ provider: 'kwok' }),
      ...(types ? { types } : {}),
    });
    const runnables = kwokRunnables({ provider, karpenter: clusters.karpenter, clock, log, metrics });
    return { provider, runnables };
  },
};

const clusterApi: KnownProvider = {
  name: 'cluster-api',
  nodeClass: clusterApiNodeClassKind as ResourceType<KubeObject>,
  // Without settings the management cluster is the one that Karpenter's own objects are in.
  unconfigured: () => undefined,
  load: async (parts) => (await import('./cluster-api.ts')).loadClusterApi(parts),
};

const linode: KnownProvider = {
  name: 'linode',
  nodeClass: linodeNodeClassKind as ResourceType<KubeObject>,
  shares: ['clusterName', 'clusterEndpoint'],
  unconfigured: missingLinodeSetting,
  load: async (parts) => (await import('./linode.ts')).loadLinode(parts),
};

/** In the order in which they are named to users. */
export const knownProviders: readonly KnownProvider[] = [kwok, clusterApi, linode];

async function instanceTypesOf({ settings, log }: ProviderParts) {
  const path = settings.instanceTypesFilePath;
  if (!path) return undefined;
  const { readInstanceTypes } = await import('../providers/kwok/instance-types.ts');
  let content: string;
  try {
    content = readFileSync(path, 'utf8');
  } catch (error) {
    throw new KarpenterError('KRP_INSTANCE_TYPES_FILE', `--instance-types-file-path: ${messageOf(error)}`, {
      cause: error,
    });
  }
  const { types, problems } = readInstanceTypes(content);
  for (const problem of problems) log.error('ignoring an instance type', { file: path, problem });
  if (types.length === 0) {
    throw new KarpenterError('KRP_INSTANCE_TYPES_FILE', `${path}: no usable instance type: ${problems.join('; ')}`);
  }
  return types;
}
