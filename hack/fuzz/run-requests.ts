// SPDX-License-Identifier: Apache-2.0
// Hostile requests against the embedded API server. It must answer each with what a real one could say, within seconds,
// and neither die nor grow. Exit code 1 and the request when it does not.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent } from 'undici';
import { RealClock } from '../../src/base/clock.ts';
import { SeededRandom } from '../../src/base/random.ts';
import { Chance } from './chance.ts';
import { problemWith } from './judge.ts';
import { fuzzOptions } from './options.ts';
import { type FuzzRequest, namespace, nextRequest } from './requests.ts';

const { seed, seconds, count } = fuzzOptions();
const clock = new RealClock();
/** Nobody waits longer than this, however busy the machine is. */
const longest = 60_000;
/** What the server may compute on one answer; a busy machine makes it late, not busy. */
const mostWork = 3000;
const late = 1000;
const parallel = 8;
/** What a run may leave behind after everything it made was deleted. */
const mostGrowth = 128 * 1024 * 1024;

console.log(`fuzz: requests, seed ${seed}`);

const child = fork(new URL('server.ts', import.meta.url), { execArgv: ['--expose-gc', '--max-old-space-size=1024'] });
const [{ url }] = (await once(child, 'message')) as [{ url: string }];
// A connection for each request: hostile ones leave theirs in any state.
const agent = new Agent({ connect: { rejectUnauthorized: false, timeout: longest }, pipelining: 0, connections: null });
const chance = new Chance(new SeededRandom(seed));
const codes = new Map<number, number>();
let failure: string | undefined;
const underWay = new Set<FuzzRequest>();
let sent = 0;
let slowest = 0;
let busiest = 0;

child.on('exit', (code, signal) => fail(`the server died (${code ?? signal})`));

function fail(what: string, request?: FuzzRequest): void {
  failure ??= request === undefined ? what : `${what}\n${JSON.stringify(request).slice(0, 4000)}`;
}

async function send(request: FuzzRequest): Promise<{ status: number; contentType: string; body: string }> {
  const stop = new AbortController();
  const silence = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    silence.reject(new Error(`silent for ${longest} ms`));
    stop.abort();
  }, longest);
  try {
    return await Promise.race([exchange(request, stop.signal), silence.promise]);
  } finally {
    clearTimeout(timer);
  }
}

async function exchange(
  request: FuzzRequest,
  signal: AbortSignal,
): Promise<{ status: number; contentType: string; body: string }> {
  const { method, path, headers, body } = request;
  const answer = await agent.request({
    origin: url,
    method: method as 'GET',
    path,
    headers,
    ...(body === undefined ? {} : { body }),
    signal,
  });
  const contentType = [answer.headers['content-type'] ?? ''].flat().join();
  if (/[?&]watch=/.test(path) && answer.statusCode === 200) {
    answer.body.on('error', () => {});
    answer.body.destroy();
    return { status: 200, contentType, body: '' };
  }
  return { status: answer.statusCode, contentType, body: await answer.body.text() };
}

async function judged(request: FuzzRequest): Promise<void> {
  const started = clock.monotonic();
  underWay.add(request);
  try {
    const { status, contentType, body } = await send(request);
    codes.set(status, (codes.get(status) ?? 0) + 1);
    const problem = problemWith(status, contentType, body);
    if (problem !== undefined) fail(problem, request);
  } catch (error) {
    // A request that the client itself cannot send says nothing about the server.
    if (!/invalid|Invalid/.test(String(error))) {
      // The one that keeps the server busy need not be the one that found out.
      const others = [...underWay].map((each) => JSON.stringify(each).slice(0, 1500)).join('\n');
      fail(`no answer: ${String(error)}; under way:\n${others}`);
    }
  } finally {
    underWay.delete(request);
  }
  const took = clock.monotonic() - started;
  slowest = Math.max(slowest, took);
  if (took > late) await judgeWork(started, request);
}

/** One question after the other: answers do not say what they answer. */
let asked: Promise<unknown> = Promise.resolve();
function ask(server: ChildProcess, question: 'heap' | 'cpu'): Promise<number> {
  const answer = asked.then(async () => {
    server.send(question);
    const [answers] = (await once(server, 'message')) as [Record<string, number>];
    return answers[question]!;
  });
  asked = answer.catch(() => undefined);
  return answer;
}

