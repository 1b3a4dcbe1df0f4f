// SPDX-License-Identifier: Apache-2.0
// What can be bought for which NodePool, asked of the clouds: the part of a scheduling problem that is not in the cluster.
import { commonLabelSet, type LabelSet } from '../api/labels.ts';
import type { NodePool } from '../api/node-pool.ts';
import type { Clock } from '../base/clock.ts';
import { KarpenterError } from '../base/errors.ts';
import { compareStrings } from '../base/order.ts';
import type { CloudProvider, InstanceType } from '../cloud/provider.ts';
import type { CloudRegistry } from '../cloud/registry.ts';
import { withoutReservedTypes } from '../cloud/reserved-capacity.ts';
import { keyOf } from '../kube/object.ts';
import type { LabelRules } from '../scheduling/problem.ts';

/** NodePools that may buy machines, with what their clouds sell. */
export interface PoolCatalog {
  /** In the order they are tried: highest weight first, then by name, descending. */
  readonly pools: readonly NodePool[];
  /** By NodePool; empty when the cloud could not be asked or sells nothing. */
  readonly instanceTypes: Readonly<Record<string, readonly InstanceType[]>>;
  /** By NodePool: what its cloud knows about labels. */
  readonly labels: Readonly<Record<string, LabelRules>>;
  /** Pools whose cloud could not be asked, with the reason. */
  readonly failures: readonly { readonly pool: NodePool; readonly error: unknown }[];
  /**
   * When it was read, as a number that only grows: plans made of it know nothing of what was bought since. Undefined for
   * plans that keep their own accounts.
   */
  readonly reading?: number;
}

let readings = 0;

/** The number of a reading, or of something that plans made before it know nothing of. */
export function nextReading(): number {
  return ++readings;
}

/**
 * Asks the clouds of all pools at once. A pool whose cloud fails stays in the list, without instance types: nothing is
 * bought for it this time, and the others are not held up. Rejects only when the signal aborts.
 */
export function readPoolCatalog(
  registry: CloudRegistry,
  pools: readonly NodePool[],
  signal: AbortSignal,
): Promise<PoolCatalog> {
  return gather(registry, pools, signal, (provider, pool) => provider.instanceTypes(pool, signal));
}

async function gather(
  registry: CloudRegistry,
  pools: readonly NodePool[],
  signal: AbortSignal,
  ask: (provider: CloudProvider, pool: NodePool) => Promise<readonly InstanceType[]>,
): Promise<PoolCatalog> {
  const sorted = pools.toSorted(byWeight);
  const instanceTypes: Record<string, readonly InstanceType[]> = {};
  const labels: Record<string, LabelRules> = {};
  const failures: { pool: NodePool; error: unknown }[] = [];
  await Promise.all(
    sorted.map(async (pool) => {
      const name = pool.metadata.name ?? '';
      const provider = registry.ofNodePool(pool);
      instanceTypes[name] = [];
      if (!provider) return;
      labels[name] = labelRulesOf(provider);
      try {
        instanceTypes[name] = await ask(provider, pool);
      } catch (error) {
        signal.throwIfAborted();
        failures.push({ pool, error });
      }
    }),
  );
  failures.sort((a, b) => compareStrings(a.pool.metadata.name ?? '', b.pool.metadata.name ?? ''));
  return { pools: sorted, instanceTypes, labels, failures };
}

/** How long a cloud may take that answered before, or that kept us waiting before. */
const shortPatienceMs = 1000;
/** How long one may take that is asked for the first time. */
const firstPatienceMs = 5000;

/** The cloud has not answered yet; what it sells is not known. The question stands. */
export class CloudBusyError extends KarpenterError {
  constructor(cloud: string) {
    super('KRP_CLOUD_BUSY', `${cloud} has not said yet what it sells`);
  }
}

interface Asked {
  /** Of which version of the pool. */
  readonly version: string;
  /** The question that is open. */
  pending: Promise<readonly InstanceType[]> | undefined;
  /** The last answer. */
  answer: readonly InstanceType[] | undefined;
  isSlow: boolean;
}

export interface PoolCatalogReaderOptions {
  readonly registry: CloudRegistry;
  readonly clock: Clock;
  /** An answer came that somebody did not wait for. */
  readonly onLate?: (pool: NodePool) => void;
}

/**
 * Asks again and again. A cloud that does not answer holds up the pools of others for a moment at most, once: then its
 * last answer counts, and where there is none its pools fail with CloudBusyError until it answers. Where all pools are
 * of one cloud there is nobody to hold up, and it is waited for.
 */
export class PoolCatalogReader {
  readonly #options: PoolCatalogReaderOptions;
  readonly #asked = new Map<string, Asked>();

