// SPDX-License-Identifier: Apache-2.0
// The API over HTTP: a port on loopback in front of the same function.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { messageOf } from '../../../base/errors.ts';
import type { ApiRequest, ApiResponse } from './exchange.ts';
import { ConnectionLost } from './faults.ts';

const largestBody = 1_000_000;

export class HttpDoor {
  readonly #server: Server;
  readonly #answer: (request: ApiRequest, signal: AbortSignal) => Promise<ApiResponse>;

  constructor(answer: (request: ApiRequest, signal: AbortSignal) => Promise<ApiResponse>) {
    this.#answer = answer;
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  async listen({ port = 0, host = '127.0.0.1' }): Promise<{ url: string; port: number }> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, resolve);
    });
    const { port: taken } = this.#server.address() as AddressInfo;
    return { url: `http://${host}:${taken}`, port: taken };
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.on('close', () => gone.abort(new DOMException('the client went away', 'AbortError')));
    try {
      const body = await read(request);
      const headers = Object.fromEntries(
        Object.entries(request.headers).map(([name, value]) => [
          name,
          Array.isArray(value) ? value.join(', ') : (value ?? ''),
        ]),
      );
      const { method = 'GET', url: path = '/' } = request;
      const answer = await this.#answer({ method, path, headers, body }, gone.signal);
      response.writeHead(answer.status, { ...answer.headers });
      response.end(answer.body);
    } catch (error) {
      if (error instanceof ConnectionLost || gone.signal.aborted) request.socket.destroy();
      else {
        response.writeHead(500, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ errors: [{ reason: messageOf(error) }] }));
      }
    }
  }
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > largestBody) throw new Error('the body is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
