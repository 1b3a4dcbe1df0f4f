// SPDX-License-Identifier: Apache-2.0
// A real control plane breaks under the controller, and the controller under its work. `npm run nightly -- faults` does
// the same for longer.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { apiServerKilled, etcdOutage, FaultRig, killLoop, leaseFight } from './fault-scenarios.ts';

let rig: FaultRig;
beforeAll(async () => {
  rig = await FaultRig.start();
}, 300_000);
afterAll(() => rig?.stop());

const limit = 240_000;

test('etcd goes away while machines are bought, and comes back', () => etcdOutage(rig, 120, 5000), limit);

test(
  'the API server is killed while machines are bought, and starts again',
  () => apiServerKilled(rig, 120, 3000),
  limit,
);

test(
  'the controller is killed again and again while a thousand pods come and go',
  async () => {
    const kills = await killLoop(rig, { pods: 1000, seconds: 30, seed: 1 });
    expect(kills).toBeGreaterThan(2);
  },
  2 * limit,
);

test(
  'a leader that hung comes back to find another in its place',
  () => leaseFight(rig, { pods: 120, rounds: 1 }),
  limit,
);
