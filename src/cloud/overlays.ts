// SPDX-License-Identifier: Apache-2.0
// NodeOverlays: what a person knows better about prices, and extended resources that a cloud does not tell of. Instance
// types are shown with them applied, and what is launched is chosen by them.
import { type LabelSet, labels } from '../api/labels.ts';
import type { NodeClaim } from '../api/node-claim.ts';
import type { NodeOverlay } from '../api/node-overlay.ts';
import type { NodePool } from '../api/node-pool.ts';
import { Quantity } from '../kube/quantity.ts';
import { compatible, mergeRequirements, requirementsOf, requirementsOfLabels } from '../scheduling/requirements.ts';
import { isInsufficientCapacity, UnevaluatedNodePoolError } from './errors.ts';
import { forwarding } from './forwarding.ts';
import type { CloudProvider, Instance, InstanceType } from './provider.ts';

/** The overlays in force, those that count more first; undefined before they have been looked at. */
export class OverlayStore {
  accepted: readonly NodeOverlay[] | undefined;
}

/** What an overlay touches of an instance type in a pool: the places of the offerings it fits; undefined when it does not apply. */
export function touchedOfferings(
  overlay: NodeOverlay,
  type: InstanceType,
  pool: NodePool,
  set: LabelSet,
): ReadonlySet<number> | undefined {
  const asked = requirementsOf(overlay.spec.requirements, set);
  const given = mergeRequirements(requirementsOfLabels(poolLabels(pool), set), requirementsOf(type.requirements, set));
  if (!compatible(given, asked)) return undefined;
  const touched = new Set<number>();
  for (const [i, { requirements }] of type.offerings.entries()) {
    if (compatible(mergeRequirements(given, requirementsOf(requirements, set)), asked)) touched.add(i);
  }
  return touched.size > 0 ? touched : undefined;
}

/** All that an overlay looks at in a pool. */
function poolLabels({ metadata, spec }: NodePool): Readonly<Record<string, string>> {
  return { ...spec.template.metadata?.labels, [labels.nodePool]: metadata.name ?? '' };
}

export function changesPrice({ spec }: NodeOverlay): boolean {
  return spec.price !== undefined || spec.priceAdjustment !== undefined;
}

/** The price that an overlay makes of one. Never below nothing. */
export function overlaidPrice({ spec }: NodeOverlay, price: number): number {
  if (spec.price !== undefined) return Number(spec.price);
  const adjustment = spec.priceAdjustment ?? '+0';
  const amount = Number.parseFloat(adjustment);
  return Math.max(0, adjustment.endsWith('%') ? price * (1 + amount / 100) : price + amount);
}

/** An instance type with the overlays that apply to it; the same object when none does. Of each price and resource the first counts. */
function overlaid(type: InstanceType, pool: NodePool, overlays: readonly NodeOverlay[], set: LabelSet): InstanceType {
  const priced = new Set<number>();
  const offerings = [...type.offerings];
  const capacity: Record<string, string> = {};
  let isTouched = false;
  for (const overlay of overlays) {
    const touched = touchedOfferings(overlay, type, pool, set);
    if (!touched) continue;
    isTouched = true;
    for (const [name, amount] of Object.entries(overlay.spec.capacity ?? {})) capacity[name] ??= String(amount);
    if (!changesPrice(overlay)) continue;
    for (const i of touched) {
      if (priced.has(i)) continue;
      priced.add(i);
      const { estimated, ...offering } = offerings[i]!;
      // What a person wrote down is no guess; a share of a guess is.
      const isGuess = estimated === true && overlay.spec.price === undefined;
      offerings[i] = {
        ...offering,
        price: overlaidPrice(overlay, offering.price),
        ...(isGuess ? { estimated } : {}),
      };
    }
  }
  return isTouched ? { ...type, offerings, capacity: { ...type.capacity, ...capacity } } : type;
}

interface Applied {
  /** What an overlay looks at in a pool, as text: the status of a pool changes all the time. */
  readonly labels: string;
  readonly overlays: readonly NodeOverlay[];
  readonly types: readonly InstanceType[];
}

/**
 * The same provider, its instance types with the overlays applied. What is launched is first looked for among the cheapest of
 * what a NodeClaim allows, by the prices that the overlays make. Throws UnevaluatedNodePoolError before they are known.
 */
