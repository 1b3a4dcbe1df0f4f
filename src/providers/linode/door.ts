// SPDX-License-Identifier: Apache-2.0
// The one door to the Linode API: a request goes in, an answer of any status comes out. Over HTTP in production; the
// emulated API is one as it is.
import { readFileSync } from 'node:fs';
import { Pool } from 'undici';

/** One HTTP request; `path` begins with the version. Header names are in lower case. */
export interface LinodeRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface LinodeResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Text, as it came. */
  readonly body: string;
}

export interface LinodeDoor {
  /** Rejects when no answer came: then nobody knows whether the request was carried out. */
  handle(request: LinodeRequest, signal?: AbortSignal): Promise<LinodeResponse>;
}

export interface HttpDoorOptions {
  /** Without the version. */
  readonly url: string;
  /** File with certificate authorities; '' for those of the runtime. */
  readonly ca: string;
  readonly timeoutMs: number;
}

/** As many calls at a time as the API takes from one client without queueing them. */
const connections = 20;
/** No answer of the API is near it. */
const largestAnswer = 64 * 1024 * 1024;

/** The Linode API over HTTP(S), TLS 1.2 or newer. Throws when the file of authorities cannot be read. */
export class HttpDoor implements LinodeDoor {
  readonly #pool: Pool;
  readonly #prefix: string;

  constructor({ url, ca, timeoutMs }: HttpDoorOptions) {
    const { origin, pathname } = new URL(url);
    this.#prefix = pathname.replace(/\/+$/, '');
    this.#pool = new Pool(origin, {
      connections,
      connect: { timeout: timeoutMs, minVersion: 'TLSv1.2', ...(ca === '' ? {} : { ca: readFileSync(ca, 'utf8') }) },
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      maxResponseSize: largestAnswer,
    });
  }

  async handle(request: LinodeRequest, signal?: AbortSignal): Promise<LinodeResponse> {
    const answer = await this.#pool.request({
      method: request.method as 'GET',
      path: `${this.#prefix}${request.path}`,
      headers: { ...request.headers },
      body: request.body ?? null,
      signal: signal ?? null,
    });
    const headers = Object.fromEntries(
      Object.entries(answer.headers).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value]],
      ),
    );
    return { status: answer.statusCode, headers, body: await answer.body.text() };
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }
}
