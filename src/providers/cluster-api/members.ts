// SPDX-License-Identifier: Apache-2.0
// The members of NodeClasses, read from the management cluster, the templates and the price table.
import { type ClusterApiNodeClass, clusterApiNodeClassKind } from '../../api/cluster-api-node-class.ts';
import type { Clock } from '../../base/clock.ts';
import { ignoreNotFound } from '../../kube/api-error.ts';
import type { Informer } from '../../kube/informer.ts';
import { kinds } from '../../kube/kinds.ts';
import type { ResourceType } from '../../kube/object.ts';
import type { Cluster } from '../../runtime/clusters.ts';
import { type Member, type Members, readMembers, selectScalables } from './catalog.ts';
import type { Hub } from './hub.ts';
import type { Template } from './kinds.ts';
import type { PriceTable } from './prices.ts';
import type { IsSynced } from './settings.ts';
import { needsTemplate } from './shape.ts';

/** How long a price table that was read counts as current. */
const pricesTtlMs = 60_000;
/** How long members count as current: when nothing changed, and when something did (thousands may ask at one moment). */
const unchangedTtlMs = 30_000;
const changedTtlMs = 50;

interface Reading {
  readonly nodeClass: ClusterApiNodeClass;
  readonly version: number;
  readonly at: number;
  readonly members: Promise<Members>;
}

export class MemberReader {
  readonly nodeClasses: Informer<ClusterApiNodeClass>;
  readonly #hub: Hub;
  readonly #karpenter: Cluster;
  readonly #clock: Clock;
  readonly #isSynced: IsSynced | undefined;
  readonly #readings = new Map<string, Reading>();
  readonly #prices = new Map<string, { readonly until: number; readonly read: Promise<PriceTable | undefined> }>();

  constructor(options: { hub: Hub; karpenter: Cluster; clock: Clock; isSynced?: IsSynced | undefined }) {
    this.#hub = options.hub;
    this.#karpenter = options.karpenter;
    this.#clock = options.clock;
    this.#isSynced = options.isSynced;
    this.nodeClasses = options.karpenter.informers.get(
      clusterApiNodeClassKind as unknown as ResourceType<ClusterApiNodeClass>,
      { tolerateMissing: true },
    );
  }

  /** What a NodeClass selects. Throws HubUnavailableError, and SelectorError for a selector that is none. */
  read(nodeClass: ClusterApiNodeClass, signal: AbortSignal): Promise<Members> {
    const { name = '' } = nodeClass.metadata;
    const { version } = this.#hub;
    const at = this.#clock.monotonic();
    const known = this.#readings.get(name);
    if (known?.nodeClass === nodeClass) {
      if (at - known.at < (known.version === version ? unchangedTtlMs : changedTtlMs)) return known.members;
    }
    const members = this.#read(nodeClass, signal);
    this.#readings.set(name, { nodeClass, version, at, members });
    members.catch(() => this.#readings.delete(name));
    return members;
  }

  async #read(nodeClass: ClusterApiNodeClass, signal: AbortSignal): Promise<Members> {
    const orphans = nodeClass.spec?.orphanMachines === 'Enabled' ? await this.#hub.templates(signal) : [];
    const selected = selectScalables(nodeClass, this.#hub.view, orphans);
    const templates = new Map<string, Template>();
    for (const [key, object] of selected) {
      const ref = object.spec?.template?.spec?.infrastructureRef;
      if (!ref || !needsTemplate(object)) continue;
      const template = await this.#hub.template(ref, object.metadata.namespace ?? '', signal);
      if (template) templates.set(key, template);
    }
    const prices = await this.#pricesOf(nodeClass, signal);
    const { namespace, name } = nodeClass.spec?.priceTable ?? {};
    return {
      ...readMembers(selected, { nodeClass, templates, prices: prices ?? {}, isSynced: this.#isSynced }),
      ...(prices ? {} : { priceProblem: `there is no ConfigMap ${namespace}/${name}: prices are estimated` }),
    };
  }

  /** The members of all NodeClasses by key: for Machines whose NodeClass is not known. A class that cannot be read is left out. */
  async all(signal: AbortSignal): Promise<Map<string, Member>> {
    const members = new Map<string, Member>();
    for (const nodeClass of this.nodeClasses.list()) {
      const found = await this.read(nodeClass, signal).catch(() => undefined);
      for (const member of found?.valid ?? []) if (!members.has(member.key)) members.set(member.key, member);
    }
    return members;
  }

  /** undefined when the table that is named is not there. */
  #pricesOf(nodeClass: ClusterApiNodeClass, signal: AbortSignal): Promise<PriceTable | undefined> {
    const table = nodeClass.spec?.priceTable;
    if (!table) return Promise.resolve({});
    const key = `${table.namespace}/${table.name}`;
    const now = this.#clock.monotonic();
    const known = this.#prices.get(key);
    if (known && known.until > now) return known.read;
    const { namespace, name } = table;
    const read = ignoreNotFound(this.#karpenter.client.resource(kinds.ConfigMap).get(name, { namespace, signal })).then(
      (map) => map && (map.data ?? {}),
    );
    this.#prices.set(key, { until: now + pricesTtlMs, read });
    read.catch(() => this.#prices.delete(key));
    return read;
  }
}
