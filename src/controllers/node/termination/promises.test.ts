// SPDX-License-Identifier: Apache-2.0
// Random nodes with random pods, drained to the end: what was promised to pods holds at every single request.
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { annotations } from '../../../api/labels.ts';
import { nodeClaimKind } from '../../../api/node-claim.ts';
import { kinds, type Pod } from '../../../kube/kinds.ts';
import { formatTime } from '../../../kube/time.ts';
import { isDoNotDisruptActive, isOwnedByDaemonSet } from '../../../state/pod-predicates.ts';
import { budget, contextOf, letPodsGo, machine, runningPod } from '../../disruption/testing/machines.ts';
import { type TestWorld, testWorld } from '../../testing/world.ts';
import { terminationControllers } from './index.ts';

let world: TestWorld | undefined;
afterEach(() => world?.close());

const pods = fc.array(
  fc.record({
    critical: fc.boolean(),
    daemon: fc.boolean(),
    protection: fc.constantFrom(undefined, undefined, 'true', '90s', '5m', 'nonsense'),
    app: fc.constantFrom('free', 'free', 'guarded'),
    graceSeconds: fc.constantFrom(1, 30, 300),
  }),
  { minLength: 1, maxLength: 6 },
);
const nodes = fc.record({ pods, deadlineSeconds: fc.constantFrom(undefined, 0, 60, 600) });

function tierOf(pod: Pod): number {
  return (pod.spec.priorityClassName === 'system-node-critical' ? 2 : 0) + (isOwnedByDaemonSet(pod) ? 1 : 0);
}

test('no pod is taken against its promises, tiers leave in order, and a deadline ends every wait', async () => {
  await fc.assert(
    fc.asyncProperty(nodes, async ({ pods: wanted, deadlineSeconds }) => {
      await world?.close();
      const here = (world = await testWorld());
      const { clock } = here;
      await here.advance(1000 - (clock.now() % 1000));
      await machine(here, 'a');
      for (const [i, { critical, daemon, protection, app, graceSeconds }] of wanted.entries()) {
        await runningPod(here, `pod-${i}`, 'a', {
          labels: { app },
          ...(daemon ? { owner: 'DaemonSet' as const } : {}),
          ...(protection ? { annotations: { [annotations.doNotDisrupt]: protection } } : {}),
          spec: {
            terminationGracePeriodSeconds: graceSeconds,
            ...(critical ? { priorityClassName: 'system-node-critical' } : {}),
          },
        });
      }
      await budget(here, 'guarded', 0);
      const deadlineMs = deadlineSeconds === undefined ? undefined : clock.now() + deadlineSeconds * 1000;
      if (deadlineMs !== undefined) {
        const own = { [annotations.terminationTimestamp]: formatTime(deadlineMs) };
        await here.karpenter.resource(nodeClaimKind).patch('a', { metadata: { annotations: own } });
      }
      await here.settle();
      here.doors.workload.beforeWrite(({ method, path, body }) => {
        const [, name, eviction] = /\/pods\/([^/]+)(\/eviction)?$/.exec(path) ?? [];
        const pod = here.state.sources.pods.get(`default/${name}`);
        if (!pod) return;
        if (eviction) {
          expect(isDoNotDisruptActive(pod, clock.now())).toBe(false);
          const others = [...here.state.podsOn('a')];
          expect(others.filter((other) => tierOf(other) < tierOf(pod))).toEqual([]);
          return;
        }
        expect(method).toBe('DELETE');
        expect(deadlineMs).toBeDefined();
        const left = (deadlineMs! - clock.now()) / 1000;
        expect(left).toBeLessThan(pod.spec.terminationGracePeriodSeconds!);
        expect((body as { gracePeriodSeconds: number }).gracePeriodSeconds).toBe(Math.max(1, Math.floor(left)));
      });
      here.run(...terminationControllers(contextOf(here)));
      await here.workload.resource(kinds.Node).delete('a');
      for (let second = 0; second < 700; second += 10) {
        await here.advance(10_000);
        await letPodsGo(here);
      }
      const held = wanted.some(({ protection, app }) => protection === 'true' || app === 'guarded');
      const stays = deadlineMs === undefined && held;
      expect((await here.nodes()).length).toBe(stays ? 1 : 0);
      expect(here.cloud.instances.size).toBe(stays ? 1 : 0);
      if (!stays) expect(await here.pods()).toEqual([]);
      expect(here.log.messages('error')).toEqual([]);
    }),
    { numRuns: 25, seed: 1 },
  );
}, 60_000);
