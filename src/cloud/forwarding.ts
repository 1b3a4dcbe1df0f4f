// SPDX-License-Identifier: Apache-2.0
// What decorators of providers have in common: whatever they do not change is the provider's own.
import type { CloudProvider } from './provider.ts';

/** The same provider but for `changes`. Providers may be classes: their methods are called on them, not copied. */
export function forwarding(provider: CloudProvider, changes: Partial<CloudProvider>): CloudProvider {
  return {
    name: provider.name,
    nodeClasses: provider.nodeClasses,
    labels: provider.labels,
    // They may follow what its cloud says.
    get repairPolicies() {
      return provider.repairPolicies;
    },
    ...(provider.reservationLabel ? { reservationLabel: provider.reservationLabel } : {}),
    ...(provider.disruptionReasons ? { disruptionReasons: provider.disruptionReasons } : {}),
    ...(provider.registrationHooks ? { registrationHooks: provider.registrationHooks } : {}),
    create: (claim, signal) => provider.create(claim, signal),
    delete: (claim, signal) => provider.delete(claim, signal),
    get: (id, signal) => provider.get(id, signal),
    list: (signal) => provider.list(signal),
    instanceTypes: (pool, signal) => provider.instanceTypes(pool, signal),
    driftReason: (claim, signal) => provider.driftReason(claim, signal),
    ...changes,
  };
}
