// SPDX-License-Identifier: Apache-2.0
import { Quantity } from '../kube/quantity.ts';
import type { InstanceType } from './provider.ts';

/** What a machine of a type has for pods: its capacity less everything that is kept. */
export function allocatableOf({ capacity, overhead = {} }: InstanceType): Record<string, string> {
  const parts = [overhead.kubeReserved, overhead.systemReserved, overhead.evictionThreshold];
  return Object.fromEntries(
    Object.entries(capacity).map(([name, amount]) => {
      let left = Quantity.parse(amount);
      for (const part of parts) if (part?.[name] !== undefined) left = left.sub(Quantity.parse(part[name]));
      return [name, left.toString()];
    }),
  );
}
