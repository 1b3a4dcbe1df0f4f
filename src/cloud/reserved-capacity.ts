// SPDX-License-Identifier: Apache-2.0
// The feature gate ReservedCapacity: without it nobody sees what a cloud has reserved.
import { capacityTypes, labels } from '../api/labels.ts';
import { forwarding } from './forwarding.ts';
import type { CloudProvider, InstanceType } from './provider.ts';

/** The same provider without its reserved offerings. The same list gives the same list: whoever compiled it may keep that. */
export function withoutReserved(provider: CloudProvider): CloudProvider {
  return forwarding(provider, {
    instanceTypes: async (pool, signal) => withoutReservedTypes(await provider.instanceTypes(pool, signal)),
  });
}

const filtered = new WeakMap<readonly InstanceType[], readonly InstanceType[]>();

/** The types without their reserved offerings: the same list where there are none, and the same list again. */
export function withoutReservedTypes(types: readonly InstanceType[]): readonly InstanceType[] {
  let known = filtered.get(types);
  if (!known) {
    const without = types.map(unreserved);
    known = without.every((type, i) => type === types[i]) ? types : without;
    filtered.set(types, known);
  }
  return known;
}

function unreserved(type: InstanceType): InstanceType {
  const offerings = type.offerings.filter(
    ({ requirements }) =>
      !requirements.some(({ key, values }) => key === labels.capacityType && values?.includes(capacityTypes.reserved)),
  );
  return offerings.length === type.offerings.length ? type : { ...type, offerings };
}
