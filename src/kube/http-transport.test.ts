// SPDX-License-Identifier: Apache-2.0
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Credentials, HttpTransport, type HttpTransportOptions } from './http-transport.ts';
import type { WatchEvent } from './object.ts';
import { type TestAuthority, testAuthority } from './testing/certificates.ts';
import { collect } from './testing/collect.ts';
import { isWatchStream, type WatchStream } from './transport.ts';

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

async function serve(listener: RequestListener, options: Partial<HttpTransportOptions> = {}) {
  const port = await listen(createServer(listener));
  return { port, transport: transportTo(`http://127.0.0.1:${port}`, options) };
}

function transportTo(server: string, options: Partial<HttpTransportOptions> = {}): HttpTransport {
  const transport = new HttpTransport({ server, ...options });
  open.push(() => transport.close());
  return transport;
}

function json(response: ServerResponse, body: unknown, status = 200, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  return Buffer.concat(await collect(request as AsyncIterable<Buffer>)).toString();
}

function streamOf(answer: Awaited<ReturnType<HttpTransport['watch']>>): WatchStream {
  if (!isWatchStream(answer)) throw new Error(`the watch was refused with ${answer.status}`);
  return answer;
}

const get = { method: 'GET', path: '/api/v1/pods' } as const;

describe('requests', () => {
  test('carry method, path, query, headers and body, and bring back the answer', async () => {
    const seen: unknown[] = [];
    const { transport } = await serve(
      (request, response) => {
        void bodyOf(request).then((body) => {
          const { accept, authorization, 'content-type': type, 'user-agent': agent } = request.headers;
          seen.push({ method: request.method, url: request.url, accept, authorization, type, agent, body });
          json(response, { ok: true, text: 'grüß 🌍' }, 201, { 'retry-after': '5' });
        });
      },
      {
        userAgent: 'karpenter/1.0',
        credentials: { current: async () => ({ authorization: 'Bearer t' }), rejected: () => {} },
      },
    );
    const answer = await transport.request({
      method: 'PATCH',
      path: '/apis/apps/v1/namespaces/a%20b/deployments/d',
      query: { fieldManager: 'a b&c=d' },
      body: { spec: 'ü' },
      contentType: 'application/apply-patch+yaml',
    });
    expect(answer).toMatchObject({ status: 201, body: { ok: true, text: 'grüß 🌍' } });
    expect(answer.headers).toMatchObject({ 'retry-after': '5' });
    expect(seen).toEqual([
      {
        method: 'PATCH',
        url: '/apis/apps/v1/namespaces/a%20b/deployments/d?fieldManager=a+b%26c%3Dd',
        accept: 'application/json',
        authorization: 'Bearer t',
        type: 'application/apply-patch+yaml',
        agent: 'karpenter/1.0',
        body: '{"spec":"ü"}',
      },
    ]);
  });

  test('keep the path of the server, and the headers for everyone', async () => {
    const port = await listen(
      createServer((request, response) => json(response, [request.url, request.headers['impersonate-group']])),
    );
    const transport = transportTo(`http://127.0.0.1:${port}/k8s/clusters/c-1/`, {
      headers: { 'impersonate-group': ['a', 'b'] },
    });
    expect((await transport.request(get)).body).toEqual(['/k8s/clusters/c-1/api/v1/pods', 'a, b']);
  });

  test('give text as text and failures as answers', async () => {
    const { transport } = await serve((request, response) => {
      if (request.url === '/log') response.writeHead(200, { 'content-type': 'text/plain' }).end('line 1\n');
      else if (request.url === '/empty') response.writeHead(200).end();
      else if (request.url === '/bad') response.writeHead(500, { 'content-type': 'application/json' }).end('{oops');
      else json(response, { kind: 'Status', code: 404 }, 404);
    });
    expect((await transport.request({ method: 'GET', path: '/log', accept: '*/*' })).body).toBe('line 1\n');
    expect((await transport.request({ method: 'GET', path: '/empty' })).body).toBeUndefined();
    expect(await transport.request({ method: 'GET', path: '/bad' })).toMatchObject({ status: 500, body: '{oops' });
    expect(await transport.request(get)).toMatchObject({ status: 404, body: { kind: 'Status' } });
  });

  test('a success that is not JSON is an error', async () => {
    const { transport } = await serve((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"items":[');
    });
    await expect(transport.request(get)).rejects.toMatchObject({ code: 'KRP_MALFORMED_ANSWER' });
  });

  test('reuse connections', async () => {
    const ports = new Set<number | undefined>();
    const { transport } = await serve((request, response) => {
      ports.add(request.socket.remotePort);
      json(response, {});
    });
    for (let i = 0; i < 20; i++) await transport.request(get);
    // A connection is free again a moment after its answer was read: a second one may have helped out.
    expect(ports.size).toBeLessThanOrEqual(2);
  });

  test('open no more connections than allowed', async () => {
    let now = 0;
    let most = 0;
    const { transport } = await serve(
      (_, response) => {
        most = Math.max(most, ++now);
        setImmediate(() => {
          now--;
          json(response, {});
        });
      },
      { maxConnections: 3 },
    );
    await Promise.all(Array.from({ length: 30 }, () => transport.request(get)));
    expect(most).toBeLessThanOrEqual(3);
  });

  test('say why the server could not be reached', async () => {
    const port = await listen(createServer());
    await open.pop()!();
    const transport = transportTo(`http://127.0.0.1:${port}`);
    await expect(transport.request(get)).rejects.toMatchObject({
      code: 'KRP_CONNECTION_REFUSED',
      failure: 'refused',
      message: expect.stringContaining(`http://127.0.0.1:${port}`) as string,
    });
    await expect(transportTo('http://does-not-exist.invalid').request(get)).rejects.toMatchObject({
      failure: 'refused',
    });
  });

  test('say when the connection broke or nothing came', async () => {
    const { port, transport } = await serve((request, response) => {
      if (request.url === '/cut') request.socket.destroy();
      else if (request.url === '/half') {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' }).write('{"a":');
        setImmediate(() => request.socket.destroy());
      }
    });
    await expect(transport.request({ method: 'GET', path: '/cut' })).rejects.toMatchObject({ failure: 'broken' });
    await expect(transport.request({ method: 'GET', path: '/half' })).rejects.toMatchObject({ failure: 'broken' });
    const impatient = transportTo(`http://127.0.0.1:${port}`, { requestTimeoutMs: 100 });
    await expect(impatient.request({ method: 'GET', path: '/silent' })).rejects.toMatchObject({ failure: 'timeout' });
  });

  test('end when told to, before and during', async () => {
    const arrived = Promise.withResolvers<void>();
    const { transport } = await serve(() => arrived.resolve());
    const stop = new AbortController();
    const result = expect(transport.request({ ...get, signal: stop.signal })).rejects.toThrow('enough');
    await arrived.promise;
    stop.abort(new Error('enough'));
    await result;
    await expect(transport.request({ ...get, signal: stop.signal })).rejects.toThrow('enough');
    await expect(transport.watch({ ...get, signal: stop.signal })).rejects.toThrow('enough');
  });

  test('end when told to while the answer is under way, or the credentials are', async () => {
    const { transport, port } = await serve((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).write('{"items":[');
    });
    const stop = new AbortController();
    const half = transport.request({ ...get, signal: stop.signal });
    const slow = transportTo(`http://127.0.0.1:${port}`, {
      credentials: { current: () => new Promise(() => undefined), rejected: () => {} },
    });
    const waiting = slow.request({ ...get, signal: stop.signal });
    const results = Promise.allSettled([half, waiting]);
    await new Promise((resolve) => setImmediate(resolve));
    stop.abort(new Error('enough'));
    expect((await results).map((result) => result.status === 'rejected' && (result.reason as Error).message)).toEqual([
      'enough',
      'enough',
    ]);
  });

  test('tell the credentials that they were rejected', async () => {
    let token = 'old';
    const credentials: Credentials = {
      current: async () => ({ authorization: `Bearer ${token}` }),
      rejected: () => (token = 'new'),
    };
    const { transport } = await serve(
      (request, response) => json(response, {}, request.headers.authorization === 'Bearer new' ? 200 : 401),
      { credentials },
    );
    expect((await transport.request(get)).status).toBe(401);
    expect((await transport.request(get)).status).toBe(200);
  });

  test('fail with the reason when there are no credentials to be had', async () => {
    const { transport } = await serve((_, response) => json(response, {}), {
      credentials: { current: () => Promise.reject(new Error('aws: command not found')), rejected: () => {} },
    });
    await expect(transport.request(get)).rejects.toThrow('aws: command not found');
  });

  test.each(['', 'localhost:6443', 'ftp://x', '/path'])('refuse the server address %j', (server) => {
    expect(() => new HttpTransport({ server })).toThrow('is not the http(s) URL of an API server');
  });
});

describe('watches', () => {
  const event = (name: string): WatchEvent => ({ type: 'ADDED', object: { metadata: { name } } });

  test('deliver events as they come, whatever the chunks', async () => {
    const { transport } = await serve((request, response) => {
      expect(request.url).toBe('/api/v1/pods?resourceVersion=5&watch=true');
      response.writeHead(200, { 'content-type': 'application/json' });
      const bytes = Buffer.from(`${JSON.stringify(event('grüß'))}\n${JSON.stringify(event('🌍'))}\n`);
      let sent = 0;
      const next = (): void => {
        if (sent >= bytes.length) return void response.end();
        response.write(bytes.subarray(sent, (sent += 3)));
        setImmediate(next);
      };
      next();
    });
    const stream = streamOf(await transport.watch({ ...get, query: { resourceVersion: '5' } }));
    const names = (await collect(stream)).map((each) => each.object.metadata.name);
    expect(names).toEqual(['grüß', '🌍']);
  });

  test('resolve to the answer when refused', async () => {
    const { transport } = await serve((_, response) => json(response, { kind: 'Status' }, 410));
    expect(await transport.watch(get)).toMatchObject({ status: 410, body: { kind: 'Status' } });
  });

  async function endless(options: Partial<HttpTransportOptions> = {}) {
    const sockets: Socket[] = [];
    const closed = Promise.withResolvers<void>();
    const { transport } = await serve((request, response) => {
      sockets.push(request.socket);
      request.socket.once('close', () => closed.resolve());
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write(`${JSON.stringify(event('a'))}\n`);
    }, options);
    return { transport, sockets, closed: closed.promise };
  }

  test('end quietly when closed, and let go of the connection', async () => {
    const { transport, closed } = await endless();
    const stream = streamOf(await transport.watch(get));
    const seen: string[] = [];
    for await (const { object } of stream) {
      seen.push(object.metadata.name!);
      stream.close();
    }
    expect(seen).toEqual(['a']);
    await closed;
  });

  test('let go of the connection when the reader stops', async () => {
    const { transport, closed } = await endless();
    for await (const _ of streamOf(await transport.watch(get))) break;
    await closed;
  });

  test('closed before anybody reads, it lets go as well', async () => {
    const { transport, closed } = await endless();
    const stream = streamOf(await transport.watch(get));
    stream.close();
    stream.close();
    await closed;
    expect(await collect(stream)).toEqual([]);
  });

  test('throw when the connection breaks', async () => {
    const { transport, sockets } = await endless();
    const stream = streamOf(await transport.watch(get));
    await expect(async () => {
      for await (const _ of stream) sockets[0]!.destroy();
    }).rejects.toMatchObject({ failure: 'broken' });
  });

  test('throw when the server falls silent', async () => {
    const { transport } = await endless({ watchIdleTimeoutMs: 100 });
    const stream = streamOf(await transport.watch({ ...get, query: { allowWatchBookmarks: 'true' } }));
    await expect(collect(stream)).rejects.toMatchObject({ failure: 'timeout' });
  });

  test('throw the reason when aborted', async () => {
    const { transport, closed } = await endless();
    const stop = new AbortController();
    const stream = streamOf(await transport.watch({ ...get, signal: stop.signal }));
    await expect(async () => {
      for await (const _ of stream) stop.abort(new Error('enough'));
    }).rejects.toThrow('enough');
    await closed;
  });

  test('throw on a line that is no event', async () => {
    const { transport } = await serve((_, response) => response.writeHead(200).end('{"type":"ADDED","obj\n'));
    await expect(collect(streamOf(await transport.watch(get)))).rejects.toMatchObject({ failure: 'malformed' });
  });

  test('do not use up the connections of requests', async () => {
    const { transport } = await serve(
      (request, response) => {
        if (request.url?.includes('watch=true')) response.writeHead(200).flushHeaders();
        else json(response, {});
      },
      { maxConnections: 1 },
    );
    const streams = await Promise.all([1, 2, 3].map(async () => streamOf(await transport.watch(get))));
    expect((await transport.request(get)).status).toBe(200);
    for (const stream of streams) stream.close();
  });
});

describe('TLS', () => {
  let authority: TestAuthority;
  beforeAll(() => {
    authority = testAuthority();
  });

  async function tlsServer(hosts: { dns?: string[]; ip?: string[] } = { ip: ['127.0.0.1'] }): Promise<string> {
    const identity = authority.issue('server', hosts);
    const server = createTlsServer(
      { ...identity, ca: authority.ca, requestCert: true, rejectUnauthorized: false },
      (request, response) => {
        const { subject } = (request.socket as TLSSocket).getPeerCertificate();
        json(response, { client: subject?.CN ?? null });
      },
    );
    return `https://127.0.0.1:${await listen(server)}`;
  }

  test('trusts the authority it was given and nobody else', async () => {
    const server = await tlsServer();
    expect((await transportTo(server, { ca: authority.ca }).request(get)).status).toBe(200);
    await expect(transportTo(server).request(get)).rejects.toMatchObject({
      failure: 'untrusted',
      message: expect.stringContaining('certificate authority') as string,
    });
    const other = testAuthority();
    await expect(transportTo(server, { ca: other.ca }).request(get)).rejects.toMatchObject({ failure: 'untrusted' });
  });

  test('checks the name, that of the address or the one it was told', async () => {
    const server = await tlsServer({ dns: ['kubernetes'] });
    await expect(transportTo(server, { ca: authority.ca }).request(get)).rejects.toMatchObject({
      failure: 'untrusted',
    });
    const named = transportTo(server, { ca: authority.ca, serverName: 'kubernetes' });
    expect((await named.request(get)).status).toBe(200);
  });

  test('skips the check only when told to', async () => {
    const server = await tlsServer({ dns: ['other'] });
    expect((await transportTo(server, { insecureSkipTlsVerify: true }).request(get)).status).toBe(200);
  });

  test('shows its certificate, and the new one after it was renewed', async () => {
    const server = await tlsServer();
    const fixed = transportTo(server, { ca: authority.ca, certificate: authority.issue('alice') });
    expect((await fixed.request(get)).body).toEqual({ client: 'alice' });
    let certificate = authority.issue('bob');
    const renewing = transportTo(server, {
      ca: authority.ca,
      credentials: { current: async () => ({ certificate }), rejected: () => {} },
    });
    expect((await renewing.request(get)).body).toEqual({ client: 'bob' });
    certificate = authority.issue('carol');
    expect((await renewing.request(get)).body).toEqual({ client: 'carol' });
  });

  test('goes through a proxy', async () => {
    const server = await tlsServer();
    const tunnels: string[] = [];
    const proxy = createServer();
    proxy.on('connect', (request, socket: Socket) => {
      tunnels.push(`${request.url} ${request.headers['proxy-authorization']}`);
      const [host, port] = request.url!.split(':');
      const upstream = connect(Number(port), host, () => {
        socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
        upstream.pipe(socket).pipe(upstream);
      });
      for (const end of [upstream, socket]) end.on('error', () => undefined);
    });
    const proxyUrl = `http://user:p%40ss@127.0.0.1:${await listen(proxy)}`;
    const transport = transportTo(server, { ca: authority.ca, proxyUrl });
    expect((await transport.request(get)).status).toBe(200);
    const host = server.replace('https://', '');
    expect(tunnels).toEqual([`${host} Basic ${Buffer.from('user:p@ss').toString('base64')}`]);
    expect(() => transportTo(server, { proxyUrl: 'gopher://x' })).toThrow('is not a proxy URL');
  });

  async function socksProxy(answer: { user?: string; reply?: number } = {}): Promise<{ url: string; asked: string[] }> {
    const asked: string[] = [];
    const serveOne = async (socket: Socket): Promise<void> => {
      const next = async (): Promise<Buffer> => ((await once(socket, 'data')) as [Buffer])[0];
      await next();
      socket.write(Buffer.from([5, answer.user ? 2 : 0]));
      if (answer.user) {
        const login = await next();
        const user = login.subarray(2, 2 + login[1]!).toString();
        socket.write(Buffer.from([1, user === answer.user ? 0 : 1]));
      }
      const request = await next();
      const isName = request[3] === 3;
      const end = isName ? 5 + request[4]! : 8;
      const host = isName ? request.subarray(5, end).toString() : request.subarray(4, end).join('.');
      asked.push(`${host}:${request.readUInt16BE(end)}`);
      if (answer.reply) return void socket.end(Buffer.from([5, answer.reply, 0, 1, 0, 0, 0, 0, 0, 0]));
      const upstream = connect(request.readUInt16BE(end), host, () => {
        // In two pieces: a reader must wait for the whole of it.
        socket.write(Buffer.from([5, 0, 0, 1]));
        setImmediate(() => {
          socket.write(Buffer.from([0, 0, 0, 0, 0, 0]));
          upstream.pipe(socket).pipe(upstream);
        });
      });
      upstream.on('error', () => undefined);
      socket.on('close', () => upstream.destroy());
    };
    const sockets = new Set<Socket>();
    const proxy = createTcpServer((socket) => {
      sockets.add(socket.on('error', () => undefined));
      void serveOne(socket);
    });
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    open.push(async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => proxy.close(resolve));
    });
    return { url: `socks5://me:secret@127.0.0.1:${(proxy.address() as AddressInfo).port}`, asked };
  }

  test.each([{}, { user: 'me' }])('goes through a SOCKS5 proxy: %j', async (answer) => {
    const server = await tlsServer({ ip: ['127.0.0.1'], dns: ['kubernetes'] });
    const { url: proxyUrl, asked } = await socksProxy(answer);
    expect((await transportTo(server, { ca: authority.ca, proxyUrl }).request(get)).status).toBe(200);
    const local = server.replace('127.0.0.1', 'localhost');
    const named = transportTo(local, { ca: authority.ca, proxyUrl, serverName: 'kubernetes' });
    expect((await named.request(get)).status).toBe(200);
    expect(asked).toEqual([server.replace('https://', ''), local.replace('https://', '')]);
    await expect(transportTo(server, { proxyUrl }).request(get)).rejects.toMatchObject({ failure: 'untrusted' });
  });

  test('says what a SOCKS5 proxy says', async () => {
    const server = await tlsServer();
    const through = async (answer: { user?: string; reply?: number }) =>
      transportTo(server, { ca: authority.ca, proxyUrl: (await socksProxy(answer)).url }).request(get);
    await expect(through({ user: 'somebody else' })).rejects.toThrow('refused the user or the password');
    await expect(through({ reply: 4 })).rejects.toThrow(/could not connect to 127\.0\.0\.1:\d+: host unreachable/);
    await expect(through({ reply: 99 })).rejects.toMatchObject({
      failure: 'refused',
      message: expect.stringContaining('reply 99') as string,
    });
  });

  test('gives up on a SOCKS5 proxy that says nothing', async () => {
    const silent = createTcpServer((socket) => socket.on('error', () => undefined)).unref();
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    open.push(async () => void silent.close());
    const { port } = silent.address() as AddressInfo;
    const transport = transportTo('https://127.0.0.1:1', {
      proxyUrl: `socks5://127.0.0.1:${port}`,
      connectTimeoutMs: 50,
    });
    await expect(transport.request(get)).rejects.toThrow('the SOCKS proxy does not answer');
  });

  test('finds damaged certificates at once', () => {
    const server = 'https://127.0.0.1:1';
    expect(() => transportTo(server, { ca: 'not a certificate' })).not.toThrow();
    const { key } = authority.issue('x');
    expect(() => transportTo(server, { certificate: { cert: 'damaged', key } })).toThrow(
      'the certificate authority or the client certificate for https://127.0.0.1:1 cannot be used',
    );
    expect(() => transportTo(server, { certificate: { cert: authority.issue('y').cert, key } })).toThrow(
      'cannot be used',
    );
  });
});
