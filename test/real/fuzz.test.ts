// SPDX-License-Identifier: Apache-2.0
// Hostile requests get from the embedded API server the codes that a real one gives.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ReplayTarget, replay } from '../../hack/fuzz/replay.ts';
import { RealClock } from '../../src/base/clock.ts';
import { SystemRandom } from '../../src/base/random.ts';
import { ApiServer } from '../../src/embedded/api-server.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';

let plane: ControlPlane;
let server: ApiServer;
let ours: ReplayTarget;

beforeAll(async () => {
  plane = await startControlPlane();
  const user = { username: 'fuzz', groups: ['system:masters'] };
  server = new ApiServer({ clock: new RealClock(), random: new SystemRandom(), tokens: { fuzz: user } });
  ours = { url: (await server.listen()).url, token: 'fuzz' };
});
afterAll(async () => {
  await server?.close();
  await plane?.stop();
});

test.each([7, 11, 12, 14, 15, 16])(
  'every answer to the requests of seed %d has the code of a real one',
  async (seed) => {
    const differences = await replay(ours, { url: plane.url, token: plane.token }, seed, 400);
    expect(differences).toEqual([]);
  },
);
