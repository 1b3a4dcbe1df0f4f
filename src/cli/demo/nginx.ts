// SPDX-License-Identifier: Apache-2.0
// `kubectl create deploy nginx --replicas=200 --image=nginx`: pods that ask for nothing but a place.
import { deployment } from './objects.ts';
import { allRunning, nothingLeft, type Scenario } from './scenario.ts';

export const nginx: Scenario = {
  name: 'nginx',
  description: '200 replicas of nginx come at once, and are deleted',
  acts: [
    {
      title: 'the deployment nginx is created, with 200 replicas',
      do: (hands) => hands.create(deployment('nginx', { replicas: 200, image: 'nginx' })),
      goal: () => allRunning(200),
    },
    { title: 'it is deleted', do: (hands) => hands.remove('nginx'), goal: () => nothingLeft },
  ],
};
