// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { VirtualClock } from '../../base/clock.ts';
import { SeededRandom } from '../../base/random.ts';
import { isWatchStream } from '../../kube/transport.ts';
import { ApiServer } from '../api-server.ts';

const path = '/api/v1/namespaces/default/configmaps';

async function watched() {
  const server = new ApiServer({ clock: new VirtualClock(), random: new SeededRandom(1) });
  const transport = server.transport();
  const stream = await transport.watch({
    method: 'GET',
    path,
    query: { resourceVersion: String(server.store.revision) },
  });
  if (!isWatchStream(stream)) throw new Error('no watch');
  const events = stream[Symbol.asyncIterator]();
  const write = (name: string): void => {
    void transport.request({
      method: 'POST',
      path,
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } },
    });
  };
  const nameOf = async (next: ReturnType<typeof events.next>): Promise<string | undefined> => {
    const { done, value } = await next;
    return done ? undefined : value.object.metadata.name;
  };
  return { server, stream, events, write, nameOf };
}

test('who asks before there is anything is told in order, and nobody within the turn of the writer', async () => {
  const { server, events, write, nameOf } = await watched();
  const told: (string | undefined)[] = [];
  const asked = [events.next(), events.next()].map(async (next) => told.push(await nameOf(next)));
  write('a');
  write('b');
  write('c');
  expect(told).toEqual([]);
  await Promise.all(asked);
  expect(told).toEqual(['a', 'b']);
  expect(await nameOf(events.next())).toBe('c');
  await server.close();
});

test('a watch that is closed ends for all who wait', async () => {
  const { server, stream, events, nameOf } = await watched();
  const asked = [events.next(), events.next()];
  stream.close();
  expect(await Promise.all(asked.map(nameOf))).toEqual([undefined, undefined]);
  expect(await nameOf(events.next())).toBeUndefined();
  await server.close();
});
