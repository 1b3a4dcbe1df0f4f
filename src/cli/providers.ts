// SPDX-License-Identifier: Apache-2.0
// The clouds by name: which ones a process runs, and what controllers they bring.
import { readFileSync } from 'node:fs';
import type { Clock } from '../base/clock.ts';
import { KarpenterError, messageOf } from '../base/errors.ts';
import { CloudRegistry } from '../cloud/registry.ts';
import type { Clusters } from '../runtime/clusters.ts';
import type { Logger } from '../runtime/logging.ts';
import type { Runnable } from '../runtime/manager.ts';
import type { Metrics } from '../runtime/metrics.ts';
import type { ProgramSettings } from './program-settings.ts';

export interface ProviderParts {
  readonly clusters: Clusters;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly settings: Pick<ProgramSettings, 'providers' | 'instanceTypesFilePath'>;
}

/** The clouds of a process, and the controllers they bring. */
export interface LoadedProviders {
  readonly registry: CloudRegistry;
  readonly runnables: readonly Runnable[];
}

/** Loads the clouds that the settings name, and no others. Throws for a name that nobody has. */
export async function loadProviders(parts: ProviderParts): Promise<LoadedProviders> {
  const unknown = parts.settings.providers.filter((name) => name !== 'kwok');
  if (unknown.length > 0) {
    throw new KarpenterError('KRP_PROVIDER_UNKNOWN', `no such provider: ${unknown.join(', ')}; there is kwok`);
  }
  const { KwokProvider } = await import('../providers/kwok/provider.ts');
  const { resumptionController } = await import('../providers/kwok/resumption.ts');
  const { clusters, clock, log, metrics } = parts;
  const types = await instanceTypesOf(parts);
  const provider = new KwokProvider({
    karpenter: clusters.karpenter.client,
    workload: clusters.workload.client,
    clock,
    log: log.with({ provider: 'kwok' }),
    ...(types ? { types } : {}),
  });
  return {
    registry: new CloudRegistry([provider]),
    runnables: [resumptionController({ provider, karpenter: clusters.karpenter, clock, log, metrics })],
  };
}

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
