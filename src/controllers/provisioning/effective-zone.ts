// SPDX-License-Identifier: Apache-2.0
// Where pods that wait can go at all: a zone that is short of capacity shows as pods that can go nowhere else.
import { labels } from '../../api/labels.ts';
import type { Pod } from '../../kube/kinds.ts';
import type { RequirementSpec } from '../../scheduling/objects.ts';
import { Requirement } from '../../scheduling/requirements.ts';
import type { VolumeAlternatives, VolumeIndex } from '../../scheduling/volumes.ts';
import type { PoolCatalog } from '../../state/pool-catalog.ts';
import type { ZoneRules } from './zone-rules.ts';

/** How many pods can go to one zone only, by its name; to several (`flexible`); to none (`none`). Preferences do not count. */
export function countByZone(
  pods: Iterable<Pod>,
  zones: ReadonlySet<string>,
  volumes: Pick<VolumeIndex, 'alternativesOf'>,
  rules: Pick<ZoneRules, 'open'>,
): Map<string, number> {
  const counts = new Map<string, number>();
  for (const pod of pods) {
    const zone = nameOf(openTo(pod, rules, ownZones(pod, zones, volumes.alternativesOf(pod))));
    counts.set(zone, (counts.get(zone) ?? 0) + 1);
  }
  return counts;
}

/** The zones in which anything is sold. */
export function zonesOf(catalog: PoolCatalog): Set<string> {
  const zones = new Set<string>();
  for (const pool of catalog.pools) {
    for (const type of catalog.instanceTypes[pool.metadata.name ?? ''] ?? []) {
      for (const { requirements } of type.offerings)
        for (const { key, values } of requirements)
          if (key === labels.zone) for (const zone of values ?? []) zones.add(zone);
    }
  }
  return zones;
}

/** A selector that cannot be read narrows nothing here: the pass itself says what is wrong with the pod. */
function openTo(pod: Pod, rules: Pick<ZoneRules, 'open'>, zones: readonly string[]): readonly string[] {
  try {
    return rules.open(pod, zones);
  } catch {
    return zones;
  }
}

/** The zones that a pod and its volumes ask for. */
function ownZones(pod: Pod, zones: ReadonlySet<string>, volumes: VolumeAlternatives): string[] {
  const selected = pod.spec.nodeSelector?.[labels.zone];
  const terms =
    pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms?.map(
      ({ matchExpressions }) => matchExpressions ?? [],
    ) ?? [];
  if (selected === undefined && terms.length === 0 && volumes.length === 0) return [...zones];
  return [...zones].filter(
    (zone) => (selected === undefined || selected === zone) && allowedBy(terms, zone) && allowedBy(volumes, zone),
  );
}

function nameOf(zones: readonly string[]): string {
  return zones.length === 0 ? 'none' : zones.length === 1 ? zones[0]! : 'flexible';
}

/** Whether one of the alternatives allows the zone; no alternatives allow every one. */
function allowedBy(alternatives: readonly (readonly RequirementSpec[])[], zone: string): boolean {
  if (alternatives.length === 0) return true;
  return alternatives.some((specs) =>
    specs.every((spec) => spec.key !== labels.zone || (Requirement.parse(spec)?.has(zone) ?? true)),
  );
}