export function withOverlays(
  provider: CloudProvider,
  store: OverlayStore,
  poolOf: (claim: NodeClaim) => NodePool | undefined,
): CloudProvider {
  /** By list and name of a pool: pools of one cloud share their list. */
  const applied = new WeakMap<readonly InstanceType[], Map<string, Applied>>();
  /** The same list, labels of a pool and overlays give the same list: whoever compiled it may keep that. */
  const apply = (types: readonly InstanceType[], pool: NodePool): readonly InstanceType[] => {
    const overlays = store.accepted;
    const { name = '' } = pool.metadata;
    if (!overlays) throw new UnevaluatedNodePoolError(name);
    if (overlays.length === 0) return types;
    const byPool = applied.get(types) ?? new Map<string, Applied>();
    applied.set(types, byPool);
    const labelled = JSON.stringify(poolLabels(pool));
    const known = byPool.get(name);
    if (known?.overlays === overlays && known.labels === labelled) return known.types;
    const next = types.map((type) => overlaid(type, pool, overlays, provider.labels));
    byPool.set(name, { labels: labelled, overlays, types: next });
    return next;
  };
  const typesOf = async (claim: NodeClaim, signal: AbortSignal): Promise<readonly InstanceType[] | undefined> => {
    const pool = store.accepted?.length ? poolOf(claim) : undefined;
    return pool && apply(await provider.instanceTypes(pool, signal), pool);
  };
  return forwarding(provider, {
    instanceTypes: async (pool, signal) => apply(await provider.instanceTypes(pool, signal), pool),
    async create(claim, signal) {
      const types = await typesOf(claim, signal);
      if (!types) return provider.create(claim, signal);
      const narrowed = store.accepted!.some(changesPrice) ? toCheapest(claim, types, provider.labels) : undefined;
      if (!narrowed) return withCapacity(await provider.create(claim, signal), types);
      try {
        return withCapacity(await provider.create(narrowed, signal), types);
      } catch (error) {
        if (!isInsufficientCapacity(error)) throw error;
        return withCapacity(await provider.create(claim, signal), types);
      }
    },
  });
}

/** A NodeClaim that allows only its cheapest instance types; undefined when none is to be had. */
function toCheapest(claim: NodeClaim, types: readonly InstanceType[], set: LabelSet): NodeClaim | undefined {
  const asked = requirementsOf(claim.spec.requirements, set);
  const requests = Object.entries(claim.spec.resources?.requests ?? {});
  let best = Number.POSITIVE_INFINITY;
  let names: string[] = [];
  for (const type of types) {
    const given = requirementsOf(type.requirements, set);
    if (!requests.every(([name, amount]) => holds(type, name, String(amount)))) continue;
    for (const { price, available = true, requirements } of type.offerings) {
      if (!available || price > best) continue;
      if (!compatible(mergeRequirements(given, requirementsOf(requirements, set)), asked, set.wellKnown)) continue;
      if (price < best) names = [];
      best = price;
      if (!names.includes(type.name)) names.push(type.name);
    }
  }
  if (names.length === 0) return undefined;
  const only = { key: labels.instanceType, operator: 'In', values: names } as const;
  return { ...claim, spec: { ...claim.spec, requirements: [...claim.spec.requirements, only] } };
}

function holds({ capacity }: InstanceType, resource: string, amount: string): boolean {
  return Quantity.parse(String(capacity[resource] ?? '0')).cmp(Quantity.parse(amount)) >= 0;
}

/** What overlays add to its type, the machine has too: else pods that need it would be thought to have no place there. */
function withCapacity(instance: Instance, types: readonly InstanceType[]): Instance {
  const type = types.find(({ name }) => name === instance.labels[labels.instanceType]);
  if (!type) return instance;
  const added = Object.entries(type.capacity).filter(([name]) => instance.capacity[name] === undefined);
  if (added.length === 0) return instance;
  const more = Object.fromEntries(added.map(([name, amount]) => [name, String(amount)]));
  return {
    ...instance,
    capacity: { ...instance.capacity, ...more },
    allocatable: { ...instance.allocatable, ...more },
  };
}