  constructor(options: PoolCatalogReaderOptions) {
    this.#options = options;
  }

  /** As `readPoolCatalog`. Questions that nobody waits for any more go on until `lifetime` aborts. */
  async read(pools: readonly NodePool[], signal: AbortSignal, lifetime: AbortSignal = signal): Promise<PoolCatalog> {
    const reading = nextReading();
    const { registry } = this.#options;
    const present = new Set(pools.map(keyOf));
    for (const key of this.#asked.keys()) if (!present.has(key)) this.#asked.delete(key);
    const clouds = new Set(pools.map((pool) => registry.ofNodePool(pool)));
    const hasOthers = clouds.size > 1;
    const catalog = await gather(registry, pools, signal, (cloud, pool) => this.#ask(cloud, pool, lifetime, hasOthers));
    return { ...catalog, reading };
  }

  async #ask(
    provider: CloudProvider,
    pool: NodePool,
    signal: AbortSignal,
    hasOthers: boolean,
  ): Promise<readonly InstanceType[]> {
    const asked = this.#of(pool);
    const wasPending = asked.pending !== undefined;
    const pending = (asked.pending ??= this.#question(asked, provider, pool, signal));
    if (!hasOthers) return pending;
    const patienceMs = asked.isSlow && wasPending ? 0 : this.#patienceMs(asked);
    const types = await this.#atMost(patienceMs, pending);
    if (types) return types;
    asked.isSlow = true;
    const { answer } = asked;
    // Told once it came: pods that could only go there are still waiting.
    const { onLate } = this.#options;
    if (!wasPending && onLate) pending.then(() => onLate(pool)).catch(() => undefined);
    if (!answer) throw new CloudBusyError(provider.name);
    // What was reserved then may be in use by now.
    return withoutReservedTypes(answer);
  }

  #of(pool: NodePool): Asked {
    const key = keyOf(pool);
    const version = `${pool.metadata.uid}/${pool.metadata.generation}`;
    let asked = this.#asked.get(key);
    if (asked?.version !== version) {
      asked = { version, pending: undefined, answer: undefined, isSlow: asked?.isSlow ?? false };
      this.#asked.set(key, asked);
    }
    return asked;
  }

  async #question(
    asked: Asked,
    provider: CloudProvider,
    pool: NodePool,
    signal: AbortSignal,
  ): Promise<readonly InstanceType[]> {
    try {
      const answer = await provider.instanceTypes(pool, signal);
      asked.answer = answer;
      asked.isSlow = false;
      return answer;
    } finally {
      asked.pending = undefined;
    }
  }

  #patienceMs({ answer, isSlow }: Asked): number {
    return answer || isSlow ? shortPatienceMs : firstPatienceMs;
  }

  /** The result, or undefined when it takes longer. */
  #atMost<R>(ms: number, result: Promise<R>): Promise<R | undefined> {
    return new Promise<R | undefined>((resolve, reject) => {
      const timer = this.#options.clock.after(ms, () => resolve(undefined));
      result.then(resolve, reject).finally(() => timer.cancel());
    });
  }
}

function byWeight(a: NodePool, b: NodePool): number {
  return (b.spec.weight ?? 0) - (a.spec.weight ?? 0) || compareStrings(b.metadata.name ?? '', a.metadata.name ?? '');
}

const rules = new WeakMap<LabelSet, LabelRules>();

/** What a cloud adds to the labels every cloud knows. The same object for the same provider. */
export function labelRulesOf(provider: Pick<CloudProvider, 'labels' | 'reservationLabel'>): LabelRules {
  const { labels, reservationLabel } = provider;
  let known = rules.get(labels);
  if (!known) {
    const beyond = (own: ReadonlySet<string>, common: ReadonlySet<string>): string[] =>
      [...own].filter((key) => !common.has(key)).sort(compareStrings);
    const entries = <V>(map: ReadonlyMap<string, V>): [string, V][] =>
      [...map].sort(([a], [b]) => compareStrings(a, b));
    known = {
      wellKnown: beyond(labels.wellKnown, commonLabelSet.wellKnown),
      restrictedDomains: beyond(labels.restrictedDomains, commonLabelSet.restrictedDomains),
      normalized: Object.fromEntries(entries(labels.normalized).filter(([key]) => !commonLabelSet.normalized.has(key))),
      normalizedValues: Object.fromEntries(
        entries(labels.normalizedValues).map(([key, values]) => [key, Object.fromEntries(values)]),
      ),
      ...(reservationLabel === undefined ? {} : { reservationId: reservationLabel }),
    };
    rules.set(labels, known);
  }
  return known;
}
