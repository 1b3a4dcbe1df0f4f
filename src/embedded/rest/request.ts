// SPDX-License-Identifier: Apache-2.0
// A request on its way through the server, and what its path means.
import type { WatchStream } from '../../kube/transport.ts';

/** Who asks. */
export interface UserInfo {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
}

/** The user of the in-process transport when none is named: may do anything. */
export const systemUser: UserInfo = Object.freeze({ username: 'system:admin', groups: ['system:masters'] });

/** A request, whatever wire it came over. Bodies are parsed JSON that the server may keep or must copy. */
export interface ApiRequest {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** The body is not shared with anybody: it may be changed and stored as it is. */
  readonly ownsBody: boolean;
  /** Why there is no body although one was sent: it could not be read. */
  readonly bodyProblem?: string;
  /** Why the body is refused, once it is clear that it would be looked at. */
  readonly bodyRefusal?: Error;
  /** Keys of the body that came twice, by their paths. */
  readonly duplicates?: readonly string[];
  readonly contentType?: string;
  readonly accept?: string;
  readonly user: UserInfo;
  readonly userAgent?: string;
  /** The answer will be serialised: nothing of it is shared. */
  readonly onWire?: boolean;
}

/** An answer: an object, a text, a watch, or a text that goes on. */
export interface ApiResponse {
  readonly status: number;
  readonly body?: unknown;
  readonly text?: string;
  readonly stream?: ServerWatch;
  /** Lines that come as they are written; only for requests over a wire. */
  readonly follow?: LineStream;
  readonly headers?: Readonly<Record<string, string>>;
  readonly warnings?: readonly string[];
}

/** An answer that comes piece by piece, until its end or until it is closed. */
export interface LineStream {
  lines(): AsyncIterable<Buffer>;
  close(): void;
}

/** A watch as the server holds it: iterated in process, or written line by line over HTTP. Watchers share lines where possible. */
export interface ServerWatch extends WatchStream, LineStream {}

/** What a path asks for, as authorisation sees it. */
export interface RequestInfo {
  readonly path: string;
  readonly isResource: boolean;
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly resource: string;
  readonly name: string;
  readonly subresource: string;
}

const verbOfMethod: Readonly<Record<string, string>> = {
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** Reads a path and method. Never throws: what is no resource path is a non-resource request. */
export function parseRequest(method: string, path: string, query: Readonly<Record<string, string>>): RequestInfo {
  // Decoded as a whole, as Go does: an escaped slash is a slash.
  const parts = partsOf(decode(path));
  const grouped = parts[1] === 'apis';
  let at = grouped ? 4 : 3;
  if ((parts[1] !== 'api' && !grouped) || parts.length <= at) return nonResource(method, path);
  const group = grouped ? parts[2]! : '';
  const version = parts[at - 1]!;
  // The old form of a watch: /api/v1/watch/namespaces/x/pods.
  let watching = false;
  if (parts[at] === 'watch' && parts.length > at + 1) {
    watching = true;
    at++;
  }
  let namespace = '';
  const isNamespaced = parts[at] === 'namespaces' && parts.length > at + 1;
  if (isNamespaced && parts.length > at + 2 && !namespaceSubresources.has(parts[at + 2]!)) {
    namespace = parts[at + 1]!;
    at += 2;
  } else if (isNamespaced && group === '') {
    namespace = parts[at + 1]!;
  }
  const resource = parts[at] ?? '';
  const name = parts[at + 1] ?? '';
  // On the path of an object the parameter means nothing.
  if (name === '') watching ||= query['watch'] === 'true' || query['watch'] === '1';
  return {
    path,
    isResource: true,
    verb: verbOf(method, name, watching),
    group,
    version,
    namespace,
    resource,
    name,
    subresource: parts.length > at + 2 ? parts.slice(at + 2).join('/') : '',
  };
}

/** What is between slashes, from the second place on; empty parts do not count. */
function partsOf(path: string): readonly string[] {
  const parts = path.split('/');
  return parts[0] === '' && !parts.includes('', 1) ? parts : ['', ...parts.filter((part) => part !== '')];
}

const namespaceSubresources = new Set(['status', 'finalize']);

function verbOf(method: string, name: string, watching: boolean): string {
  if (method === 'GET' || method === 'HEAD') {
    if (watching) return 'watch';
    return name === '' ? 'list' : 'get';
  }
  if (method === 'DELETE' && name === '') return 'deletecollection';
  return verbOfMethod[method] ?? method.toLowerCase();
}

function nonResource(method: string, path: string): RequestInfo {
  return {
    path,
    isResource: false,
    verb: method === 'HEAD' ? 'get' : method.toLowerCase(),
    group: '',
    version: '',
    namespace: '',
    resource: '',
    name: '',
    subresource: '',
  };
}

function decode(path: string): string {
  if (!path.includes('%')) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    // A stray percent sign stays as it is: no object has such a name, so it is not found.
    return path;
  }
}
