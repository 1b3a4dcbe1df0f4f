// SPDX-License-Identifier: Apache-2.0
// Of several replicas one acts: whoever does not hold the lease writes nothing.
import type { Lease } from '../../kube/kinds.ts';
import { collections } from '../collections.ts';
import type { Invariant } from '../contract.ts';
import type { Fleet } from '../process/fleet.ts';
import { isOurs, second } from './reading.ts';

/** What a process that came back had begun before it knew: it is over after this. */
const surpriseMs = 10 * second;

export function oneLeader({ fleet }: { readonly fleet: Fleet }): Invariant {
  let holder: { readonly name: string; readonly since: number } | undefined;
  return {
    name: 'leaders/one',
    onChange(change, facts, report) {
      if (change.collection === collections.leases) {
        const { metadata, spec } = change.event.object as Lease;
        if (metadata.namespace !== 'kube-system') return;
        const name = spec?.holderIdentity ?? '';
        if (name !== '' && name !== holder?.name) holder = { name, since: facts.now };
        return;
      }
      if (!holder || !isOurs(change) || change.collection === collections.events) return;
      report.checked();
      if (change.by === holder.name || facts.now - holder.since < surpriseMs) return;
      const process = fleet.alive.find(({ name }) => name === change.by);
      if (!process || facts.now - process.resumedAt < surpriseMs) return;
      report.violated(`${change.by} writes (${change.request}), and ${holder.name} has held the lease for a while`);
    },
  };
}
