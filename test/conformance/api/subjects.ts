// SPDX-License-Identifier: Apache-2.0
// The servers the cases are asked of, seen from outside (HTTPS) and from inside (the embedded one's process).
import type { Agent } from 'undici';
import type { ApiServer } from '../../../src/embedded/api-server.ts';
import { type HttpOptions, httpCaller, inProcessCaller, type Tally } from './caller.ts';
import { ok } from './case.ts';
import { pathOf } from './paths.ts';
import type { Subject } from './suite.ts';

/** Any API server by its URL; the token is an administrator's. */
export function overHttps(options: HttpOptions, agent: Agent): Subject {
  const { url } = options;
  return {
    admin: (tally) => httpCaller(tally, options, agent),
    anonymous: (tally) => httpCaller(tally, { url }, agent),
    serviceAccount: async (tally, namespace, name) => {
      const admin = httpCaller({ requests: 0, clients: new Set() }, options, agent);
      const path = pathOf(namespace, 'serviceaccounts', name, 'token');
      const { status } = await ok(admin.post(path, { spec: { expirationSeconds: 3600 } }));
      return httpCaller(tally, { url, token: String(status['token']) }, agent);
    },
  };
}

/** The embedded server without a wire. */
export function inProcess(server: ApiServer): Subject {
  const caller = (tally: Tally, username: string, ...groups: string[]) =>
    inProcessCaller(tally, server.transport({ username, groups: [...groups, 'system:authenticated'] }));
  return {
    admin: (tally) => caller(tally, 'admin', 'system:masters'),
    anonymous: (tally) =>
      inProcessCaller(tally, server.transport({ username: 'system:anonymous', groups: ['system:unauthenticated'] })),
    serviceAccount: (tally, namespace, name) =>
      Promise.resolve(
        caller(
          tally,
          `system:serviceaccount:${namespace}:${name}`,
          'system:serviceaccounts',
          `system:serviceaccounts:${namespace}`,
        ),
      ),
  };
}
