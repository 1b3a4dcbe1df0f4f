// SPDX-License-Identifier: Apache-2.0
// What the controllers of the model share.
import type { KubeClient } from '../../../kube/client.ts';
import type { ControlPlane } from '../../workloads/context.ts';
import type { OwnerIndex } from '../../workloads/owner-index.ts';
import type { Behavior, Machine, MachineSet, Types } from './objects.ts';

export interface ModelContext extends Omit<ControlPlane, 'events'> {
  readonly types: Types;
  /** Where Nodes appear; `client` is the management cluster. */
  readonly workload: KubeClient;
  readonly machines: OwnerIndex<Machine>;
  readonly sets: OwnerIndex<MachineSet>;
  /** How a machine behaves unless its template says otherwise. */
  readonly behavior: (machine: Machine) => Behavior;
  /** What makes the Node wait for Cluster API, and for Karpenter. */
  readonly nodeTaints: readonly { key: string; value?: string; effect: string }[];
}
