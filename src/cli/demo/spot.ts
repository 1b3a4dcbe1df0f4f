// SPDX-License-Identifier: Apache-2.0
// Cheap machines that the cloud may take back, for pods that can bear it, and others for those that cannot.
import { capacityTypes, labels } from '../../api/labels.ts';
import { nodeClaimKind } from '../../api/node-claim.ts';
import { deployment } from './objects.ts';
import { allRunning, nothingLeft, type Scenario } from './scenario.ts';

const only = (capacityType: string) => ({ nodeSelector: { [labels.capacityType]: capacityType } });
const pods = 3 + 20;

export const spot: Scenario = {
  name: 'spot',
  description: 'a shop on on-demand machines, workers on spot machines, of which the cloud takes one back',
  acts: [
    {
      title: 'the deployment shop is created: 3 pods on on-demand machines',
      do: (hands) =>
        hands.create(deployment('shop', { replicas: 3, requests: { cpu: '1' }, spec: only(capacityTypes.onDemand) })),
    },
    {
      title: 'the deployment workers is created: 20 pods on spot machines',
      do: (hands) =>
        hands.create(
          deployment('workers', {
            replicas: 20,
            requests: { cpu: '500m', memory: '1Gi' },
            spec: only(capacityTypes.spot),
          }),
        ),
      goal: () => allRunning(pods),
    },
    {
      // A notice of the cloud ends like this: its NodeClaim is deleted, so that the pods move before the machine goes.
      title: 'the cloud takes a spot machine back',
      do: async (hands) => {
        const taken = hands.world.machines.find(({ capacityType }) => capacityType === capacityTypes.spot);
        if (taken) await hands.delete(nodeClaimKind, taken.nodeClaim);
      },
      goal: (before) => {
        const taken = before.machines.find(({ capacityType }) => capacityType === capacityTypes.spot);
        const running = allRunning(pods);
        return {
          what: `the machine is gone, and ${running.what} again`,
          holds: (world) =>
            taken !== undefined &&
            world.machines.every(({ nodeClaim }) => nodeClaim !== taken.nodeClaim) &&
            running.holds(world),
          withinMs: 3 * running.withinMs,
        };
      },
    },
    {
      title: 'both deployments are deleted',
      do: async (hands) => {
        await hands.remove('shop');
        await hands.remove('workers');
      },
      goal: () => nothingLeft,
    },
  ],
};
