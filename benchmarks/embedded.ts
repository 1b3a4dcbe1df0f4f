// SPDX-License-Identifier: Apache-2.0
// How fast the embedded API server is: creates, lists and watch fan-out in process, creates and watches over HTTPS,
// memory per stored pod.
import { Agent, request } from 'node:https';
import { RealClock, settle } from '../src/base/clock.ts';
import { SystemRandom } from '../src/base/random.ts';
import { ApiServer } from '../src/embedded/api-server.ts';
import type { HttpListener } from '../src/embedded/http.ts';
import { isWatchStream, type Transport } from '../src/kube/transport.ts';

interface Measurement {
  readonly name: string;
  readonly unit: string;
  readonly ours: number;
  readonly upstream: null;
  readonly ratio: null;
  readonly detail: string;
}

const pods = '/api/v1/namespaces/default/pods';
const token = 'benchmark';

/** A pod of about 1 KiB, as a Deployment would make it. */
function pod(name: string, revision = 0): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      labels: { app: 'web', 'pod-template-hash': '5d4f8c9b7', tier: 'frontend', revision: String(revision) },
      annotations: { 'example.com/checksum': '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef' },
      ownerReferences: [
        {
          apiVersion: 'example.com/v1',
          kind: 'Web',
          name: 'web-5d4f8c9b7',
          uid: '6a1f0c9e-0000-4000-8000-000000000000',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: {
      containers: [
        {
          name: 'web',
          image: 'registry.example.com/team/web:v1.2.3',
          args: ['--port=8080', '--log-level=info'],
          ports: [{ name: 'http', containerPort: 8080 }],
          env: [{ name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
          resources: { requests: { cpu: '250m', memory: '512Mi' }, limits: { memory: '512Mi' } },
          readinessProbe: { httpGet: { path: '/healthz', port: 'http' } },
        },
      ],
      tolerations: [{ key: 'dedicated', operator: 'Equal', value: 'web', effect: 'NoSchedule' }],
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: 'topology.kubernetes.io/zone',
          whenUnsatisfiable: 'ScheduleAnyway',
          labelSelector: { matchLabels: { app: 'web' } },
        },
      ],
    },
  };
}

function newServer(): ApiServer {
  return new ApiServer({
    clock: new RealClock(),
    random: new SystemRandom(),
    tokens: { [token]: { username: 'benchmark', groups: ['system:masters'] } },
  });
}

async function create(transport: Transport, count: number, prefix: string): Promise<void> {
  for (let i = 0; i < count; i++) {
    const { status } = await transport.request({ method: 'POST', path: pods, body: pod(`${prefix}-${i}`) });
    if (status !== 201) throw new Error(`a create was refused with ${status}`);
  }
}

async function creates(): Promise<Measurement[]> {
  const server = newServer();
  const transport = server.transport();
  await create(transport, 10_000, 'warm-up');
  const collect = (globalThis as { gc?: () => void }).gc;
  collect?.();
  const before = process.memoryUsage().heapUsed;
  const rounds: number[] = [];
  const perRound = 8000;
  for (let round = 0; round < 5; round++) {
    const start = performance.now();
    await create(transport, perRound, `pod-${round}`);
    rounds.push(perRound / ((performance.now() - start) / 1000));
  }
  const count = perRound * rounds.length;
  rounds.sort((a, b) => a - b);
  collect?.();
  const bytes = (process.memoryUsage().heapUsed - before) / count;
  const listStart = performance.now();
  const { body } = await transport.request({ method: 'GET', path: '/api/v1/pods' });
  const listMs = performance.now() - listStart;
  const listed = (body as { items: unknown[] }).items.length;
  const selectStart = performance.now();
  await transport.request({
    method: 'GET',
    path: '/api/v1/pods',
    query: { labelSelector: 'app=web,tier in (frontend)' },
  });
  const selectMs = performance.now() - selectStart;
  await server.close();
  return [
    measured(
      'embedded/creates',
      'creates/s',
      rounds[2]!,
      `median of ${rounds.length} rounds of ${perRound} pods of about 1 KiB, defaulted and validated, one after the other (${rounds.map((rate) => rate.toFixed(0)).join(', ')})`,
    ),
    measured('embedded/list-50000', 'ms', listMs, `${listed} pods, in process`),
    measured('embedded/list-50000-selected', 'ms', selectMs, `${listed} pods by label selector, in process`),
    measured(
      'embedded/memory-per-pod',
      'bytes',
      bytes,
      collect ? 'heap after a collection' : 'heap without a forced collection: an upper bound',
    ),
  ];
}

