// SPDX-License-Identifier: Apache-2.0
// Our client against the embedded API server, through both of its doors.
import { afterAll, beforeAll, describe } from 'vitest';
import { RealClock } from '../../../src/base/clock.ts';
import { SystemRandom } from '../../../src/base/random.ts';
import { ApiServer } from '../../../src/embedded/api-server.ts';
import { KubeClient } from '../../../src/kube/client.ts';
import { HttpTransport } from '../../../src/kube/http-transport.ts';
import { clientSuite } from './suite.ts';

const admin = { username: 'admin', groups: ['system:masters'] };

function newServer(): ApiServer {
  return new ApiServer({ clock: new RealClock(), random: new SystemRandom(), tokens: { 'admin-token': admin } });
}

describe('in process', () => {
  const server = newServer();
  const client = new KubeClient({ transport: server.transport(), fieldManager: 'test' });
  afterAll(() => server.close());
  clientSuite(() => client);
});

describe('over HTTPS', () => {
  const server = newServer();
  let client: KubeClient;
  beforeAll(async () => {
    const { url, certificateAuthority } = await server.listen();
    const transport = new HttpTransport({
      server: url,
      ca: certificateAuthority,
      headers: { authorization: 'Bearer admin-token' },
    });
    client = new KubeClient({ transport, fieldManager: 'test' });
  });
  afterAll(async () => {
    await client?.close();
    await server.close();
  });
  clientSuite(() => client);
});
