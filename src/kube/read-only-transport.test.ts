// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { ReadOnlyTransport } from './read-only-transport.ts';
import type { Transport, TransportRequest } from './transport.ts';

const path = '/api/v1/nodes/a';

test('what reads is passed on, anything else is never sent', async () => {
  const sent: string[] = [];
  const pass = (request: TransportRequest) => {
    sent.push(request.method);
    return Promise.resolve({ status: 200, body: {} });
  };
  const inner: Transport = { request: pass, watch: pass, close: () => Promise.resolve() };
  const transport = new ReadOnlyTransport(inner);
  await transport.request({ method: 'GET', path });
  await transport.watch({ method: 'GET', path });
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'] as const)
    await expect(transport.request({ method, path })).rejects.toThrow(`a dry run must not write: ${method} ${path}`);
  expect(sent).toEqual(['GET', 'GET']);
});
