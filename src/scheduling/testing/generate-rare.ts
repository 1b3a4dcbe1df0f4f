// SPDX-License-Identifier: Apache-2.0
// What few problems have, put on top of one that is there: drawn last, so that the rest of a problem stays what its seed makes it.
import type { Pod, PodAffinityTerm } from '../objects.ts';
import type { InstanceTypeSpec, Problem } from '../problem.ts';
import { type Chooser, chance, pick } from './chooser.ts';

const pages = 'hugepages-2Mi';

/** The problem with some rare features here and there. */
export function withRareFeatures(c: Chooser, problem: Problem): Problem {
  let made = problem;
  if (chance(c, 15)) made = { ...made, settings: { ...made.settings, maxInstanceTypes: 3 + c.int(3) } };
  if (chance(c, 20)) made = { ...made, instanceTypes: mapTypes(made, (type) => withOverhead(c, type)) };
  if (chance(c, 15)) {
    made = { ...made, instanceTypes: mapTypes(made, (type) => withPages(c, type)) };
    made = { ...made, pods: made.pods.map((pod) => (chance(c, 20) ? askingForPages(pod) : pod)) };
  }
  if (chance(c, 15)) made = { ...made, pods: made.pods.map((pod) => apartFromOtherRevisions(pod)) };
  if (chance(c, 15)) made = { ...made, pods: made.pods.map((pod) => (chance(c, 30) ? terminating(pod) : pod)) };
  if (chance(c, 20)) made = { ...made, state: { ...made.state, promised: promises(c, made) } };
  return made;
}

/** Pods that wait were planned for nodes that are there, for others, and for some that take none of them. */
function promises(c: Chooser, { pods, nodes = [], nodeClaims = [] }: Problem): Record<string, string> {
  const names = [...nodes, ...nodeClaims].map(({ metadata }) => metadata.name ?? '');
  const planned = pods.filter((pod) => !pod.spec.nodeName && chance(c, 60));
  return Object.fromEntries(
    planned.map(({ metadata: { namespace = 'default', name } }) => [
      `${namespace}/${name}`,
      pick(c, [...names, 'gone']),
    ]),
  );
}

function mapTypes(
  { instanceTypes }: Problem,
  change: (type: InstanceTypeSpec) => InstanceTypeSpec,
): Problem['instanceTypes'] {
  return Object.fromEntries(Object.entries(instanceTypes).map(([pool, types]) => [pool, types.map(change)]));
}

/** Some of its offerings leave less, or more. */
function withOverhead(c: Chooser, type: InstanceTypeSpec): InstanceTypeSpec {
  const offerings = type.offerings.map((offering) =>
    chance(c, 30) ? { ...offering, overheadOverride: { cpu: pick(c, ['200m', '0', '1']) } } : offering,
  );
  return { ...type, offerings };
}

/** Part of its memory is huge pages. */
function withPages(c: Chooser, type: InstanceTypeSpec): InstanceTypeSpec {
  return chance(c, 50) ? { ...type, capacity: { ...type.capacity, [pages]: pick(c, ['512Mi', '1Gi']) } } : type;
}

function askingForPages(pod: Pod): Pod {
  const [first, ...others] = pod.spec.containers ?? [];
  if (!first || pod.spec.nodeName) return pod;
  const requests = { ...first.resources?.requests, [pages]: '256Mi' };
  return {
    ...pod,
    spec: { ...pod.spec, containers: [{ ...first, resources: { ...first.resources, requests } }, ...others] },
  };
}

/** Its required anti-affinity means other revisions only. */
function apartFromOtherRevisions(pod: Pod): Pod {
  const anti = pod.spec.affinity?.podAntiAffinity;
  const required = anti?.requiredDuringSchedulingIgnoredDuringExecution;
  if (!required) return pod;
  const terms = required.map((term): PodAffinityTerm => {
    const { matchLabelKeys: _, ...rest } = term;
    return { ...rest, mismatchLabelKeys: ['rev'] };
  });
  const podAntiAffinity = { ...anti, requiredDuringSchedulingIgnoredDuringExecution: terms };
  return { ...pod, spec: { ...pod.spec, affinity: { ...pod.spec.affinity, podAntiAffinity } } };
}

function terminating(pod: Pod): Pod {
  if (!pod.spec.nodeName) return pod;
  return { ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-02T00:00:00Z' } };
}
