// SPDX-License-Identifier: Apache-2.0
// All promises of the autoscaler. Each is written from the documents, reads only the stores and the clouds' books, and
// shares no code with what it judges.

import type { FeatureGates } from '../../runtime/settings.ts';
import type { Invariant } from '../contract.ts';
import type { Fleet } from '../process/fleet.ts';
import { disruptionInvariants } from './disruption.ts';
import { eventsInProportion } from './events.ts';
import { podsMovedGently } from './evictions.ts';
import { fieldsKept } from './fields.ts';
import { gatedInvariants } from './gated.ts';
import { oneLeader } from './leaders.ts';
import { lifecycleInvariants } from './lifecycle.ts';
import { limitsKept } from './limits.ts';
import { machineInvariants } from './machines.ts';
import { keptForPods } from './nominations.ts';
import { placementInvariants } from './placement.ts';
import { podsRun } from './pods-run.ts';
import { quietInvariants } from './quiet.ts';
import { roomForAll } from './room.ts';
import { movesSave } from './savings.ts';
import { littleWaste } from './waste.ts';

export function allInvariants(parts: { readonly fleet: Fleet; readonly gates: FeatureGates }): Invariant[] {
  return [
    ...machineInvariants(),
    podsRun(),
    podsMovedGently(),
    ...disruptionInvariants(parts),
    limitsKept(),
    ...lifecycleInvariants(),
    littleWaste(),
    ...placementInvariants(),
    fieldsKept(),
    oneLeader(parts),
    eventsInProportion(),
    movesSave(),
    keptForPods(parts),
    roomForAll(),
    ...gatedInvariants(parts),
    ...quietInvariants(parts),
  ];
}
