// SPDX-License-Identifier: Apache-2.0
// Loads the Linode provider: a door to the Linode API over HTTP, and what works through it.
import { type Random, SystemRandom } from '../base/random.ts';
import { assembleLinode } from '../providers/linode/assemble.ts';
import { HttpDoor, type LinodeDoor } from '../providers/linode/door.ts';
import { linodeConfiguration } from '../providers/linode/settings.ts';
import type { LoadedProvider, ProviderParts } from './known-providers.ts';
import { version } from './version.ts';

/** Throws when a setting is wrong. Nothing is asked yet. */
export function loadLinode(parts: ProviderParts): LoadedProvider {
  return loadLinodeThrough(new HttpDoor(linodeConfiguration(parts.settings)), parts, new SystemRandom());
}

/** The same through another door, such as the one of an API in this process. */
export function loadLinodeThrough(door: LinodeDoor, parts: ProviderParts, random: Random): LoadedProvider {
  const { clusters, clock, log, metrics, settings } = parts;
  const { provider, runnables } = assembleLinode({
    door,
    configuration: linodeConfiguration(settings),
    karpenter: clusters.karpenter,
    workload: clusters.workload,
    clock,
    random,
    log: log.with({ provider: 'linode' }),
    metrics,
    userAgent: `karpenter/${version}`,
  });
  return { provider, runnables };
}
