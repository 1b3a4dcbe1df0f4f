// SPDX-License-Identifier: Apache-2.0
// Which handler answers a path.
import type { Call } from './exchange.ts';
import type { RateLimits } from './rate-limits.ts';

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** `/lke/clusters/:cluster/pools`. */
  readonly path: string;
  /** The body of a 200. Throws a Refusal otherwise. */
  readonly handle: (call: Call) => unknown;
  /** Anybody may ask, without a token. */
  readonly open?: boolean;
  /** How it is counted; unless told, by what it is. */
  readonly kind?: keyof RateLimits;
}

interface Compiled {
  readonly route: Route;
  readonly parts: readonly string[];
}

export interface Match {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

export class Router {
  readonly #routes: readonly Compiled[];

  constructor(routes: readonly Route[]) {
    this.#routes = routes.map((route) => ({ route, parts: route.path.split('/') }));
  }

  /** The route of a path without version and query; `undefined`: no such path; `method`: not with this method. */
  find(method: string, path: string): Match | 'method' | undefined {
    const parts = path.replace(/\/+$/, '').split('/');
    let known = false;
    for (const { route, parts: wanted } of this.#routes) {
      const params = matchParts(wanted, parts);
      if (!params) continue;
      known = true;
      if (route.method === method) return { route, params };
    }
    return known ? 'method' : undefined;
  }
}

function matchParts(wanted: readonly string[], parts: readonly string[]): Record<string, string> | undefined {
  if (wanted.length !== parts.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const actual = parts[index]!;
    if (part.startsWith(':')) {
      if (actual === '') return undefined;
      params[part.slice(1)] = decoded(actual);
    } else if (part !== actual) return undefined;
  }
  return params;
}

/** A broken escape names nothing that exists. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
