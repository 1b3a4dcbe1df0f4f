// SPDX-License-Identifier: Apache-2.0
// Who is behind a bearer token.
import type { Random } from '../base/random.ts';
import type { UserInfo } from './rest/request.ts';

const authenticated = 'system:authenticated';

/** Bearer tokens and the users behind them. */
export class Authenticator {
  readonly #random: Random;
  readonly #users = new Map<string, UserInfo>();
  readonly #issued = new Map<string, string>();

  constructor(random: Random, tokens: Readonly<Record<string, UserInfo>> = {}) {
    this.#random = random;
    for (const [token, user] of Object.entries(tokens)) this.add(token, user);
  }

  /** Accepts a token for a user, who is in `system:authenticated` from then on. */
  add(token: string, user: UserInfo): void {
    const groups = user.groups.includes(authenticated) ? user.groups : [...user.groups, authenticated];
    this.#users.set(token, Object.freeze({ ...user, groups: Object.freeze(groups) }));
  }

  /** A token for the user; the same one each time, as long as the server runs. */
  issue(user: UserInfo): string {
    const key = `${user.username} ${user.uid ?? ''}`;
    let token = this.#issued.get(key);
    if (token === undefined) {
      token = `${this.#random.uuid()}${this.#random.uuid()}`.replaceAll('-', '');
      this.#issued.set(key, token);
      this.add(token, user);
    }
    return token;
  }

  userOf(token: string): UserInfo | undefined {
    return this.#users.get(token);
  }
}
