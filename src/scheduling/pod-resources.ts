// SPDX-License-Identifier: Apache-2.0
// What a pod asks of its node, by Kubernetes' rules: containers, init containers, sidecars, pod-level resources, overhead,
// and what the kubelet has allocated while a resize is under way. Amounts are exact: whole nano units.
import { Quantity, QuantityError } from '../kube/quantity.ts';
import type { Container, ContainerStatus, Pod, PodSpec, ResourceList, ResourceRequirements } from './objects.ts';

/** Nano units by resource name. */
export type Amounts = Map<string, bigint>;

/** A resource list as amounts. Throws QuantityError. */
export function amountsOf(list: ResourceList | undefined): Amounts {
  const amounts: Amounts = new Map();
  for (const name in list) amounts.set(name, Quantity.parse(list[name]!).nano);
  return amounts;
}

export function addTo(target: Amounts, more: ReadonlyMap<string, bigint>): void {
  for (const [name, nano] of more) target.set(name, (target.get(name) ?? 0n) + nano);
}

export function subtractFrom(target: Amounts, less: ReadonlyMap<string, bigint>): void {
  for (const [name, nano] of less) target.set(name, (target.get(name) ?? 0n) - nano);
}

function raiseTo(target: Amounts, floor: ReadonlyMap<string, bigint>): void {
  for (const [name, nano] of floor) {
    const present = target.get(name);
    if (present === undefined || nano > present) target.set(name, nano);
  }
}

/** Requests with limits standing in for missing ones, as the API server defaults them. */
function requestsOf(resources: ResourceRequirements | undefined): Amounts {
  const amounts = amountsOf(resources?.limits);
  for (const [name, nano] of amountsOf(resources?.requests)) amounts.set(name, nano);
  return amounts;
}

function containerRequests(container: Container, statuses: readonly ContainerStatus[] | undefined): Amounts {
  const amounts = requestsOf(container.resources);
  const status = statuses?.find(({ name }) => name !== undefined && name === container.name);
  if (status) {
    raiseTo(amounts, amountsOf(status.resources?.requests));
    raiseTo(amounts, amountsOf(status.allocatedResources));
  }
  return amounts;
}

// Pod-level resources replace the sum of the containers for these alone.
const podLevel = (name: string): boolean => name === 'cpu' || name === 'memory' || name.startsWith('hugepages-');

/** The requests of a pod, without the pod itself (`pods: 1`). Throws QuantityError. */
export function podRequests(spec: PodSpec, status?: Pod['status']): Amounts {
  const total: Amounts = new Map();
  for (const container of spec.containers ?? []) addTo(total, containerRequests(container, status?.containerStatuses));
  // Init containers run one after another, each beside the sidecars started before it.
  const sidecars: Amounts = new Map();
  const peak: Amounts = new Map();
  for (const container of spec.initContainers ?? []) {
    const own = containerRequests(container, status?.initContainerStatuses);
    if (container.restartPolicy === 'Always') {
      addTo(total, own);
      addTo(sidecars, own);
      raiseTo(peak, sidecars);
    } else {
      addTo(own, sidecars);
      raiseTo(peak, own);
    }
  }
  raiseTo(total, peak);
  for (const [name, nano] of requestsOf(spec.resources)) if (podLevel(name)) total.set(name, nano);
  addTo(total, amountsOf(spec.overhead));
  return total;
}

/** The most that Kubernetes counts: 2^63 - 1. */
const mostNano = (2n ** 63n - 1n) * 1_000_000_000n;
/** A little less: what is below it is so for sure. */
const mostNear = 9e27;

/** Why amounts cannot be meant, as a sentence; undefined when they can. */
export function amountsProblem(amounts: ReadonlyMap<string, bigint>): string | undefined {
  for (const name of amounts.keys()) {
    const problem = amountProblem(name, amounts.get(name)!);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** The same of one amount. */
export function amountProblem(name: string, nano: bigint): string | undefined {
  // Comparing big numbers is slow, and none is near the edge.
  const near = Number(nano);
  if (near >= 0 && near < mostNear) return undefined;
  if (nano < 0n) return `${name} is negative (${Quantity.fromNano(nano).toString()})`;
  if (nano > mostNano) return `${name} is more than any machine has (about 1e${String(nano).length - 10})`;
  return undefined;
}

/** The message of a quantity that cannot be read; rethrows everything else. */
export function quantityProblem(error: unknown): string {
  if (error instanceof QuantityError) {
    const text = error.details['text'];
    return typeof text === 'string' ? `${JSON.stringify(text)} is not a quantity` : error.message;
  }
  if (error instanceof TypeError) return 'the object does not have the shape of its kind';
  throw error;
}
