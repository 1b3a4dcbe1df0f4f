// SPDX-License-Identifier: Apache-2.0
// Amounts of resources as the state counts them: exact, in nano units, by resource name.
import { compareStrings } from '../base/order.ts';
import { Quantity } from '../kube/quantity.ts';
import { type Amounts, amountsOf } from '../scheduling/pod-resources.ts';

export { type Amounts, addTo, subtractFrom } from '../scheduling/pod-resources.ts';
export type ReadonlyAmounts = ReadonlyMap<string, bigint>;

/** One of something that is counted: a pod, a node. */
export const one = 1_000_000_000n;

export const noAmounts: ReadonlyAmounts = new Map();

/** A resource list as amounts; what cannot be read counts as absent: the API server lets none of it through. */
export function readAmounts(list: Readonly<Record<string, string | number>> | undefined): Amounts {
  try {
    return amountsOf(list);
  } catch {
    const readable: Amounts = new Map();
    for (const name in list) {
      const quantity = Quantity.tryParse(list[name]);
      if (quantity) readable.set(name, quantity.nano);
    }
    return readable;
  }
}

/** The wire form, by name: memory and storage in binary units. */
export function formatAmounts(amounts: ReadonlyAmounts): Record<string, string> {
  const list: Record<string, string> = {};
  for (const [name, nano] of [...amounts].sort(([a], [b]) => compareStrings(a, b))) {
    const binary = name === 'memory' || name === 'ephemeral-storage' || name.startsWith('hugepages-');
    list[name] = Quantity.fromNano(nano, binary ? 'BinarySI' : 'DecimalSI').toString();
  }
  return list;
}
