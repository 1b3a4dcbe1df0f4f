// SPDX-License-Identifier: Apache-2.0
// What stands between a pod and a node, pool by pool: the first obstacle of each, in the order in which the solver meets them.
import { Quantity } from '../kube/quantity.ts';
import type { View } from './catalog.ts';
import type { Limits } from './limits.ts';
import { missingValues, typesOf } from './min-values.ts';
import { domainsAdmitted, type PodClass } from './pod-class.ts';
import {
  compatible,
  conflict,
  impossibleKey,
  mergeRequirements,
  type Requirements,
  undefinedKey,
} from './requirements.ts';
import { taintText, untolerated } from './taints.ts';
import type { Template } from './templates.ts';
import { chooseDomains, type KeyRules } from './topology.ts';
import type { World } from './world.ts';

/** Obstacles in the order of the checks: a later one means that the pod came further. */
export const stages = [
  'labels',
  'taints',
  'requirements',
  'types',
  'resources',
  'limits',
  'topology',
  'minValues',
  'neighbours',
] as const;
export type Stage = (typeof stages)[number];

/** What keeps a pod from a new node of one pool. */
export interface Obstacle {
  readonly nodePool: string;
  readonly stage: Stage;
  /** A clause that follows `NodePool x: `. */
  readonly what: string;
  /** What would remove it, as an imperative; undefined when nothing simple would. */
  readonly fix: string | undefined;
}

/** The first obstacle of a pod of this class and shape in one pool. */
export function obstacleIn(
  world: World,
  limits: Limits,
  template: Template,
  podClass: PodClass,
  shape: number,
): Obstacle {
  const { nodePool, dialect, catalog, mayBeUndefined } = template;
  const found = (stage: Stage, what: string, fix?: string): Obstacle => ({ nodePool, stage, what, fix });
  const { side } = podClass;
  const wish = side.wishes[dialect.index];
  if (!wish) return found('labels', 'its cloud does not allow a label that the pod selects');
  const taint = untolerated(template.taints, side.tolerations);
  if (taint)
    return found('taints', `the pod does not tolerate ${taintText(taint)}`, `tolerate ${taintText(taint)} in the pod`);
  const pool = world.space.get(template.requirements);
  const asked = world.space.get(wish.all);
  const clash = clashOf(pool, asked, mayBeUndefined);
  if (clash) return found('requirements', clash.what, clash.fix);
  const base = mergeRequirements(pool, asked);
  const place = wish.volumes.map((set) => world.space.get(set)).find((set) => compatible(base, set, mayBeUndefined));
  if (!place) return found('requirements', 'its volumes are where the pool has no nodes');
  const set = world.space.intern(mergeRequirements(base, place));
  const view = catalog.view(set, catalog.maskForPorts(side.ports));
  if (view.rows.length === 0) return noType(world, template, set, side.ports.length > 0);
  const request = world.requests[shape]!;
  if (catalog.fitting(view, request).length === 0) return tooLarge(world, template, view, shape);
  const mask = limits.mask(template);
  const limited = mask === undefined ? undefined : catalog.view(set, mask);
  if (!limited || catalog.fitting(limited, request).length === 0)
    return found('limits', 'its limits are used up', `raise the limits of NodePool ${nodePool}`);
  const stuck = podClass.keyRules.find((rules) => isStuck(world, rules, podClass));
  if (stuck) return found('topology', topologyText(stuck), topologyFix(stuck));
  if (template.minValueKeys.length > 0) {
    const missing = missingValues(catalog, typesOf(catalog, catalog.fitting(limited, request)), world.space.get(set));
    for (const [key, count] of missing)
      return found(
        'minValues',
        `only ${count} values of ${key} are left, fewer than minValues asks for`,
        `lower minValues of ${key}`,
      );
  }
  return found('neighbours', neighbourText(podClass));
}

function clashOf(
  pool: Requirements,
  asked: Requirements,
  may: ReadonlySet<string>,
): { what: string; fix?: string } | undefined {
  const impossible = impossibleKey(asked);
  if (impossible !== undefined) return { what: `the pod's own demands on ${impossible} contradict each other` };
  const missing = undefinedKey(pool, asked, may);
  if (missing !== undefined) {
    const hint = closest(missing, [...may, ...pool.keys()]);
    return {
      what: `no node has the label ${missing}${hint === undefined ? '' : ` (was ${hint} meant?)`}`,
      fix: `add ${missing} to the labels or requirements of the NodePool`,
    };
  }
  const key = conflict(pool, asked);
  if (key === undefined) return undefined;
  return {
    what: `the pod asks for ${asked.get(key)?.toString()}, the pool has ${pool.get(key)?.toString()}`,
    fix: `let the NodePool allow ${asked.get(key)?.toString()}`,
  };
}

