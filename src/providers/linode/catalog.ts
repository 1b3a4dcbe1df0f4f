// SPDX-License-Identifier: Apache-2.0
// What Linode sells here and now: plans and prices, which of them the region has, what launches found sold out, and what
// Nodes have shown of their memory.

import { labels } from '../../api/labels.ts';
import type { LinodeNodeClass } from '../../api/linode-node-class.ts';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { deepFreeze } from '../../base/freeze.ts';
import type { InstanceType } from '../../cloud/provider.ts';
import { kinds, type Node } from '../../kube/kinds.ts';
import { Quantity } from '../../kube/quantity.ts';
import type { Cluster } from '../../runtime/clusters.ts';
import type { Logger } from '../../runtime/logging.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { Account, Place } from './account.ts';
import { LinodeUnreachableError } from './api-errors.ts';
import { isAvailability, isPlan } from './api-shapes.ts';
import type { LinodeType, Region, RegionAvailability } from './api-types.ts';
import type { LinodeClient } from './client.ts';
import { rootDiskMb } from './furnish.ts';
import { instanceTypesOf, type Observed } from './instance-types.ts';
import { linodeMetrics } from './metrics.ts';
import { providerScheme } from './names.ts';
import { shared } from './shared-call.ts';
import type { UnavailablePlans } from './unavailable.ts';

export interface CatalogOptions {
  readonly client: LinodeClient;
  readonly account: Account;
  /** Where Nodes appear. */
  readonly workload: Cluster;
  readonly unavailable: UnavailablePlans;
  readonly mode: 'lke' | 'instance';
  readonly memoryOverhead: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Plans and prices change by announcement, availability by the minute. */
const plansMs = 10 * 60_000;
const availabilityMs = 60_000;

/** Which capability of a region a class of plans needs. */
const capabilities: Readonly<Record<string, string>> = {
  gpu: 'GPU Linodes',
  premium: 'Premium Plans',
  accelerated: 'NETINT Quadra T1U',
};

/** What was read last. */
interface Read {
  readonly plans: readonly LinodeType[];
  readonly region: Region;
  readonly availability: readonly RegionAvailability[];
}

interface Stock {
  readonly plans: readonly LinodeType[];
  readonly region: Region;
  /** Plans that the region does not have now. What it says nothing about, it has. */
  readonly missing: ReadonlySet<string>;
}

export class Catalog {
  readonly #options: CatalogOptions;
  readonly #plans: Remembered<readonly LinodeType[]>;
  readonly #availability: Remembered<readonly RegionAvailability[]>;
  readonly #memory = new Map<string, bigint>();
  #memoryChanges = 0;
  /** By what it was made from. */
  readonly #made = new WeakMap<object, Map<string, readonly InstanceType[]>>();
  #stock: Stock | undefined;
  /** What the stock was made from. */
  #read: Read | undefined;
  /** The types that metrics tell about. */
  #measured: ReadonlySet<string> = new Set();

