// SPDX-License-Identifier: Apache-2.0
// The Linode API v4 in this process: one account, spoken to through `handle` or over HTTP on loopback.
import type { Clock } from '../../../base/clock.ts';
import type { Random } from '../../../base/random.ts';
import type { Logger } from '../../../runtime/logging.ts';
import { Account, type Delays, usualDelays } from './account.ts';
import type { Capacity } from './capacity.ts';
import { catalogueRoutes } from './catalogue.ts';
import { type ClusterOptions, clusterRoutes } from './clusters.ts';
import type { ApiRequest, ApiResponse, Call, Json } from './exchange.ts';
import { ConnectionLost, type Failure, type FaultKind, FaultPlan } from './faults.ts';
import { HttpDoor } from './http-door.ts';
import { instanceRoutes } from './instances.ts';
import { Ledger } from './ledger.ts';
import { type MachineHook, Machines } from './machines.ts';
import { networkingRoutes } from './networking.ts';
import { placementRoutes } from './placement.ts';
import { Pools } from './pools.ts';
import { profileRoutes, tagRoutes } from './profile.ts';
import { documentedLimits, RateLimiter, type RateLimits } from './rate-limits.ts';
import { badRequest, notFound, Refusal } from './refusal.ts';
import { type Match, type Route, Router } from './router.ts';
import { vpcRoutes } from './vpcs.ts';

export type { Delays } from './account.ts';
export type { ApiRequest, ApiResponse } from './exchange.ts';
export { ConnectionLost } from './faults.ts';
export type { Machine, MachineHook } from './machines.ts';

/** `read`: may look; `restricted`: a user without grants. */
export type Scope = 'write' | 'read' | 'restricted';

export interface LinodeApiOptions extends ClusterOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly log?: Logger;
  /** Who may ask; unless told, the token `linode-token` may do everything. */
  readonly tokens?: Readonly<Record<string, { readonly scope: Scope }>>;
  readonly delays?: Partial<Delays>;
  /** The documented ones unless told. */
  readonly limits?: Partial<RateLimits> | 'none';
  /** Lists of Linodes and pools lag behind by this. */
  readonly consistency?: { readonly listLagMs?: number };
  readonly maxPoolsPerCluster?: number;
  readonly maxInstances?: number;
  /** Told when a machine runs and when it goes. */
  readonly machines?: MachineHook;
}

/** Calls kept in the ledger: enough for any test, not for a process that runs for days. */
const keptCalls = 100_000;

export class LinodeApi {
  readonly faults: FaultPlan;
  readonly ledger: Ledger;
  /** Every call is answered with 503 while it is on. */
  maintenance = false;
  readonly #clock: Clock;
  readonly #account: Account;
  readonly #router: Router;
  readonly #limiter: RateLimiter;
  readonly #tokens: Map<string, { readonly scope: Scope }>;
  #door: HttpDoor | undefined;

  constructor(options: LinodeApiOptions) {
    const { clock, random, limits = documentedLimits, consistency, machines: hook, log } = options;
    this.#clock = clock;
    const account = new Account({
      clock,
      random,
      delays: { ...usualDelays, ...options.delays },
      listLagMs: consistency?.listLagMs ?? 0,
      maxPoolsPerCluster: options.maxPoolsPerCluster ?? 100,
      maxInstances: options.maxInstances ?? Number.POSITIVE_INFINITY,
    });
    this.#account = account;
    this.faults = new FaultPlan(random);
    this.ledger = new Ledger(account);
    this.#limiter = new RateLimiter(clock, limits === 'none' ? undefined : { ...documentedLimits, ...limits });
    this.#tokens = new Map(Object.entries(options.tokens ?? { 'linode-token': { scope: 'write' as const } }));
    const machines = new Machines(account, hook, log);
    const pools = new Pools(account, machines);
    this.#router = new Router([
      ...catalogueRoutes(account),
      ...instanceRoutes(account, machines),
      ...clusterRoutes(account, pools, options),
      ...networkingRoutes(account, machines),
      ...vpcRoutes(account),
      ...placementRoutes(account, machines),
      ...profileRoutes(account),
      ...tagRoutes(account, machines),
    ]);
  }

  /** How many machines are left of each plan. */
  get capacity(): Capacity {
    return this.#account.capacity;
  }

  issue(token: string, scope: Scope = 'write'): void {
    this.#tokens.set(token, { scope });
  }

  /** From now on it is not a token. */
  revoke(token: string): void {
    this.#tokens.delete(token);
  }

  /**
   * Answers one request. Rejects with `ConnectionLost` when a fault breaks the connection, and with the signal's reason
   * when that aborts first: as on a wire, the work may have been done.
   */
  async handle(request: ApiRequest, signal?: AbortSignal): Promise<ApiResponse> {
    signal?.throwIfAborted();
    const [pathname = '', query = ''] = request.path.split(/\?(.*)/s);
    const path = pathname.replace(/^\/v4(?:beta)?(?=\/|$)/, '');
    const match = path === pathname ? undefined : this.#router.find(request.method, path);
    const fault = this.faults.take(request.method, path);
    if (typeof fault === 'object' && 'slowMs' in fault) await this.#clock.sleep(fault.slowMs, signal);
    const record = (status: number): void => this.#record(request, path, query, match, status);
    if (fault === 'lost-request') {
      record(0);
      throw new ConnectionLost();
    }
    const failure = typeof fault === 'object' && 'status' in fault ? fault : undefined;
    const answer =
      failure && !failure.applied ? undefined : this.#answer(request, { path, query, beta: isBeta(pathname), match });
    const response = spoiled(fault, failure ? failureOf(failure) : answer!);
    record(response === undefined ? 0 : response.status);
    if (response === undefined) throw new ConnectionLost();
    return response;
  }

  /** Opens a port on loopback; `url` is without the version. */
  async listen(options: { port?: number; host?: string } = {}): Promise<{ url: string; port: number }> {
    this.#door ??= new HttpDoor((request, signal) => this.handle(request, signal));
    return this.#door.listen(options);
  }

  /** Closes the port and stops the time of the account. */
  async close(): Promise<void> {
    this.#account.close();
    await this.#door?.close();
  }

  #answer(
    request: ApiRequest,
    at: { path: string; query: string; beta: boolean; match: Match | 'method' | undefined },
  ): ApiResponse {
    let headers: Readonly<Record<string, string>> = {};
    try {
      if (this.maintenance) {
        const reason = 'Currently in maintenance mode.';
        throw new Refusal(503, [{ reason }], { 'x-maintenance-mode': 'API,Currently in maintenance mode.' });
      }
      const token = tokenOf(request);
      const { match } = at;
      const route = match === undefined || match === 'method' ? undefined : match.route;
      this.#authorize(request.method, route, token);
      headers = this.#limiter.count(token ?? 'anonymous', kindOf(request.method, route));
      if (match === undefined) throw notFound();
      if (match === 'method') throw new Refusal(405, [{ reason: 'Method Not Allowed' }]);
      const call: Call = {
        method: request.method,
        params: match.params,
        query: new URLSearchParams(at.query),
        headers: request.headers,
        body: bodyOf(request),
        beta: at.beta,
      };
      return jsonResponse(200, match.route.handle(call), headers);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return jsonResponse(error.status, { errors: error.problems }, { ...headers, ...error.headers });
    }
  }

  #authorize(method: string, route: Route | undefined, token: string | undefined): void {
    if (token === undefined && route?.open) return;
    const known = token === undefined ? undefined : this.#tokens.get(token);
    if (!known) throw new Refusal(401, [{ reason: 'Invalid Token' }]);
    if (method === 'GET' || known.scope === 'write') return;
    if (known.scope === 'read') {
      throw new Refusal(401, [{ reason: 'Your OAuth token is not authorized to use this endpoint.' }]);
    }
    throw new Refusal(403, [{ reason: 'Unauthorized' }]);
  }

  #record(request: ApiRequest, path: string, query: string, match: Match | 'method' | undefined, status: number): void {
    const { calls } = this.ledger;
    if (calls.length >= keptCalls) calls.shift();
    calls.push({
      at: this.#clock.now(),
      method: request.method,
      path: query === '' ? path : `${path}?${query}`,
      route: match === undefined || match === 'method' ? '' : match.route.path,
      status,
      token: tokenOf(request) ?? '',
    });
  }
}