async function fanOut(): Promise<Measurement> {
  const watchers = 100;
  const rate = 1000;
  const seconds = 5;
  const server = newServer();
  const transport = server.transport();
  await create(transport, 100, 'pod');
  let seen = 0;
  let lastSeen = 0;
  const total = watchers * rate * seconds;
  const done = Promise.withResolvers<void>();
  const { revision } = server.store;
  for (let i = 0; i < watchers; i++) {
    const stream = await transport.watch({
      method: 'GET',
      path: '/api/v1/pods',
      query: { resourceVersion: String(revision) },
    });
    if (!isWatchStream(stream)) throw new Error('the watch was refused');
    void (async () => {
      for await (const event of stream) {
        void event;
        lastSeen = performance.now();
        if (++seen === total) done.resolve();
      }
    })();
  }
  const start = performance.now();
  let lastWrite = 0;
  for (let i = 0; i < rate * seconds; i++) {
    while (performance.now() - start < (i / rate) * 1000) await settle();
    const name = `pod-${i % 100}`;
    const { status } = await transport.request({
      method: 'PATCH',
      path: `${pods}/${name}`,
      contentType: 'application/merge-patch+json',
      body: { metadata: { labels: { revision: String(i + 1) } } },
    });
    if (status !== 200) throw new Error(`an update was refused with ${status}`);
    lastWrite = performance.now();
  }
  await done.promise;
  const wrote = ((rate * seconds) / (lastWrite - start)) * 1000;
  await server.close();
  return measured(
    'embedded/watch-lag',
    'ms',
    Math.max(0, lastSeen - lastWrite),
    `${watchers} watchers in process, ${Math.round(wrote)} updates/s for ${seconds} s; last event after last write`,
  );
}

/** One HTTPS connection pool, as a busy client has it. */
function httpClient(listener: HttpListener): {
  agent: Agent;
  send: (method: string, path: string, body?: object) => Promise<number>;
} {
  const agent = new Agent({ keepAlive: true, maxSockets: 16, ca: listener.certificateAuthority });
  const send = (method: string, path: string, body?: object): Promise<number> =>
    new Promise((resolve, reject) => {
      const text = body ? JSON.stringify(body) : undefined;
      const call = request(
        `${listener.url}${path}`,
        {
          method,
          agent,
          headers: {
            authorization: `Bearer ${token}`,
            ...(text
              ? {
                  'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
                  'content-length': Buffer.byteLength(text),
                }
              : {}),
          },
        },
        (response) => {
          response.resume();
          response.on('end', () => resolve(response.statusCode ?? 0));
        },
      );
      call.on('error', reject);
      call.end(text);
    });
  return { agent, send };
}

async function overHttps(): Promise<Measurement[]> {
  const server = newServer();
  const listener = await server.listen();
  const { agent, send } = httpClient(listener);
  let next = 0;
  const count = 5000;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const status = await send('POST', pods, pod(`pod-${next++}`));
      if (status !== 201) throw new Error(`a create was refused with ${status}`);
    }
  };
  const start = performance.now();
  const cpu = process.cpuUsage();
  await Promise.all(Array.from({ length: 16 }, worker));
  const rate = count / ((performance.now() - start) / 1000);
  const perCore = count / cpuSecondsSince(cpu);
  const watching = await httpsWatchers(listener, send, server.store.revision);
  agent.destroy();
  await server.close();
  const detail = '16 connections, client in the same process';
  return [
    measured('embedded/https-creates', 'creates/s', rate, detail),
    measured('embedded/https-creates-per-core', 'creates/CPU s', perCore, `${detail}, which counts as well`),
    ...watching,
  ];
}

/** Of this process, all its threads: what a busy machine does not change. */
function cpuSecondsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

async function httpsWatchers(
  listener: HttpListener,
  send: (method: string, path: string, body?: object) => Promise<number>,
  revision: number,
): Promise<Measurement[]> {
  const watchers = 20;
  const rate = 500;
  const seconds = 4;
  const total = watchers * rate * seconds;
  let seen = 0;
  let lastSeen = 0;
  const done = Promise.withResolvers<void>();
  const agent = new Agent({ ca: listener.certificateAuthority });
  for (let i = 0; i < watchers; i++) {
    await new Promise<void>((resolve, reject) => {
      const call = request(
        `${listener.url}/api/v1/pods?watch=true&resourceVersion=${revision}`,
        { agent, headers: { authorization: `Bearer ${token}` } },
        (response) => {
          resolve();
          response.on('data', (chunk: Buffer) => {
            for (const byte of chunk) if (byte === 10) seen++;
            lastSeen = performance.now();
            if (seen >= total) done.resolve();
          });
          response.on('error', () => undefined);
        },
      );
      call.on('error', reject);
      call.end();
    });
  }
  const start = performance.now();
  const cpu = process.cpuUsage();
  const clock = new RealClock();
  const pending: Promise<number>[] = [];
  for (let i = 0; i < rate * seconds; i++) {
    while (performance.now() - start < (i / rate) * 1000) await clock.sleep(1);
    pending.push(send('PATCH', `${pods}/pod-${i % 5000}`, { metadata: { labels: { revision: String(i + 1) } } }));
  }
  const statuses = await Promise.all(pending);
  if (statuses.some((status) => status !== 200)) throw new Error('an update was refused');
  const lastWrite = performance.now();
  await done.promise;
  const load = (cpuSecondsSince(cpu) / seconds) * 100;
  agent.destroy();
  const detail = `${watchers} watchers over HTTPS, ${rate} updates/s for ${seconds} s`;
  return [
    measured(
      'embedded/https-watch-lag',
      'ms',
      Math.max(0, lastSeen - lastWrite),
      `${detail}; last event after last answer`,
    ),
    measured('embedded/https-watch-load', '% of a core', load, `${detail}; server, writer and watchers together`),
  ];
}

function measured(name: string, unit: string, ours: number, detail: string): Measurement {
  return { name, unit, ours: Math.round(ours * 100) / 100, upstream: null, ratio: null, detail };
}

/** Runs all of them, one after the other. */
export async function benchmarkEmbedded(): Promise<Measurement[]> {
  return [...(await creates()), await fanOut(), ...(await overHttps())];
}
