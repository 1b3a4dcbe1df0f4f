// SPDX-License-Identifier: Apache-2.0
// Who we are to Linode: whether the token is accepted, which LKE cluster is ours, and where machines are made. Looked up
// when it is needed and again after a while; a failure is told, remembered for nobody, and tried again.

import type { Clock } from '../../base/clock.ts';
import { KarpenterError, messageOf } from '../../base/errors.ts';
import { percentEncoded } from '../../base/percent.ts';
import { isDenied, isGone } from './api-errors.ts';
import type { LkeCluster, Region } from './api-types.ts';
import type { LinodeClient } from './client.ts';
import type { LinodeConfiguration } from './settings.ts';
import { shared } from './shared-call.ts';

/** Why nothing can be done in the account, in one word for conditions. */
export type AccountProblem = 'TokenRejected' | 'ClusterNotFound' | 'ClusterAmbiguous' | 'RegionNotFound';

/** The account cannot be used as it is configured. A person has to change something. */
export class LinodeAccountError extends KarpenterError {
  readonly reason: AccountProblem;

  constructor(reason: AccountProblem, message: string, cause?: unknown) {
    super('KRP_LINODE_ACCOUNT', message, cause === undefined ? {} : { cause });
    this.reason = reason;
  }
}

/** The cluster and the place of its machines. */
export interface Place {
  readonly region: Region;
  /** In LKE mode only. */
  readonly lke?: { readonly id: number; readonly tier: 'standard' | 'enterprise'; readonly version: string };
}

export interface AccountOptions {
  readonly client: LinodeClient;
  readonly configuration: Pick<LinodeConfiguration, 'mode' | 'clusterName' | 'region'>;
  readonly clock: Clock;
}

/** Versions of clusters and capabilities of regions change seldom. */
const freshMs = 10 * 60_000;

export class Account {
  readonly #options: AccountOptions;
  readonly #look: () => Promise<Place>;
  #known: { readonly place: Place; readonly at: number } | undefined;

  constructor(options: AccountOptions) {
    this.#options = options;
    this.#look = shared(async () => {
      const place = await this.#find(new AbortController().signal);
      this.#known = { place, at: options.clock.monotonic() };
      return place;
    });
  }

  /**
   * Where we are. Throws LinodeAccountError when the configuration is wrong, else what the API threw; what was known
   * before is used for as long as the API cannot be asked.
   */
  async place(maxAgeMs = freshMs): Promise<Place> {
    const known = this.#known;
    if (known && this.#options.clock.monotonic() - known.at <= maxAgeMs) return known.place;
    try {
      return await this.#look();
    } catch (error) {
      if (known && !(error instanceof LinodeAccountError)) return known.place;
      throw error;
    }
  }

  async #find(signal: AbortSignal): Promise<Place> {
    const { client, configuration } = this.#options;
    try {
      const cluster = configuration.mode === 'lke' ? await this.#cluster(signal) : undefined;
      const id = configuration.region || cluster?.region || '';
      return { region: await this.#region(client, id, signal), ...(cluster ? { lke: lkeOf(cluster) } : {}) };
    } catch (error) {
      if (!isDenied(error)) throw error;
      const what = 'Linode does not accept the token of LINODE_TOKEN, or it may not read clusters and regions';
      throw new LinodeAccountError('TokenRejected', `${what}: ${messageOf(error)}`, error);
    }
  }

  /** The one cluster with our name: nothing is guessed where there are none or several. */
  async #cluster(signal: AbortSignal): Promise<LkeCluster> {
    const { client, configuration } = this.#options;
    const { clusterName } = configuration;
    const found = await client.list<LkeCluster>('lke/clusters', { filter: { label: clusterName }, signal });
    // A filter that is not understood is ignored by the API.
    const [cluster, ...others] = found.filter(({ label }) => label === clusterName);
    if (!cluster) {
      throw new LinodeAccountError('ClusterNotFound', `the account has no LKE cluster with the label ${clusterName}`);
    }
    if (others.length > 0) {
      const ids = [cluster, ...others].map(({ id }) => id).join(', ');
      const message = `the account has several LKE clusters with the label ${clusterName} (${ids}): labels must differ`;
      throw new LinodeAccountError('ClusterAmbiguous', message);
    }
    if (configuration.region !== '' && configuration.region !== cluster.region) {
      const message = `LINODE_REGION is ${configuration.region}, and LKE cluster ${clusterName} is in ${cluster.region}`;
      throw new LinodeAccountError('RegionNotFound', message);
    }
    return cluster;
  }

  async #region(client: LinodeClient, id: string, signal: AbortSignal): Promise<Region> {
    try {
      return await client.get<Region>(`regions/${percentEncoded(id)}`, signal);
    } catch (error) {
      if (!isGone(error)) throw error;
      throw new LinodeAccountError('RegionNotFound', `Linode has no region ${id}`, error);
    }
  }
}

function lkeOf({ id, tier, k8s_version: version }: LkeCluster): NonNullable<Place['lke']> {
  return { id, tier: tier === 'enterprise' ? 'enterprise' : 'standard', version };
}
