// SPDX-License-Identifier: Apache-2.0
// What a pod takes of its node. Pods of one workload take the same, so the amounts are worked out once per shape and
// shared: fifty thousand pods are some dozens of shapes.
import type { Pod, PodSpec, ResourceRequirements } from '../kube/kinds.ts';
import { podRequests } from '../scheduling/pod-resources.ts';
import { type Amounts, addTo, noAmounts, one, type ReadonlyAmounts, readAmounts } from './amounts.ts';

/** Requests (with `pods: 1`) and limits of a pod. Shared: never change them. */
export interface PodUsage {
  readonly requests: ReadonlyAmounts;
  readonly limits: ReadonlyAmounts;
}

/** Shapes are few; when somebody makes them without end, the table starts over. */
const maxShapes = 10_000;

/** Works out usages and remembers them by shape. */
export class PodUsages {
  readonly #byShape = new Map<string, PodUsage>();

  of(pod: Pod): PodUsage {
    const shape = shapeOf(pod);
    let usage = this.#byShape.get(shape);
    if (!usage) {
      if (this.#byShape.size >= maxShapes) this.#byShape.clear();
      usage = usageOf(pod);
      this.#byShape.set(shape, usage);
    }
    return usage;
  }
}

/** Everything that requests and limits depend on, as a text. */
function shapeOf({ spec, status }: Pod): string {
  const parts: unknown[] = spec.containers.map(({ name, resources }) => [name, resources]);
  if (spec.initContainers)
    parts.push(spec.initContainers.map(({ name, resources, restartPolicy }) => [name, resources, restartPolicy]));
  if (spec.resources) parts.push({ pod: spec.resources });
  if (spec.overhead) parts.push({ overhead: spec.overhead });
  for (const statuses of [status?.containerStatuses, status?.initContainerStatuses])
    for (const { name, resources, allocatedResources } of statuses ?? [])
      if (resources || allocatedResources) parts.push([name, resources?.requests, allocatedResources]);
  return JSON.stringify(parts);
}

function usageOf({ spec, status }: Pod): PodUsage {
  return { requests: requestsOf(spec, status), limits: limitsOf(spec) };
}

function requestsOf(spec: PodSpec, status: Pod['status']): ReadonlyAmounts {
  let amounts: Amounts;
  try {
    amounts = podRequests(spec, status);
  } catch {
    // No API server lets such a pod through; one that did must not stop the count of the others.
    amounts = new Map();
  }
  amounts.set('pods', one);
  return amounts;
}

/** The most a pod may use, by the rules of its requests; a container without a limit adds nothing. */
function limitsOf(spec: PodSpec): ReadonlyAmounts {
  const of = (resources: ResourceRequirements | undefined): Amounts => readAmounts(resources?.limits);
  const total: Amounts = new Map();
  for (const { resources } of spec.containers) addTo(total, of(resources));
  const sidecars: Amounts = new Map();
  const peak: Amounts = new Map();
  for (const { resources, restartPolicy } of spec.initContainers ?? []) {
    const own = of(resources);
    if (restartPolicy === 'Always') {
      addTo(total, own);
      addTo(sidecars, own);
    } else {
      addTo(own, sidecars);
      raiseTo(peak, own);
    }
  }
  raiseTo(total, peak);
  for (const [name, nano] of of(spec.resources)) total.set(name, nano);
  // Overhead comes on top of a limit; where there is none, the pod stays unlimited.
  for (const [name, nano] of readAmounts(spec.overhead)) if (total.has(name)) total.set(name, total.get(name)! + nano);
  return total.size === 0 ? noAmounts : total;
}

function raiseTo(target: Amounts, floor: ReadonlyAmounts): void {
  for (const [name, nano] of floor) if (nano > (target.get(name) ?? -1n)) target.set(name, nano);
}
