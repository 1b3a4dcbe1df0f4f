// SPDX-License-Identifier: Apache-2.0
// The same hostile requests, one after the other, to two servers: where their codes differ, the embedded one is wrong.
import { Agent } from 'undici';
import { RealClock } from '../../src/base/clock.ts';
import { SeededRandom } from '../../src/base/random.ts';
import { Chance } from './chance.ts';
import { type FuzzRequest, namespace, nextRequest } from './requests.ts';

export interface ReplayTarget {
  readonly url: string;
  readonly token: string;
}

/** A request that was answered with different codes. */
export interface Difference {
  readonly request: FuzzRequest;
  readonly ours: Answer;
  readonly theirs: Answer;
}

export interface Answer {
  readonly code: number;
  readonly message: string;
}

const clock = new RealClock();

/** Sends `count` requests of a seed to both servers and gives those whose codes differ. */
export async function replay(
  ours: ReplayTarget,
  theirs: ReplayTarget,
  seed: number,
  count: number,
): Promise<Difference[]> {
  const agent = new Agent({ connect: { rejectUnauthorized: false }, pipelining: 0, connections: null, allowH2: false });
  const chance = new Chance(new SeededRandom(seed));
  const both = [ours, theirs] as const;
  try {
    for (const target of both) await prepare(agent, target);
    const differences: Difference[] = [];
    for (let i = 0; i < count; i++) {
      const request = nextRequest(chance);
      if (!isComparable(request)) continue;
      const [mine, real] = await Promise.all(both.map((target) => send(agent, target, request)));
      if (mine && real && mine.code !== real.code) {
        differences.push({ request, ours: mine, theirs: real });
        // What one of them took and the other did not would make every answer after it differ.
        await align(agent, both, request);
      }
      if (isDefinition(request)) await Promise.all(both.map((target) => served(agent, target)));
    }
    return differences;
  } finally {
    await agent.destroy();
  }
}

async function prepare(agent: Agent, target: ReplayTarget): Promise<void> {
  const body = JSON.stringify({ metadata: { name: namespace } });
  await send(agent, target, { method: 'POST', path: '/api/v1/namespaces', headers, body });
  const [core, named] = ['/api/v1', `namespaces/${namespace}`];
  const collections = [
    ...['configmaps', 'secrets', 'pods', 'services', 'events'].map((plural) => `${core}/${named}/${plural}`),
    `${core}/nodes`,
    `/apis/apps/v1/${named}/deployments`,
    `/apis/batch/v1/${named}/jobs`,
    `/apis/policy/v1/${named}/poddisruptionbudgets`,
    `/apis/rbac.authorization.k8s.io/v1/${named}/roles`,
    `/apis/coordination.k8s.io/v1/${named}/leases`,
  ];
  const options = '{"gracePeriodSeconds":0,"propagationPolicy":"Background"}';
  for (const path of collections) await send(agent, target, { method: 'DELETE', path, headers, body: options });
  const definition = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.fuzz.example.com';
  await send(agent, target, { method: 'DELETE', path: definition, headers });
  await gone(agent, target, definition);
}

const auth = 'Bearer fuzz';

/** What depends on how long something takes, or on what the client library makes of it, says nothing. */
function isComparable({ method, path, headers }: FuzzRequest): boolean {
  // The one language that only the real server speaks.
  if (Object.values(headers).some((value) => value.includes('protobuf'))) return false;
  if (method === 'TRACE' || method === 'PROPFIND' || method === 'OPTIONS') return false;
  // A watch of nothing: the real one gives up on the path itself, with a 500 of its router.
  if (/\/watch\/?(?:\?|$)/.test(path)) return false;
  // Bytes that Go's and Node's HTTP read differently before any API server sees them.
  const strange = /[^\x21-\x7e]|%(?![0-9a-fA-F]{2})|[\\]/.test(path);
  return !strange && !/[?&]watch=|[?&]sendInitialEvents=/.test(path) && headers['content-encoding'] === undefined;
}

function isDefinition({ path }: FuzzRequest): boolean {
  return path.startsWith('/apis/apiextensions.k8s.io/');
}

async function send(agent: Agent, { url, token }: ReplayTarget, request: FuzzRequest): Promise<Answer | undefined> {
  const { method, path, body } = request;
  const headers = { ...request.headers };
  if (headers['authorization'] === auth) headers['authorization'] = `Bearer ${token}`;
  try {
    const answer = await agent.request({
      origin: url,
      method: method as 'GET',
      path,
      headers,
      ...(body === undefined ? {} : { body }),
      headersTimeout: 5_000,
      bodyTimeout: 5_000,
    });
    const text = await answer.body.text();
    return { code: answer.statusCode, message: messageIn(text) };
  } catch (error) {
    // A request that the client itself cannot send says nothing about the servers.
    return /invalid/i.test(String(error)) ? undefined : { code: 0, message: String(error) };
  }
}

function messageIn(text: string): string {
  try {
    return (JSON.parse(text) as { message?: string }).message ?? '';
  } catch {
    return text.slice(0, 200);
  }
}

const headers = { authorization: auth, 'content-type': 'application/json' };

/** Takes away on both servers what a request was about. */
async function align(agent: Agent, both: readonly ReplayTarget[], { path }: FuzzRequest): Promise<void> {
  const [collection = ''] = path.split('?');
  const [, base] =
    /^(.*\/(?:namespaces\/fuzz\/)?(?:configmaps|secrets|pods|services|events|deployments|jobs|poddisruptionbudgets|roles|leases|nodes|things|customresourcedefinitions))/.exec(
      collection,
    ) ?? [];
  if (base === undefined) return;
  const names = isDefinition({ method: '', path, headers }) ? ['things.fuzz.example.com'] : ['x', 'y', 'z'];
  for (const target of both) {
    for (const name of names) {
      const object = `${base}/${name}`;
      const free = '{"metadata":{"finalizers":null}}';
      const merge = { ...headers, 'content-type': 'application/merge-patch+json' };
      if (!isDefinition({ method: '', path, headers })) {
        await send(agent, target, { method: 'PATCH', path: object, headers: merge, body: free });
      }
      const options = '{"gracePeriodSeconds":0,"propagationPolicy":"Background"}';
      await send(agent, target, { method: 'DELETE', path: object, headers, body: options });
    }
  }
  if (isDefinition({ method: '', path, headers })) {
    for (const target of both) await gone(agent, target, `${base}/things.fuzz.example.com`);
  }
}

/** Waits until a definition is gone, with all that was of its kind. */
async function gone(agent: Agent, target: ReplayTarget, path: string): Promise<void> {
  for (let i = 0; i < 100; i++) {
    const answer = await send(agent, target, { method: 'GET', path, headers });
    if (answer?.code === 404) return;
    await clock.sleep(50);
  }
}

/** Waits until what the server serves is what is defined. */
async function served(agent: Agent, target: ReplayTarget): Promise<void> {
  const definition = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.fuzz.example.com';
  const wanted = (await send(agent, target, { method: 'GET', path: definition, headers }))?.code === 200;
  for (let i = 0; i < 100; i++) {
    const found = await send(agent, target, {
      method: 'GET',
      path: `/apis/fuzz.example.com/v1/namespaces/${namespace}/things`,
      headers,
    });
    if ((found?.code === 200) === wanted) return;
    await clock.sleep(50);
  }
}
