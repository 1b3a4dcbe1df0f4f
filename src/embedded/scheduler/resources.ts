// SPDX-License-Identifier: Apache-2.0
// What a pod asks for and what a node has, in the units kube-scheduler counts in: CPU in thousandths, all else whole.
import type { Container, PodSpec } from '../../kube/kinds.ts';
import { Quantity } from '../../kube/quantity.ts';

type QuantityList = Readonly<Record<string, string>>;

/** Amounts by resource name; a missing name is zero. Doubles are exact up to 2^53, far above any machine. */
export class Resources {
  cpu = 0;
  memory = 0;
  ephemeralStorage = 0;
  pods = 0;
  /** Extended resources and huge pages. */
  readonly scalars: Map<string, number> = new Map();

  static of(list: QuantityList | undefined): Resources {
    const resources = new Resources();
    if (list) for (const name of Object.keys(list)) resources.set(name, amount(name, list[name]!));
    return resources;
  }

  get(name: string): number {
    switch (name) {
      case 'cpu':
        return this.cpu;
      case 'memory':
        return this.memory;
      case 'ephemeral-storage':
        return this.ephemeralStorage;
      case 'pods':
        return this.pods;
      default:
        return this.scalars.get(name) ?? 0;
    }
  }

  set(name: string, value: number): void {
    switch (name) {
      case 'cpu':
        this.cpu = value;
        break;
      case 'memory':
        this.memory = value;
        break;
      case 'ephemeral-storage':
        this.ephemeralStorage = value;
        break;
      case 'pods':
        this.pods = value;
        break;
      default:
        this.scalars.set(name, value);
    }
  }

  /** Adds (or, with a sign of -1, takes away) another set of amounts in place. */
  add(other: Resources, sign: 1 | -1 = 1): this {
    this.cpu += sign * other.cpu;
    this.memory += sign * other.memory;
    this.ephemeralStorage += sign * other.ephemeralStorage;
    this.pods += sign * other.pods;
    for (const [name, value] of other.scalars) this.scalars.set(name, (this.scalars.get(name) ?? 0) + sign * value);
    return this;
  }

  /** Raises each amount to the other's where that is larger. */
  max(other: Resources): this {
    this.cpu = Math.max(this.cpu, other.cpu);
    this.memory = Math.max(this.memory, other.memory);
    this.ephemeralStorage = Math.max(this.ephemeralStorage, other.ephemeralStorage);
    for (const [name, value] of other.scalars) {
      this.scalars.set(name, Math.max(this.scalars.get(name) ?? 0, value));
    }
    return this;
  }
}

/** A container without a request still weighs something when nodes are compared. */
const unsetCpu = 100;
const unsetMemory = 200 * 1024 * 1024;

/** What a pod reserves on its node: containers, sidecars, the largest init container, pod-level resources, overhead. */
export function podRequests(spec: PodSpec): Resources {
  return aggregate(spec, (container) => Resources.of(container.resources?.requests));
}

/** As `podRequests`, with a default for containers that ask for no CPU or memory: the basis of scores. */
export function podWeights(spec: PodSpec): Resources {
  return aggregate(spec, (container) => {
    const requests = container.resources?.requests;
    const resources = Resources.of(requests);
    if (requests?.['cpu'] === undefined) resources.cpu = unsetCpu;
    if (requests?.['memory'] === undefined) resources.memory = unsetMemory;
    return resources;
  });
}

function aggregate(spec: PodSpec, requestsOf: (container: Container) => Resources): Resources {
  const total = new Resources();
  for (const container of spec.containers) total.add(requestsOf(container));
  const sidecars = new Resources();
  const peak = new Resources();
  for (const container of spec.initContainers ?? []) {
    const requests = requestsOf(container);
    if (container.restartPolicy === 'Always') {
      total.add(requests);
      sidecars.add(requests);
      peak.max(sidecars);
    } else {
      peak.max(requests.add(sidecars));
    }
  }
  total.max(peak);
  const podLevel = (spec as { resources?: { requests?: QuantityList } }).resources?.requests;
  if (podLevel) for (const name of Object.keys(podLevel)) total.set(name, amount(name, podLevel[name]!));
  if (spec.overhead) total.add(Resources.of(spec.overhead as QuantityList));
  return total;
}

const parsed = new Map<string, number>();
const parsedLimit = 10_000;

/** One amount in the unit of its resource, rounded up. Malformed text counts as zero: the API server never stores it. */
export function amount(name: string, text: string): number {
  const key = name === 'cpu' ? `m${text}` : text;
  let value = parsed.get(key);
  if (value === undefined) {
    const quantity = Quantity.tryParse(text);
    value = quantity === undefined ? 0 : Number(name === 'cpu' ? quantity.milliValue() : quantity.value());
    if (parsed.size >= parsedLimit) parsed.clear();
    parsed.set(key, value);
  }
  return value;
}