function noType(world: World, template: Template, set: number, hasPorts: boolean): Obstacle {
  const { catalog, nodePool } = template;
  if (catalog.typeOf.length === 0)
    return {
      nodePool,
      stage: 'types',
      what: 'none of its instance types has an offering that is available now',
      fix: 'allow other instance types, zones or capacity types, or wait for capacity',
    };
  if (catalog.view(world.space.empty, 0).rows.length === 0)
    return {
      nodePool,
      stage: 'types',
      what: 'what daemonsets and the kubelet take leaves no room on any of its instance types',
      fix: 'allow larger instance types, or let daemonsets ask for less',
    };
  const requirements = world.space.get(set);
  // The key without which most types come back is the one to name.
  let best: { key: string; types: number } | undefined;
  for (const key of requirements.keys()) {
    if (!catalog.keys.has(key)) continue;
    const without = new Map(requirements);
    without.delete(key);
    const types = typesOf(catalog, catalog.view(world.space.intern(without), 0).rows).size;
    if (types > 0 && (!best || types > best.types)) best = { key, types };
  }
  if (best) {
    const asked = requirements.get(best.key)!.toString();
    return {
      nodePool,
      stage: 'types',
      what: `no instance type that can be bought now has ${asked}`,
      fix: `relax ${asked}: ${best.types} types would do otherwise`,
    };
  }
  const what = hasPorts
    ? 'no instance type is left free of daemonsets on its host ports'
    : 'no instance type satisfies all requirements together';
  return { nodePool, stage: 'types', what, fix: undefined };
}

function tooLarge(world: World, { catalog, nodePool }: Template, view: View, shape: number): Obstacle {
  const request = world.requests[shape]!;
  const { amounts } = world.batch.shapes[shape]!;
  const { names } = world.axis;
  // The type that lacks the least says what to change.
  let best: { row: number; worst: number; ratio: number } | undefined;
  for (const row of view.rows) {
    let worst = -1;
    let ratio = 0;
    for (let r = 0; r < names.length; r++) {
      const free = catalog.free[row * catalog.width + r]!;
      if (free >= request[r]!) continue;
      const lack = request[r]! / Math.max(free, 1e-9);
      if (lack > ratio) [worst, ratio] = [r, lack];
    }
    if (!best || ratio < best.ratio) best = { row, worst, ratio };
  }
  const name = names[best!.worst]!;
  const asked = amounts.get(name) ?? 0n;
  const type = catalog.types[catalog.typeOf[best!.row]!]!.name;
  const free = catalog.freeOf(best!.row).get(name) ?? 0n;
  const typo =
    name === 'cpu' && asked >= 1_000_000n * 1_000_000_000n
      ? ` (${Number(asked / 1_000_000_000n)} CPUs: was "m" for milli meant?)`
      : '';
  return {
    nodePool,
    stage: 'resources',
    what: `it asks for ${show(name, asked)} ${name}${typo}, and the nearest instance type, ${type}, has ${show(name, free)} free`,
    fix:
      free > 0n
        ? `ask for at most ${show(name, free)} ${name}, or allow larger instance types`
        : `allow instance types with ${name}`,
  };
}

/** A quantity as people write it. */
export function show(name: string, nano: bigint): string {
  const binary = name === 'memory' || name === 'ephemeral-storage' || name.startsWith('hugepages-');
  return Quantity.fromNano(nano, binary ? 'BinarySI' : 'DecimalSI').toString();
}

function isStuck(world: World, rules: KeyRules, podClass: PodClass): boolean {
  const wish = podClass.side.wishes.find((w) => w !== undefined)!;
  return chooseDomains(rules, domainsAdmitted(world.space.get(wish.strict), rules.key)).domains.length === 0;
}

function topologyText(rules: KeyRules): string {
  const { key, spreads, affinities, antis } = rules;
  if (key.domains.length === 0) return `no node has the topology label ${key.key}`;
  const counts = (values: Float64Array): string =>
    key.domains
      .slice(0, 8)
      .map((domain, d) => `${domain} ${values[d]}`)
      .join(', ');
  const [spread] = spreads;
  if (spread) return `no ${key.key} keeps maxSkew ${spread.maxSkew} (pods per domain: ${counts(spread.group.counts)})`;
  if (affinities.length > 0) return `no ${key.key} has the pods that its affinity needs`;
  return `every ${key.key} has pods that anti-affinity forbids (${counts(antis[0]!.group.counts)})`;
}

function topologyFix({ key, spreads, affinities }: KeyRules): string | undefined {
  if (key.domains.length === 0) return `give nodes the label ${key.key}`;
  if (spreads.length > 0) return 'raise maxSkew, use ScheduleAnyway, or open another domain';
  return affinities.length > 0
    ? 'start the pods it wants to be near first'
    : 'open another domain, or make the anti-affinity a preference';
}

function neighbourText({ hostAffinities }: PodClass): string {
  return hostAffinities.length > 0
    ? 'the pods it must share a node with are on nodes that cannot take it'
    : 'its constraints together leave no place';
}

/** The known label most like a misspelt one: with few other letters, or without its domain. */
function closest(key: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  // Of a short word not much may differ, or every word is like it.
  let least = Math.min(4, Math.floor(key.length / 2) + 1);
  for (const other of known) {
    if (other === key || Math.abs(other.length - key.length) >= least) continue;
    const distance = editDistance(key, other);
    if (distance < least) [best, least] = [other, distance];
  }
  const name = key.slice(key.lastIndexOf('/') + 1);
  return best ?? known.find((other) => other.endsWith(`/${name}`));
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length]!;
}
