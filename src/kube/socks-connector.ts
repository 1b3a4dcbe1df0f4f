// SPDX-License-Identifier: Apache-2.0
// Connections through a SOCKS5 proxy (RFC 1928, RFC 1929), as `ssh -D` opens one: the usual way to a private cluster.
// undici's own agent for it is experimental and warns about itself on stderr.
import { connect, isIPv4, type Socket } from 'node:net';
import { buildConnector } from 'undici';

const version = 5;
const noAuthentication = 0;
const userAndPassword = 2;
const replies = [
  '',
  'general failure',
  'not allowed by its rules',
  'network unreachable',
  'host unreachable',
  'connection refused',
  'time to live expired',
  'command not supported',
  'address type not supported',
];

/** A connector for undici that reaches every host through `proxy`; names are resolved by the proxy. */
export function socksConnector(
  proxy: URL,
  tls: buildConnector.BuildOptions,
  timeoutMs: number,
): buildConnector.connector {
  const upgrade = buildConnector({ ...tls, allowH2: false });
  const dial = async (...[options, callback]: Parameters<buildConnector.connector>): Promise<void> => {
    const isTls = options.protocol === 'https:';
    let socket: Socket;
    try {
      const port = Number(options.port) || (isTls ? 443 : 80);
      socket = await tunnel(proxy, options.hostname.replace(/^\[|\]$/g, ''), port, timeoutMs);
    } catch (error) {
      callback(error as Error, null);
      return;
    }
    if (isTls) upgrade({ ...options, httpSocket: socket }, callback);
    else callback(null, socket);
  };
  return (options, callback) => void dial(options, callback);
}

async function tunnel(proxy: URL, host: string, port: number, timeoutMs: number): Promise<Socket> {
  const socket = connect({
    host: proxy.hostname.replace(/^\[|\]$/g, ''),
    port: Number(proxy.port) || 1080,
    noDelay: true,
    timeout: timeoutMs,
  });
  const onTimeout = (): void => void socket.destroy(failure('does not answer'));
  socket.on('timeout', onTimeout);
  try {
    const read = reader(socket);
    const user = decodeURIComponent(proxy.username);
    const methods = user ? [noAuthentication, userAndPassword] : [noAuthentication];
    socket.write(Buffer.from([version, methods.length, ...methods]));
    const [, method] = await read(2);
    if (method === userAndPassword && user) {
      socket.write(Buffer.concat([Buffer.from([1]), counted(user), counted(decodeURIComponent(proxy.password))]));
      const [, refused] = await read(2);
      if (refused !== 0) throw failure('refused the user or the password');
    } else if (method !== noAuthentication) throw failure('wants an authentication that we do not have');

    const address = isIPv4(host) ? Buffer.from([1, ...host.split('.').map(Number)]) : named(host);
    socket.write(Buffer.concat([Buffer.from([version, 1, 0]), address, Buffer.from([port >> 8, port & 0xff])]));
    const [, reply = 1, , addressType] = await read(4);
    if (reply !== 0) throw failure(`could not connect to ${host}:${port}: ${replies[reply] ?? `reply ${reply}`}`);
    // The address it connects from is of no interest, but it is in the way.
    const length = addressType === 1 ? 4 : addressType === 4 ? 16 : (await read(1))[0]!;
    await read(length + 2);
    read.end();
    socket.off('timeout', onTimeout);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Reads exact numbers of bytes; `end` gives what is left back to the socket. */
function reader(socket: Socket): { (count: number): Promise<Buffer>; end(): void } {
  let pending = Buffer.alloc(0);
  let failed: Error | undefined;
  let wake: (() => void) | undefined;
  const onData = (chunk: Buffer): void => {
    pending = Buffer.concat([pending, chunk]);
    wake?.();
  };
  const onError = (error: Error): void => {
    failed = error;
    wake?.();
  };
  const onEnd = (): void => onError(failure('closed the connection'));
  socket.on('data', onData).on('error', onError).on('end', onEnd);
  const read = async (count: number): Promise<Buffer> => {
    while (pending.length < count) {
      if (failed) throw failed;
      await new Promise<void>((resolve) => (wake = resolve));
    }
    const bytes = pending.subarray(0, count);
    pending = pending.subarray(count);
    return bytes;
  };
  read.end = (): void => {
    socket.off('data', onData).off('error', onError).off('end', onEnd);
    if (pending.length > 0) socket.unshift(pending);
  };
  return read;
}

/** A host for the proxy to resolve; it takes IPv6 addresses in this form as well. */
function named(host: string): Buffer {
  return Buffer.concat([Buffer.from([3]), counted(host)]);
}

function counted(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length > 255) throw failure(`cannot be told something as long as "${text.slice(0, 20)}…"`);
  return Buffer.concat([Buffer.from([bytes.length]), bytes]);
}

function failure(problem: string): Error {
  return Object.assign(new Error(`the SOCKS proxy ${problem}`), { code: 'ECONNREFUSED' });
}