function isBeta(pathname: string): boolean {
  return pathname.startsWith('/v4beta');
}

function tokenOf({ headers }: ApiRequest): string | undefined {
  return /^(?:Bearer|token)\s+(\S+)$/i.exec(headers['authorization'] ?? '')?.[1];
}

/** Lists are counted apart from everything else. */
function kindOf(method: string, route: Route | undefined): keyof RateLimits {
  if (route?.kind) return route.kind;
  const isList = method === 'GET' && route !== undefined && lists.has(route.path);
  return isList ? 'lists' : 'others';
}

/** The GETs that come in pages. */
const lists = new Set([
  '/linode/types',
  '/linode/kernels',
  '/linode/instances',
  '/linode/instances/:linode/configs',
  '/linode/instances/:linode/disks',
  '/linode/instances/:linode/firewalls',
  '/regions',
  '/regions/availability',
  '/regions/vpc-availability',
  '/lke/types',
  '/lke/versions',
  '/lke/tiers/:tier/versions',
  '/lke/clusters',
  '/lke/clusters/:cluster/pools',
  '/lke/clusters/:cluster/api-endpoints',
  '/networking/firewalls',
  '/networking/firewalls/:firewall/devices',
  '/networking/reserved/ips',
  '/vpcs',
  '/vpcs/:vpc/subnets',
  '/placement/groups',
  '/profile/sshkeys',
  '/account/users',
  '/account/events',
  '/tags',
  '/tags/:tag',
]);

function bodyOf({ body }: ApiRequest): Json {
  if (body === undefined || body === '') return {};
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw badRequest('Invalid JSON');
  }
  if (value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) throw badRequest('Invalid JSON');
  return value as Json;
}

function jsonResponse(status: number, body: unknown, headers: Readonly<Record<string, string>>): ApiResponse {
  return {
    status,
    headers: { 'content-type': 'application/json', 'x-oauth-scopes': '*', 'x-spec-version': '4', ...headers },
    body: JSON.stringify(body),
  };
}

function failureOf(fault: Failure): ApiResponse {
  const {
    status,
    reason = status === 429 ? 'Too many requests' : 'Internal Server Error',
    field,
    headers = {},
  } = fault;
  const problem = field === undefined ? { reason } : { reason, field };
  const wait = status === 429 && headers['retry-after'] === undefined ? { 'retry-after': '5' } : {};
  return jsonResponse(status, { errors: [problem] }, { ...wait, ...headers });
}

/** The answer as it arrives; undefined: it does not. */
function spoiled(fault: FaultKind | undefined, response: ApiResponse): ApiResponse | undefined {
  if (fault === 'lost-response') return undefined;
  if (fault === 'truncated') return { ...response, body: response.body.slice(0, Math.floor(response.body.length / 2)) };
  if (fault !== 'malformed') return response;
  return { ...response, headers: { ...response.headers, 'content-type': 'text/html' }, body: '<html>nginx</html>' };
}
