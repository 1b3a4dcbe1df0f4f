// SPDX-License-Identifier: Apache-2.0
// The feature gate ReservedCapacity: without it nobody sees what a cloud has reserved.
import { capacityTypes, labels } from '../api/labels.ts';
import { forwarding } from './forwarding.ts';
import type { CloudProvider, InstanceType } from './provider.ts';

/** The same provider without its reserved offerings. The same list gives the same list: whoever compiled it may keep that. */
export function withoutReserved(provider: CloudProvider): CloudProvider {
  const filtered = new WeakMap<readonly InstanceType[], readonly InstanceType[]>();
  return forwarding(provider, {
    async instanceTypes(pool, signal) {
      const types = await provider.instanceTypes(pool, signal);
      const known = filtered.get(types) ?? types.map(unreserved);
      filtered.set(types, known);
      return known;
    },
  });
}

function unreserved(type: InstanceType): InstanceType {
  const offerings = type.offerings.filter(
    ({ requirements }) =>
      !requirements.some(({ key, values }) => key === labels.capacityType && values?.includes(capacityTypes.reserved)),
  );
  return offerings.length === type.offerings.length ? type : { ...type, offerings };
}
