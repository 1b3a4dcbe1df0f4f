// SPDX-License-Identifier: Apache-2.0
// Pods that must be spread over zones get machines in all of them, when they grow too.
import { labels } from '../../api/labels.ts';
import { deployment } from './objects.ts';
import { allRunning, type Goal, nothingLeft, type Scenario } from './scenario.ts';

const spread = {
  topologySpreadConstraints: [
    {
      maxSkew: 1,
      topologyKey: labels.zone,
      whenUnsatisfiable: 'DoNotSchedule' as const,
      labelSelector: { matchLabels: { app: 'web' } },
    },
  ],
};

function evenly(count: number): Goal {
  const running = allRunning(count);
  return {
    ...running,
    what: `${count} pods are running, as many in each zone`,
    holds: (world) => {
      const counts = [...world.podsByZone.values()];
      return running.holds(world) && counts.length > 1 && Math.max(...counts) - Math.min(...counts) <= 1;
    },
  };
}

export const zones: Scenario = {
  name: 'zones',
  description: '8 pods are spread evenly over all zones, then 20',
  acts: [
    {
      title: 'the deployment web is created: 8 pods of one CPU each, spread over zones',
      do: (hands) => hands.create(deployment('web', { replicas: 8, requests: { cpu: '1' }, spec: spread })),
      goal: () => evenly(8),
    },
    { title: 'it is scaled to 20', do: (hands) => hands.scale('web', 20), goal: () => evenly(20) },
    { title: 'it is deleted', do: (hands) => hands.remove('web'), goal: () => nothingLeft },
  ],
};
