// SPDX-License-Identifier: Apache-2.0
// Resources as metrics show them, in upstream's spelling and units.
import type { ReadonlyAmounts } from '../../state/amounts.ts';

/** The value of the label `resource_type`. */
export function resourceType(resource: string): string {
  return resource.toLowerCase().replaceAll('-', '_');
}

/** CPUs to a thousandth, everything else in whole units; both rounded up, as Kubernetes does. */
export function resourceValue(resource: string, nano: bigint): number {
  return resource === 'cpu' ? Number(roundedUp(nano, 1_000_000n)) / 1000 : Number(roundedUp(nano, 1_000_000_000n));
}

function roundedUp(nano: bigint, unit: bigint): bigint {
  return nano > 0n ? (nano + unit - 1n) / unit : nano / unit;
}

/** One resource of a list, ready to be shown. */
export interface ShownResource {
  /** The label, as text: `resource_type="cpu"`. */
  readonly label: string;
  readonly value: number;
}

/** Label texts by resource name: there are few names, and each is shown for every node. */
const texts = new Map<string, string>();
const maxTexts = 1000;

function resourceLabel(resource: string): string {
  let text = texts.get(resource);
  if (text === undefined) {
    if (texts.size >= maxTexts) texts.clear();
    text = `resource_type="${resourceType(resource)}"`;
    texts.set(resource, text);
  }
  return text;
}

/** Every resource of a list. Names of resources need no escaping: the API server lets none through that would. */
export function* shownResources(amounts: ReadonlyAmounts): Generator<ShownResource, void, undefined> {
  for (const [resource, nano] of amounts)
    yield { label: resourceLabel(resource), value: resourceValue(resource, nano) };
}
