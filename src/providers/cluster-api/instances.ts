// SPDX-License-Identifier: Apache-2.0
// Machines as the rest of the autoscaler sees them. A Machine without a provider id, and a NodeClaim that still waits
// for its Machine, have an id of our own: nothing is made that could not be found and removed again.
import type { Instance } from '../../cloud/provider.ts';
import { keyOf } from '../../kube/object.ts';
import { type Member, nodeLabels } from './catalog.ts';
import { isDeleting, type Machine, providerIDOf } from './kinds.ts';
import { annotations } from './names.ts';

const machineScheme = 'cluster-api-machine://';
const holdScheme = 'cluster-api-nodeclaim://';

/** What an id names: a Machine by its provider id, a Machine by its name, or a NodeClaim without one. */
export type Target =
  | { readonly kind: 'provider'; readonly providerID: string }
  | { readonly kind: 'machine'; readonly key: string }
  | { readonly kind: 'hold'; readonly member: string; readonly uid: string };

export function targetOf(id: string): Target {
  if (id.startsWith(machineScheme)) return { kind: 'machine', key: id.slice(machineScheme.length) };
  if (!id.startsWith(holdScheme)) return { kind: 'provider', providerID: id };
  const rest = id.slice(holdScheme.length);
  const slash = rest.lastIndexOf('/');
  return { kind: 'hold', member: rest.slice(0, slash), uid: rest.slice(slash + 1) };
}

/** The instance of a Machine; `member` is what made it, where that can still be read. */
export function instanceOf(machine: Machine, member: Member | undefined): Instance {
  const { annotations: own = {}, creationTimestamp } = machine.metadata;
  const uid = own[annotations.claimUid];
  const zone = machine.spec?.failureDomain;
  return {
    providerID: providerIDOf(machine) ?? `${machineScheme}${keyOf(machine)}`,
    labels: {
      ...(member ? nodeLabels(member) : {}),
      // Where it really is, should the member have several places.
      ...(zone && !member?.shape.zone ? { 'topology.kubernetes.io/zone': zone } : {}),
    },
    annotations: { [annotations.machine]: keyOf(machine) },
    capacity: member?.shape.capacity ?? {},
    allocatable: member?.allocatable ?? {},
    ...(uid ? { nodeClaim: { name: own[annotations.claimName] ?? '', uid } } : {}),
    ...(creationTimestamp ? { createdAt: creationTimestamp } : {}),
    ...(isDeleting(machine) ? { deleting: true } : {}),
  };
}

/** A NodeClaim that a member was raised for and that has no Machine. */
export function holdOf(member: string, uid: string): Instance {
  return {
    providerID: `${holdScheme}${member}/${uid}`,
    labels: {},
    capacity: {},
    allocatable: {},
    nodeClaim: { name: '', uid },
  };
}
