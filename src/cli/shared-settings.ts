// SPDX-License-Identifier: Apache-2.0
// Settings that several clouds know by the same name. One value serves them all; a cloud can be given one of its own.
import { type Setting, text } from '../runtime/setting-types.ts';
import type { SettingsTable } from '../runtime/settings.ts';

export const sharedSettings = {
  clusterName: text({
    flag: 'cluster-name',
    env: 'CLUSTER_NAME',
    chart: ['settings.clusterName'],
    default: '',
    help: 'Name of this cluster, for clouds that mark their machines with it. KWOK does not.',
  }),
  clusterEndpoint: text({
    flag: 'cluster-endpoint',
    env: 'CLUSTER_ENDPOINT',
    chart: ['settings.clusterEndpoint'],
    default: '',
    help: 'URL of the API server for machines that join the cluster by themselves. Empty: what the cluster publishes.',
  }),
};

/** A cloud and the shared settings it reads. */
export interface Sharing<K extends string = keyof typeof sharedSettings> {
  readonly name: string;
  readonly shares?: readonly K[];
}

/**
 * For each cloud and each setting it shares, a setting for it alone: `--linode-cluster-name`, `LINODE_CLUSTER_NAME` and
 * `settings.linode.clusterName` in the chart. Its default says that the shared one counts.
 */
export function settingsForOne<K extends string>(
  shared: Readonly<Record<K, Setting<string>>>,
  providers: readonly Sharing<K>[],
): SettingsTable {
  const table: Record<string, Setting<string>> = {};
  for (const { name, shares = [] } of providers) {
    for (const key of shares) {
      const of: Setting<string> = shared[key];
      const { flag, env, chart, ...setting } = of;
      table[ownKey(name, key)] = {
        ...setting,
        ...(flag === undefined ? {} : { flag: `${name}-${flag}` }),
        env: `${name.replaceAll('-', '_').toUpperCase()}_${env}`,
        ...(chart ? { chart: [chart[0].replace(/^settings\./, `settings.${camelCase(name)}.`)] } : {}),
        default: '',
        help: `\`${env}\` for the cloud ${name} alone.`,
      };
    }
  }
  return table;
}

/** The settings as one cloud sees them: what was given for it alone stands in the place of what is shared. */
export function settingsSeenBy<S extends object, K extends string>(provider: Sharing<K>, settings: S): S {
  const values = settings as Readonly<Record<string, unknown>>;
  const own = (provider.shares ?? []).flatMap((key) => {
    const value = values[ownKey(provider.name, key)];
    return value === undefined || value === '' ? [] : [[key, value] as const];
  });
  return own.length === 0 ? settings : { ...settings, ...Object.fromEntries(own) };
}

function ownKey(provider: string, key: string): string {
  return `${provider}.${key}`;
}

function camelCase(name: string): string {
  return name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}
