// SPDX-License-Identifier: Apache-2.0
// Which clouds a process runs. Every cloud that is named, or all that are known, take part from the start; one whose
// NodeClass is not installed sleeps until it is, and one that lacks its credentials says so on its NodeClasses. Neither
// needs a restart of the others, nor ends the process.
import { KarpenterError } from '../base/errors.ts';
import { CloudRegistry } from '../cloud/registry.ts';
import { awake, sleepingUntilServed } from '../cloud/sleeping-provider.ts';
import { UnconfiguredProvider, unconfiguredReporter } from '../cloud/unconfigured-provider.ts';
import type { Runnable } from '../runtime/manager.ts';
import { type KnownProvider, knownProviders, type LoadedProvider, type ProviderParts } from './known-providers.ts';
import { settingsSeenBy } from './shared-settings.ts';

/** The clouds of a process, and the controllers they bring. */
export interface LoadedProviders {
  readonly registry: CloudRegistry;
  readonly runnables: readonly Runnable[];
}

/**
 * Loads the clouds that the settings name, or without names every one that is known. Nothing is asked of a cloud before
 * its NodeClass is served. Throws for a name that nobody has, and for a setting of a cloud that is wrong.
 */
export async function loadProviders(
  parts: ProviderParts,
  known: readonly KnownProvider[] = knownProviders,
): Promise<LoadedProviders> {
  const chosen = choose(parts.settings.providers, known);
  const loaded: LoadedProvider[] = [];
  for (const provider of chosen) loaded.push(await load(provider, parts));
  return {
    registry: new CloudRegistry(loaded.map(({ provider }) => provider)),
    runnables: loaded.flatMap(({ runnables }) => runnables),
  };
}

function choose(names: readonly string[], known: readonly KnownProvider[]): readonly KnownProvider[] {
  const unknown = names.filter((name) => !known.some((provider) => provider.name === name));
  if (unknown.length > 0) {
    const there = known.map(({ name }) => name).join(', ');
    throw new KarpenterError('KRP_PROVIDER_UNKNOWN', `no such provider: ${unknown.join(', ')}; there is ${there}`);
  }
  return names.length === 0 ? known : known.filter(({ name }) => names.includes(name));
}

async function load(known: KnownProvider, parts: ProviderParts): Promise<LoadedProvider> {
  const { name, nodeClass } = known;
  const { clock, log, metrics, settings: all } = parts;
  const settings = settingsSeenBy(known, all);
  const cluster = parts.clusters.karpenter;
  const problem = await known.unconfigured(settings);
  if (problem !== undefined) {
    // Whoever named it waits for it; whoever did not may never have meant to use it.
    if (settings.providers.includes(name)) log.warn('provider is not configured', { provider: name, problem });
    const reporter = unconfiguredReporter({ name, nodeClass, problem, cluster, clock, log, metrics });
    return { provider: new UnconfiguredProvider(name, nodeClass, problem), runnables: [reporter] };
  }
  const { provider, runnables } = await known.load({ ...parts, settings });
  const served = { client: cluster.client, nodeClass };
  return {
    provider: sleepingUntilServed(provider, served),
    runnables: runnables.map((runnable) => awake(runnable, { ...served, provider: name, clock, log })),
  };
}