/** What the server had computed at times before; a blocked one answers when it is free again. */
const work: { readonly at: number; readonly cpu: number }[] = [];
async function measureWork(): Promise<number> {
  const at = clock.monotonic();
  const cpu = await ask(child, 'cpu');
  work.push({ at, cpu });
  if (work.length > 600) work.shift();
  return cpu;
}

/** A late answer is the server's fault when it was the server that computed all the while. */
async function judgeWork(started: number, request: FuzzRequest): Promise<void> {
  const before = work.findLast(({ at }) => at <= started)?.cpu ?? 0;
  const spent = (await measureWork()) - before;
  busiest = Math.max(busiest, spent);
  if (spent <= mostWork) return;
  const others = [...underWay].map((each) => JSON.stringify(each).slice(0, 1500)).join('\n');
  fail(`the server computed for ${Math.round(spent)} ms before it answered; under way:\n${others}`, request);
}

const headers = { authorization: 'Bearer fuzz', 'content-type': 'application/json' };
const admin = (method: string, path: string, body?: object) =>
  send({ method, path, headers, ...(body ? { body: JSON.stringify(body) } : {}) });

/** Deletes all that the run made, whatever finalizers it gave it. */
async function cleanUp(): Promise<void> {
  const collections = ['configmaps', 'secrets', 'pods', 'services', 'events'].map(
    (plural) => `/api/v1/namespaces/${namespace}/${plural}`,
  );
  collections.push('/api/v1/nodes', `/apis/fuzz.example.com/v1/namespaces/${namespace}/things`);
  for (const [group, plural] of [
    ['apps', 'deployments'],
    ['batch', 'jobs'],
    ['policy', 'poddisruptionbudgets'],
    ['rbac.authorization.k8s.io', 'roles'],
    ['coordination.k8s.io', 'leases'],
  ]) {
    collections.push(`/apis/${group}/v1/namespaces/${namespace}/${plural}`);
  }
  for (const path of collections) {
    const { status, body } = await admin('GET', path);
    if (status !== 200) continue;
    const { items } = JSON.parse(body) as { items: { metadata: { name: string; finalizers?: string[] } }[] };
    for (const { metadata } of items) {
      const target = `${path}/${encodeURIComponent(metadata.name)}`;
      await send({
        method: 'PATCH',
        path: target,
        headers: { ...headers, 'content-type': 'application/merge-patch+json' },
        body: '{"metadata":{"finalizers":null}}',
      });
      await admin('DELETE', target, { gracePeriodSeconds: 0, propagationPolicy: 'Background' });
    }
  }
  await admin('DELETE', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.fuzz.example.com');
}

await admin('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
const before = await ask(child, 'heap');
const end = clock.monotonic() + seconds * 1000;
await measureWork();
const measuring = setInterval(() => void measureWork(), 200);
await Promise.all(
  Array.from({ length: parallel }, async () => {
    while (failure === undefined && sent < count && clock.monotonic() < end) {
      sent++;
      await judged(nextRequest(chance));
    }
  }),
);
clearInterval(measuring);
if (failure === undefined) {
  await cleanUp();
  const { status } = await admin('GET', '/readyz');
  if (status !== 200) fail(`the server is not ready any more: ${status}`);
  const growth = (await ask(child, 'heap')) - before;
  if (growth > mostGrowth) fail(`the server grew by ${Math.round(growth / 1024 / 1024)} MiB`);
  console.log(
    `fuzz: ${sent} requests, slowest ${Math.round(slowest)} ms, busiest ${Math.round(busiest)} ms, heap ${Math.round(growth / 1024)} KiB more`,
  );
  console.log(
    `fuzz: ${[...codes]
      .sort(([a], [b]) => a - b)
      .map(([code, count]) => `${code}×${count}`)
      .join(' ')}`,
  );
}
child.removeAllListeners('exit');
child.kill();
await agent.destroy();
if (failure !== undefined) {
  console.error(`fuzz: FAILED with seed ${seed} after ${sent} requests\n${failure}`);
  process.exit(1);
}
