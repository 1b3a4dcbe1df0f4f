// SPDX-License-Identifier: Apache-2.0
// `kubectl logs` as its requests: the refusals were read off kube-apiserver 1.36 and its kubelet's source.
import { Agent, request } from 'node:https';
import { afterEach, expect, test } from 'vitest';
import { VirtualClock } from '../../base/clock.ts';
import { SeededRandom } from '../../base/random.ts';
import type { Pod } from '../../kube/kinds.ts';
import { ApiServer } from '../api-server.ts';
import { aPod } from '../testing/objects.ts';
import { LogBuffer } from './log-buffer.ts';

const cleanUp: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const clean of cleanUp.splice(0)) await clean();
});

const start = Date.UTC(2026, 0, 1);

/** A server with the pod `web`, whose container `app` has written three lines, a minute apart. */
async function world() {
  const clock = new VirtualClock(start);
  const log = new LogBuffer({ now: () => clock.now(), maxBytes: 1000 });
  const server = new ApiServer({
    clock,
    random: new SeededRandom(1),
    tokens: { admin: { username: 'admin', groups: ['system:masters'] } },
    logs: ({ metadata }, container) => (metadata.name === 'web' && container === 'app' ? log : undefined),
  });
  cleanUp.push(() => server.close());
  const transport = server.transport();
  const put = async (pod: Pod, state?: object): Promise<void> => {
    const path = '/api/v1/namespaces/default/pods';
    await transport.request({ method: 'POST', path, body: pod });
    if (!state) return;
    const containerStatuses = [{ name: 'app', ready: true, restartCount: 0, image: 'app', imageID: '', state }];
    const status = await transport.request({
      method: 'PATCH',
      path: `${path}/${pod.metadata.name}/status`,
      contentType: 'application/merge-patch+json',
      body: { status: { containerStatuses } },
    });
    expect(status.status).toBe(200);
  };
  await put(aPod('web', { node: 'n' }), { running: { startedAt: '2026-01-01T00:00:00Z' } });
  for (const word of ['one', 'two', 'three']) {
    log.write(`${word}\n`);
    await clock.step(60_000);
  }
  const get = async (query: string): Promise<string> => {
    const url = new URL(`http://x/${query}`);
    const path = `/api/v1/namespaces/default/pods${url.pathname}`;
    const answer = await transport.request({ method: 'GET', path, query: Object.fromEntries(url.searchParams) });
    const body = answer.body as string | { message: string; reason: string };
    return typeof body === 'string' ? body : `${answer.status} ${body.reason}: ${body.message}`;
  };
  return { server, clock, log, put, get };
}

test.each([
  ['', 'one\ntwo\nthree\n'],
  ['container=app', 'one\ntwo\nthree\n'],
  ['tailLines=2', 'two\nthree\n'],
  ['tailLines=0', ''],
  ['sinceSeconds=130', 'two\nthree\n'],
  ['sinceTime=2026-01-01T00:02:00Z', 'three\n'],
  ['tailLines=1&timestamps=true', '2026-01-01T00:02:00.000000000Z three\n'],
  ['limitBytes=5', 'one\nt'],
  // In process a request has one answer.
  ['follow=true', 'one\ntwo\nthree\n'],
])('shows what is asked for with ?%s', async (query, expected) => {
  const { get } = await world();
  expect(await get(`web/log?${query}`)).toBe(expected);
});

