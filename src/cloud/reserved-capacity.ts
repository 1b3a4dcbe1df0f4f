// SPDX-License-Identifier: Apache-2.0
// The feature gate ReservedCapacity: without it nobody sees what a cloud has reserved.
import { capacityTypes, labels } from '../api/labels.ts';
import type { CloudProvider, InstanceType } from './provider.ts';

/** The same provider without its reserved offerings. The same list gives the same list: whoever compiled it may keep that. */
export function withoutReserved(provider: CloudProvider): CloudProvider {
  const filtered = new WeakMap<readonly InstanceType[], readonly InstanceType[]>();
  return {
    name: provider.name,
    nodeClasses: provider.nodeClasses,
    labels: provider.labels,
    repairPolicies: provider.repairPolicies,
    ...(provider.reservationLabel ? { reservationLabel: provider.reservationLabel } : {}),
    ...(provider.disruptionReasons ? { disruptionReasons: provider.disruptionReasons } : {}),
    ...(provider.registrationHooks ? { registrationHooks: provider.registrationHooks } : {}),
    create: (claim, signal) => provider.create(claim, signal),
    delete: (claim, signal) => provider.delete(claim, signal),
    get: (id, signal) => provider.get(id, signal),
    list: (signal) => provider.list(signal),
    driftReason: (claim, signal) => provider.driftReason(claim, signal),
    async instanceTypes(pool, signal) {
      const types = await provider.instanceTypes(pool, signal);
      const known = filtered.get(types) ?? types.map(unreserved);
      filtered.set(types, known);
      return known;
    },
  };
}

function unreserved(type: InstanceType): InstanceType {
  const offerings = type.offerings.filter(
    ({ requirements }) =>
      !requirements.some(({ key, values }) => key === labels.capacityType && values?.includes(capacityTypes.reserved)),
  );
  return offerings.length === type.offerings.length ? type : { ...type, offerings };
}
