// SPDX-License-Identifier: Apache-2.0
// `npm run nightly -- faults [SECONDS]`: the fault stories of test/real, longer and again and again.
import { apiServerKilled, etcdOutage, FaultRig, killLoop, leaseFight } from '../../test/real/fault-scenarios.ts';

/** Runs every story; SECONDS is how long the controller is killed and started again (600 by default). */
export async function faults(seconds = '600'): Promise<boolean> {
  const rig = await FaultRig.start();
  const stories: Readonly<Record<string, () => Promise<unknown>>> = {
    'etcd away for 5 s': () => etcdOutage(rig, 300, 5000),
    'etcd away for a minute': () => etcdOutage(rig, 300, 60_000),
    'API server killed': () => apiServerKilled(rig, 300, 0),
    'API server away for a minute': () => apiServerKilled(rig, 300, 60_000),
    'controller killed again and again': () => killLoop(rig, { pods: 1000, seconds: Number(seconds), seed: 2 }),
    'leaders that hang': () => leaseFight(rig, { pods: 300, rounds: 5 }),
  };
  try {
    for (const [name, run] of Object.entries(stories)) {
      const started = performance.now();
      const told = await run();
      const kills = typeof told === 'number' ? `, ${told} kills` : '';
      console.log(`${name}: passed in ${Math.round((performance.now() - started) / 1000)} s${kills}`);
    }
    return true;
  } catch (error) {
    console.error(error);
    return false;
  } finally {
    await rig.stop();
  }
}