  constructor(options: CatalogOptions) {
    this.#options = options;
    const { client, account, clock, log } = options;
    const signal = new AbortController().signal;
    this.#plans = new Remembered({
      clock,
      log,
      what: 'plans',
      maxAgeMs: plansMs,
      read: async () => {
        const plans = (await client.list<LinodeType>('linode/types', { signal })).filter(isPlan);
        if (plans.length === 0) throw new LinodeUnreachableError('GET linode/types', 'Linode names no plans');
        return plans;
      },
    });
    this.#availability = new Remembered({
      clock,
      log,
      what: 'availability',
      maxAgeMs: availabilityMs,
      read: async () => {
        const { region } = await account.place();
        const found = await client.get<RegionAvailability[]>(`regions/${region.id}/availability`, signal);
        return Array.isArray(found) ? found.filter(isAvailability) : [];
      },
    });
    const nodes = options.workload.informers.get(kinds.Node);
    const learn = (node: Node): void => this.#learn(node);
    nodes.addHandler({ added: learn, updated: learn });
  }

  /** Every type that a NodeClass allows, also what cannot be had now. The same frozen list for the same question. */
  async types(nodeClass: LinodeNodeClass | undefined): Promise<readonly InstanceType[]> {
    const stock = await this.#current();
    const { unavailable, mode, memoryOverhead } = this.#options;
    const kubelet = nodeClass?.spec?.kubelet;
    const { swapSize, swap_size = swapSize, osDisk, dataDisks = {} } = nodeClass?.spec ?? {};
    const disks = [swap_size, osDisk?.size, ...Object.values(dataDisks).map(({ size }) => size)];
    // All that an answer depends on, the NodeClass by its content: a changed kubelet setting counts at once.
    const key = JSON.stringify([kubelet ?? null, disks, unavailable.signature, this.#memoryChanges]);
    let made = this.#made.get(stock);
    if (!made) {
      made = new Map();
      this.#made.set(stock, made);
    }
    let types = made.get(key);
    if (!types) {
      if (made.size > 100) made.clear();
      types = deepFreeze(
        instanceTypesOf(stock.plans, {
          mode,
          region: stock.region.id,
          kubelet,
          memoryOverhead,
          ...(mode === 'lke' ? {} : { rootDiskMb: (planMb) => rootDiskMb(planMb, nodeClass?.spec ?? {}) }),
          observed: (type) => this.#observed(type),
          available: (type) => !stock.missing.has(type) && !unavailable.has(type),
        }),
      ) as readonly InstanceType[];
      made.set(key, types);
      this.#measure(types, stock);
    }
    return types;
  }

  async place(): Promise<Place> {
    return this.#options.account.place();
  }

  async #current(): Promise<Stock> {
    const { account } = this.#options;
    const { region } = await account.place();
    const [plans, availability] = [await this.#plans.get(), await this.#availability.get()];
    const read = this.#read;
    // Every machine that is looked at asks, and mostly nothing was read since.
    if (this.#stock && read?.plans === plans && read.availability === availability && read.region === region)
      return this.#stock;
    this.#read = { plans, availability, region };
    const gone = availability.filter((one) => one.region === region.id && !one.available).map(({ plan }) => plan);
    const lacking = plans.filter(
      ({ class: of }) => capabilities[of] !== undefined && !region.capabilities.includes(capabilities[of]),
    );
    const missing = new Set([...gone, ...lacking.map(({ id }) => id)]);
    const old = this.#stock;
    const isSame =
      old?.plans === plans && old.region === region && [...missing].sort().join() === [...old.missing].sort().join();
    if (!isSame) this.#stock = { plans, region, missing };
    return this.#stock!;
  }

  #observed(type: string): Observed | undefined {
    const memory = this.#memory.get(type);
    return memory === undefined ? undefined : { memory };
  }

  /** The smallest memory that a Node of a type has shown. */
  #learn({ metadata, spec, status }: Node): void {
    const type = metadata.labels?.[labels.instanceType];
    const memory = Quantity.tryParse(status?.capacity?.['memory']);
    if (!type || !memory || memory.sign() <= 0 || !spec?.providerID?.startsWith(providerScheme)) return;
    const known = this.#memory.get(type);
    if (known !== undefined && known <= memory.value()) return;
    this.#memory.set(type, memory.value());
    this.#memoryChanges++;
  }

  #measure(types: readonly InstanceType[], { plans, region: { id: region } }: Stock): void {
    const { metrics } = this.#options;
    const sold = new Set(plans.map(({ id }) => id));
    // What is sold no more has no price. What one class cannot use another may.
    for (const gone of [...this.#measured].filter((name) => !sold.has(name))) {
      for (const gauge of ['cpuCores', 'memoryBytes', 'available', 'price'] as const) {
        metrics.gauge(linodeMetrics[gauge]).deleteMatching({ instance_type: gone });
      }
    }
    this.#measured = new Set([...this.#measured, ...types.map(({ name }) => name)].filter((name) => sold.has(name)));
    for (const { name, capacity, offerings } of types) {
      metrics.gauge(linodeMetrics.cpuCores).set({ instance_type: name }, Number(capacity['cpu'] ?? 0));
      const memory = Quantity.parse(capacity['memory'] ?? '0').toNumber();
      metrics.gauge(linodeMetrics.memoryBytes).set({ instance_type: name }, memory);
      for (const { available, price } of offerings) {
        const of = { instance_type: name, capacity_type: 'on-demand', region, zone: region };
        metrics.gauge(linodeMetrics.available).set(of, available ? 1 : 0);
        metrics.gauge(linodeMetrics.price).set(of, price);
      }
    }
  }
}

interface RememberedOptions<T> {
  readonly read: () => Promise<T>;
  readonly maxAgeMs: number;
  readonly what: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Something that is read again after a while. What was read before stands for as long as it cannot be read. */
class Remembered<T> {
  readonly #options: RememberedOptions<T>;
  readonly #read: () => Promise<T>;
  #known: { readonly value: T; readonly at: number } | undefined;

  constructor(options: RememberedOptions<T>) {
    this.#options = options;
    this.#read = shared(async () => {
      const value = await options.read();
      this.#known = { value, at: options.clock.monotonic() };
      return value;
    });
  }

  async get(): Promise<T> {
    const { clock, maxAgeMs, log, what } = this.#options;
    const known = this.#known;
    if (known && clock.monotonic() - known.at < maxAgeMs) return known.value;
    try {
      return await this.#read();
    } catch (error) {
      if (!known) throw error;
      log.warn('what Linode sells could not be read again', { what, error: messageOf(error) });
      // Not at every question: the API has enough to do.
      this.#known = { value: known.value, at: clock.monotonic() - maxAgeMs + Math.min(maxAgeMs, 30_000) };
      return known.value;
    }
  }
}
