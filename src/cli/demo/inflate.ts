// SPDX-License-Identifier: Apache-2.0
// The demo of every Karpenter guide: five pods that each want a CPU come, and go.
import { deployment } from './objects.ts';
import { allRunning, nothingLeft, type Scenario } from './scenario.ts';

export const inflate: Scenario = {
  name: 'inflate',
  description: 'a deployment grows from 0 to 5 pods of one CPU each, and shrinks to 0 again',
  acts: [
    {
      title: 'the deployment inflate is created, with no pods yet',
      do: (hands) => hands.create(deployment('inflate', { replicas: 0, requests: { cpu: '1' } })),
    },
    { title: 'it is scaled to 5', do: (hands) => hands.scale('inflate', 5), goal: () => allRunning(5) },
    { title: 'it is scaled to 0', do: (hands) => hands.scale('inflate', 0), goal: () => nothingLeft },
  ],
};
