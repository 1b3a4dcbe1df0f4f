// SPDX-License-Identifier: Apache-2.0
// Asking the emulated API in tests: JSON in, JSON out.
import { VirtualClock } from '../../../../base/clock.ts';
import { SeededRandom } from '../../../../base/random.ts';
import { LinodeApi, type LinodeApiOptions } from '../api.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  // Whatever the API says: tests look into it.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
}

export interface World {
  readonly api: LinodeApi;
  readonly clock: VirtualClock;
  /** Asks with the usual token. `path` is without the version. */
  ask(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>;
}

/** An account on virtual time, the same for the same seed. */
export function linodeWorld(options: Partial<LinodeApiOptions> & { seed?: number } = {}): World {
  const { seed = 1, ...rest } = options;
  const clock = new VirtualClock();
  const api = new LinodeApi({ clock, random: new SeededRandom(seed), ...rest });
  return {
    api,
    clock,
    async ask(method, path, body, headers = {}) {
      const response = await api.handle({
        method,
        path: `/v4beta${path}`,
        headers: { authorization: 'Bearer linode-token', ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, headers: response.headers, body: JSON.parse(response.body) as unknown };
    },
  };
}
