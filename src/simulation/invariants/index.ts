// SPDX-License-Identifier: Apache-2.0
// All promises of the autoscaler. Each is written from the documents, reads only the stores and the clouds' books, and
// shares no code with what it judges.
import type { Invariant } from '../contract.ts';
import type { Fleet } from '../process/fleet.ts';
import { machineInvariants } from './machines.ts';
import { podsRun } from './pods-run.ts';

export function allInvariants(_parts: { readonly fleet: Fleet }): Invariant[] {
  return [...machineInvariants(), podsRun()];
}
