// SPDX-License-Identifier: Apache-2.0
// Loads the Linode provider: a door to the Linode API over HTTP, and what works through it.
import { SystemRandom } from '../base/random.ts';
import { assembleLinode } from '../providers/linode/assemble.ts';
import { HttpDoor } from '../providers/linode/door.ts';
import { linodeConfiguration } from '../providers/linode/settings.ts';
import type { LoadedProvider, ProviderParts } from './known-providers.ts';
import { version } from './version.ts';

/** Throws when a setting is wrong. Nothing is asked yet. */
export function loadLinode({ clusters, clock, log, metrics, settings }: ProviderParts): LoadedProvider {
  const configuration = linodeConfiguration(settings);
  const { provider, runnables } = assembleLinode({
    door: new HttpDoor(configuration),
    configuration,
    karpenter: clusters.karpenter,
    workload: clusters.workload,
    clock,
    random: new SystemRandom(),
    log: log.with({ provider: 'linode' }),
    metrics,
    userAgent: `karpenter/${version}`,
  });
  return { provider, runnables };
}
