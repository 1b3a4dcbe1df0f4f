// SPDX-License-Identifier: Apache-2.0
// A cluster that has nothing to do with Cluster API: most of them. Nobody notices that the cloud is there.
import { expect, test } from 'vitest';
import { allCrds } from '../../api/crd.ts';
import { settle, VirtualClock } from '../../base/clock.ts';
import { SeededRandom } from '../../base/random.ts';
import { ApiServer } from '../../embedded/api-server.ts';
import { kinds } from '../../kube/kinds.ts';
import { Cluster } from '../../runtime/clusters.ts';
import { RecordingLogger } from '../../runtime/logging.ts';
import { Hub } from './hub.ts';
import { ClusterApiProvider } from './provider.ts';

test('without Cluster API it says so once, and leaves nothing behind when the program ends', async () => {
  const clock = new VirtualClock();
  const random = new SeededRandom(1);
  const log = new RecordingLogger();
  const server = new ApiServer({ clock, random });
  const one = new Cluster({ name: 'karpenter', transport: server.transport(), clock, random, log });
  for (const crd of allCrds()) await one.client.resource(kinds.CustomResourceDefinition).create(crd as never);
  const hub = new Hub({ cluster: one, karpenter: one.client, clock, log });
  const provider = new ClusterApiProvider({ hub, karpenter: one, workload: one, clock, log });
  const stop = new AbortController();
  one.start(stop.signal);
  const running = hub.start(stop.signal);
  for (let minute = 0; minute < 10; minute++) {
    await settle();
    await clock.step(60_000);
    await settle();
  }
  expect(await provider.list(stop.signal)).toEqual([]);
  const warnings = log.lines.filter(({ level }) => level === 'warn' || level === 'error').map(({ message }) => message);
  expect(warnings).toEqual(['the management cluster cannot be used']);

  stop.abort(new Error('the program ends'));
  await running;
  await one.close();
  await server.close();
  await settle();
  expect(clock.nextDue()).toBeUndefined();
});