const invalid = '422 Invalid: PodLogOptions "web" is invalid: ';
test.each([
  ['web/log?tailLines=-1', `${invalid}tailLines: Invalid value: -1: must be greater than or equal to 0`],
  ['web/log?limitBytes=0', `${invalid}limitBytes: Invalid value: 0: must be greater than 0`],
  ['web/log?sinceSeconds=0', `${invalid}sinceSeconds: Invalid value: 0: must be greater than 0`],
  [
    'web/log?sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z',
    `${invalid}[]: Forbidden: at most one of \`sinceTime\` or \`sinceSeconds\` may be specified`,
  ],
  ['web/log?stream=Stdout', `${invalid}stream: Forbidden: may not be specified`],
  ['web/log?tailLines=abc', '400 BadRequest: strconv.ParseInt: parsing "abc": invalid syntax'],
  ['web/log?tailLines=', '400 BadRequest: strconv.ParseInt: parsing "": invalid syntax'],
  [
    'web/log?sinceTime=abc',
    '400 BadRequest: parsing time "abc" as "2006-01-02T15:04:05Z07:00": cannot parse "abc" as "2006"',
  ],
  ['none/log', '404 NotFound: pods "none" not found'],
  ['web/log?container=z', '400 BadRequest: container z is not valid for pod web'],
  ['two/log', '400 BadRequest: a container name must be specified for pod two, choose one of: [i a b]'],
  ['two/log?container=a', ''],
  ['web/log?previous=true', '400 BadRequest: previous terminated container "app" in pod "web" not found'],
  ['new/log', '400 BadRequest: container "app" in pod "new" is waiting to start: ContainerCreating'],
  ['bare/log', '400 BadRequest: container "app" in pod "bare" is not available'],
  [
    'fake/log',
    '501 NotImplemented: container "app" in pod "fake" has no log: the embedded cluster only pretends to run it',
  ],
])('answers %s as a real one does', async (path, expected) => {
  const { put, get } = await world();
  await put(
    aPod('two', {
      spec: {
        initContainers: [{ name: 'i', image: 'i' }],
        containers: ['a', 'b'].map((name) => ({ name, image: 'i' })),
      },
    }),
  );
  await put(aPod('bare', { node: 'n' }));
  await put(aPod('new', { node: 'n' }), { waiting: { reason: 'ContainerCreating' } });
  await put(aPod('fake', { node: 'n' }), { running: {} });
  expect(await get(path)).toBe(expected);
});

/** Follows over HTTPS; `until` resolves when the text has come. */
async function follow(server: ApiServer, query: string) {
  const listener = await server.listen();
  const agent = new Agent({ ca: listener.certificateAuthority });
  let text = '';
  let told = (): void => undefined;
  const { promise: ended, resolve: end } = Promise.withResolvers<string>();
  const headers = { authorization: 'Bearer admin' };
  const path = `/api/v1/namespaces/default/pods/web/log?${query}`;
  const type = Promise.withResolvers<string | undefined>();
  const call = request(`${listener.url}${path}`, { agent, headers }, (response) => {
    type.resolve(response.headers['content-type']);
    response.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      told();
    });
    response.on('close', () => end(text));
    response.on('error', () => end(text));
  }).end();
  cleanUp.push(() => agent.destroy());
  const until = async (wanted: string): Promise<void> => {
    while (text !== wanted) await new Promise<void>((resolve) => (told = resolve));
  };
  return { until, ended, call, contentType: type.promise };
}

test('follows what is written until the container ends', async () => {
  const { server, log } = await world();
  const client = await follow(server, 'follow=true&tailLines=1');
  expect(await client.contentType).toBe('text/plain');
  await client.until('three\n');
  log.write('four\n');
  await client.until('three\nfour\n');
  log.write('five\nsix');
  log.end();
  expect(await client.ended).toBe('three\nfour\nfive\nsix\n');
});

test('follows no further than it may, and says so by its end', async () => {
  const { server, log } = await world();
  const client = await follow(server, 'follow=true&tailLines=0&limitBytes=7');
  await client.contentType;
  log.write('four\nfive\n');
  expect(await client.ended).toBe('four\nfi');
});

test('lets go of a reader that goes, and of all of them when the server ends', async () => {
  const { server, log } = await world();
  let listeners = 0;
  const onChange = log.onChange.bind(log);
  log.onChange = (listener) => {
    listeners++;
    const undo = onChange(listener);
    return () => {
      listeners--;
      undo();
    };
  };
  const one = await follow(server, 'follow=true');
  const other = await follow(server, 'follow=true');
  for (const client of [one, other]) await client.until('one\ntwo\nthree\n');
  expect(listeners).toBe(2);
  one.call.destroy();
  await expect.poll(() => listeners).toBe(1);
  await server.close();
  await other.ended;
  await expect.poll(() => listeners).toBe(0);
});

test('a reader that does not read misses lines, and costs no memory for them', async () => {
  const { log } = await world();
  const { followLog } = await import('./follow.ts');
  const options = { follow: true, previous: false, timestamps: false, tailLines: 0, limitBytes: undefined, since: 0 };
  const lines = followLog(log, options).lines()[Symbol.asyncIterator]();
  for (let i = 0; i < 10_000; i++) log.write(`line ${i}\n`);
  const { value } = (await lines.next()) as { value: Buffer };
  expect(String(value)).toMatch(/^line 98\d\d\n/);
  expect(String(value)).toMatch(/\nline 9999\n$/);
});
