// SPDX-License-Identifier: Apache-2.0
// From a kubeconfig, or the service account of a pod, to a connection: what kubectl understands, with errors that name
// the file, the context and what to do.

import { dirname, isAbsolute, join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { KarpenterError, messageOf } from '../base/errors.ts';
import { percentEncoded } from '../base/percent.ts';
import { type CredentialIo, ExecCredentials, type ExecPlugin, FileCredentials } from './credentials.ts';
import type { ClientCertificate, Credential, Credentials, HttpTransportOptions } from './http-transport.ts';
import { proxyFromEnvironment } from './proxy-env.ts';
import { parseYaml } from './yaml.ts';

/** How to reach a cluster, and where it was written down. */
export interface ClusterConnection extends HttpTransportOptions {
  /** The context's name; `in-cluster` for a pod's service account. */
  readonly context: string;
  /** The namespace to use when none is said. */
  readonly namespace: string;
}

export interface ConnectionOptions {
  /** `--kubeconfig`: one file, which must exist. */
  readonly path?: string | undefined;
  /** `--context`: instead of the file's current one. */
  readonly context?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDirectory: string;
  readonly io: CredentialIo;
  readonly clock: Clock;
}

/** A kubeconfig that cannot be used. `code` is `KRP_KUBECONFIG`. */
export class KubeconfigError extends KarpenterError {
  constructor(message: string, cause?: unknown) {
    super('KRP_KUBECONFIG', message, cause === undefined ? {} : { cause });
  }
}

const serviceAccountFolder = '/var/run/secrets/kubernetes.io/serviceaccount';
const pathListSeparator = process.platform === 'win32' ? ';' : ':';

/**
 * The cluster meant: `path`, else the files of KUBECONFIG, else the pod's service account, else `~/.kube/config`.
 * Throws `KubeconfigError` when there is none or what there is cannot be used. No request is made.
 */
export function findConnection(options: ConnectionOptions): ClusterConnection {
  const { path, env, homeDirectory } = options;
  if (path) return loadKubeconfig([path], options, true);
  const listed = (env['KUBECONFIG'] ?? '').split(pathListSeparator).filter((each) => each !== '');
  if (listed.length > 0) return loadKubeconfig(listed, options, false);
  if (env['KUBERNETES_SERVICE_HOST'] && env['KUBERNETES_SERVICE_PORT'] && !options.context) return inCluster(options);
  return loadKubeconfig([join(homeDirectory, '.kube', 'config')], options, false);
}

/** The API server of the cluster that this process runs in, as the pod's service account. Throws `KubeconfigError` outside of one. */
export function inCluster({ env, io, clock }: Pick<ConnectionOptions, 'env' | 'io' | 'clock'>): ClusterConnection {
  const read = (name: string): string => readFile(io, `${serviceAccountFolder}/${name}`, 'in-cluster service account');
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '' } = env;
  if (host === '' || port === '') {
    throw new KubeconfigError('this is not a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set');
  }
  const ca = read('ca.crt');
  const token = (): { authorization: string } => ({ authorization: `Bearer ${read('token').trim()}` });
  // A missing token is an error now and not at the first request.
  token();
  return {
    context: 'in-cluster',
    namespace: read('namespace').trim() || 'default',
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    ca,
    credentials: new FileCredentials(token, clock),
  };
}

type Fields = Readonly<Record<string, unknown>>;

/** An entry of a kubeconfig and the file it came from: relative paths in it are relative to that. */
interface Entry {
  readonly name: string;
  readonly file: string;
  readonly fields: Fields;
}

interface Merged {
  readonly files: string;
  readonly currentContext: string;
  readonly contexts: ReadonlyMap<string, Entry>;
  readonly clusters: ReadonlyMap<string, Entry>;
  readonly users: ReadonlyMap<string, Entry>;
}

function loadKubeconfig(paths: readonly string[], options: ConnectionOptions, mustExist: boolean): ClusterConnection {
  const config = merge(paths, options.io, mustExist);
  const name = options.context || config.currentContext;
  if (!name) {
    throw new KubeconfigError(
      `${config.files}: no current context; choose one with --context (${namesOf(config.contexts)}) or kubectl config use-context`,
    );
  }
  const context = config.contexts.get(name);
  if (!context)
    throw new KubeconfigError(`${config.files}: there is no context "${name}" (${namesOf(config.contexts)})`);
  const cluster = referred(config, context, 'cluster', config.clusters);
  const where = `${cluster.file}: cluster "${cluster.name}"`;
  const server = serverOf(cluster, where);
  const userName = text(context.fields, 'user');
  const user = userName ? referred(config, context, 'user', config.users) : undefined;
  return {
    context: name,
    namespace: text(context.fields, 'namespace') || 'default',
    server,
    ca: dataOrFile(cluster, 'certificate-authority', options.io, where),
    serverName: text(cluster.fields, 'tls-server-name'),
    insecureSkipTlsVerify: cluster.fields['insecure-skip-tls-verify'] === true,
    proxyUrl: text(cluster.fields, 'proxy-url') ?? proxyFromEnvironment(server, options.env),
    ...(user ? identityOf(user, cluster, server, options) : {}),
  };
}

/** Several files as one: of each name, and of the current context, the first one that says it wins. */
function merge(paths: readonly string[], io: CredentialIo, mustExist: boolean): Merged {
  const contexts = new Map<string, Entry>();
  const clusters = new Map<string, Entry>();
  const users = new Map<string, Entry>();
  const found: string[] = [];
  let currentContext = '';
  for (const file of paths) {
    const config = parseFile(file, io, mustExist);
    if (!config) continue;
    found.push(file);
    currentContext ||= text(config, 'current-context') ?? '';
    collect(contexts, config, 'contexts', 'context', file);
    collect(clusters, config, 'clusters', 'cluster', file);
    collect(users, config, 'users', 'user', file);
  }
  if (found.length === 0) {
    throw new KubeconfigError(
      `no kubeconfig found (looked for ${paths.join(', ')}); name one with --kubeconfig or KUBECONFIG, or run inside a cluster`,
    );
  }
  return { files: found.join(', '), currentContext, contexts, clusters, users };
}

function parseFile(file: string, io: CredentialIo, mustExist: boolean): Fields | undefined {
  let content: string;
  try {
    content = io.readFile(file);
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT' && !mustExist) return undefined;
    throw new KubeconfigError(`kubeconfig ${file} cannot be read: ${messageOf(error)}`, error);
  }
  let config: unknown;
  try {
    config = parseYaml(content);
  } catch (error) {
    throw new KubeconfigError(`kubeconfig ${file} is not YAML: ${messageOf(error)}`, error);
  }
  // An empty file is an empty configuration.
  if (config === null || config === undefined) return {};
  if (typeof config !== 'object' || Array.isArray(config))
    throw new KubeconfigError(`kubeconfig ${file} is not a configuration`);
  return config as Fields;
}

function collect(into: Map<string, Entry>, config: Fields, list: string, part: string, file: string): void {
  const entries = config[list] ?? [];
  if (!Array.isArray(entries)) throw new KubeconfigError(`kubeconfig ${file}: "${list}" must be a list`);
  for (const entry of entries as unknown[]) {
    const name = isFields(entry) ? text(entry, 'name') : undefined;
    if (!isFields(entry) || name === undefined)
      throw new KubeconfigError(`kubeconfig ${file}: an entry of "${list}" has no name`);
    const fields = entry[part];
    if (!into.has(name)) into.set(name, { name, file, fields: isFields(fields) ? fields : {} });
  }
}

function referred(
  config: Merged,
  context: Entry,
  part: 'cluster' | 'user',
  entries: ReadonlyMap<string, Entry>,
): Entry {
  const name = text(context.fields, part) ?? '';
  const entry = entries.get(name);
  if (entry) return entry;
  throw new KubeconfigError(
    `${context.file}: context "${context.name}" refers to the ${part} "${name}", which is not defined in ${config.files} (${namesOf(entries)})`,
  );
}

function serverOf(cluster: Entry, where: string): string {
  const server = text(cluster.fields, 'server');
  if (!server) throw new KubeconfigError(`${where} has no server`);
  const usesTls = Object.keys(cluster.fields).some((key) => key.startsWith('certificate-authority'));
  const url = server.includes('://') ? server : `${usesTls ? 'https' : 'http'}://${server}`;
  if (URL.canParse(url) && /^https?:/.test(url)) return url;
  throw new KubeconfigError(`${where} has the server "${server}", which is not an http(s) URL`);
}

type Identity = Pick<HttpTransportOptions, 'certificate' | 'credentials' | 'headers'>;

function identityOf(user: Entry, cluster: Entry, server: string, options: ConnectionOptions): Identity {
  const where = `${user.file}: user "${user.name}"`;
  const { fields } = user;
  if (isFields(fields['auth-provider'])) {
    const provider = text(fields['auth-provider'], 'name') ?? '';
    throw new KubeconfigError(
      `${where} uses the auth provider "${provider}", which Kubernetes has given up; use an exec credential plugin instead ` +
        '(gke-gcloud-auth-plugin, kubelogin, …)',
    );
  }
  const headers = impersonation(fields);
  return {
    ...certificateOf(user, options.io, where),
    ...credentialsOf(user, cluster, server, options, where),
    ...(headers ? { headers } : {}),
  };
}

/** The client certificate as it is now; one that is kept in files is read again with the other credentials. */
function certificateOf(user: Entry, io: CredentialIo, where: string): { certificate?: ClientCertificate } {
  const cert = dataOrFile(user, 'client-certificate', io, where);
  const key = dataOrFile(user, 'client-key', io, where);
  if (cert === undefined && key === undefined) return {};
  if (cert === undefined) throw new KubeconfigError(`${where} has a client key without a client certificate`);
  if (key === undefined) throw new KubeconfigError(`${where} has a client certificate without a client key`);
  return { certificate: { cert, key } };
}

function credentialsOf(
  user: Entry,
  cluster: Entry,
  server: string,
  { io, clock }: ConnectionOptions,
  where: string,
): { credentials?: Credentials } {
  const exec = user.fields['exec'];
  if (isFields(exec)) {
    return { credentials: new ExecCredentials(pluginOf(exec, user, cluster, server, io, where), io, clock) };
  }
  const isInFiles = isKeptInFiles(user.fields);
  const initial = isInFiles ? undefined : credentialIn(user, io, where);
  if (initial && Object.keys(initial).length === 0) return {};
  const read = (): Credential => credentialIn(isInFiles ? user : reread(user, io), io, where);
  return { credentials: new FileCredentials(read, clock, initial) };
}

function isKeptInFiles(fields: Fields): boolean {
  return Boolean(
    text(fields, 'tokenFile') || (text(fields, 'client-certificate') && !fields['client-certificate-data']),
  );
}

/** The user as its file has it now: a kubeconfig in a Secret is replaced under us. */
function reread(user: Entry, io: CredentialIo): Entry {
  const users = new Map<string, Entry>();
  collect(users, parseFile(user.file, io, true)!, 'users', 'user', user.file);
  return users.get(user.name) ?? user;
}

function credentialIn(user: Entry, io: CredentialIo, where: string): Credential {
  const { fields } = user;
  const tokenFile = pathIn(user, text(fields, 'tokenFile'));
  const token = text(fields, 'token');
  const username = text(fields, 'username');
  const fixed = token
    ? `Bearer ${token}`
    : username
      ? `Basic ${Buffer.from(`${username}:${text(fields, 'password') ?? ''}`).toString('base64')}`
      : undefined;
  const authorization = tokenFile ? bearerFrom(io, tokenFile, fixed, where) : fixed;
  return { ...(authorization ? { authorization } : {}), ...certificateOf(user, io, where) };
}

/** The token in a file; the one beside it serves while the file cannot be read. */
function bearerFrom(io: CredentialIo, file: string, fallback: string | undefined, where: string): string {
  try {
    return `Bearer ${readFile(io, file, where).trim()}`;
  } catch (error) {
    if (fallback) return fallback;
    throw error;
  }
}

function pluginOf(
  exec: Fields,
  user: Entry,
  cluster: Entry,
  server: string,
  io: CredentialIo,
  where: string,
): ExecPlugin {
  const apiVersion = text(exec, 'apiVersion') ?? '';
  const command = text(exec, 'command');
  if (!command) throw new KubeconfigError(`${where} has an exec plugin without a command`);
  if (!/^client\.authentication\.k8s\.io\/(v1|v1beta1)$/.test(apiVersion)) {
    throw new KubeconfigError(
      `${where} runs "${command}" with apiVersion "${apiVersion}"; supported are client.authentication.k8s.io/v1 and /v1beta1`,
    );
  }
  const mode = text(exec, 'interactiveMode') ?? (apiVersion.endsWith('/v1') ? '' : 'IfAvailable');
  if (mode !== 'Never' && mode !== 'IfAvailable' && mode !== 'Always') {
    throw new KubeconfigError(
      `${where} runs "${command}" with interactiveMode "${mode}"; it must be Never, IfAvailable or Always`,
    );
  }
  const variables = Array.isArray(exec['env']) ? (exec['env'] as unknown[]).filter(isFields) : [];
  const args = Array.isArray(exec['args']) ? exec['args'].map(String) : [];
  return {
    apiVersion,
    // A bare name is looked up on the PATH, a path is relative to the file.
    command: /[/\\]/.test(command) ? pathIn(user, command)! : command,
    args,
    env: Object.fromEntries(variables.map((each) => [text(each, 'name') ?? '', text(each, 'value') ?? ''])),
    installHint: text(exec, 'installHint'),
    interactiveMode: mode,
    cluster: exec['provideClusterInfo'] === true ? clusterInfo(cluster, server, io, where) : undefined,
  };
}

function clusterInfo(cluster: Entry, server: string, io: CredentialIo, where: string): object {
  const { fields } = cluster;
  const ca = dataOrFile(cluster, 'certificate-authority', io, where);
  const extensions = Array.isArray(fields['extensions']) ? (fields['extensions'] as unknown[]).filter(isFields) : [];
  const config = extensions.find((each) => each['name'] === 'client.authentication.k8s.io/exec')?.['extension'];
  return {
    server,
    'tls-server-name': text(fields, 'tls-server-name'),
    'insecure-skip-tls-verify': fields['insecure-skip-tls-verify'] === true ? true : undefined,
    'certificate-authority-data': ca === undefined ? undefined : Buffer.from(ca).toString('base64'),
    'proxy-url': text(fields, 'proxy-url'),
    config,
  };
}

function impersonation(fields: Fields): Record<string, string | string[]> | undefined {
  const user = text(fields, 'as');
  const uid = text(fields, 'as-uid');
  const groups = Array.isArray(fields['as-groups']) ? textsOf(fields['as-groups']) : [];
  const extra = isFields(fields['as-user-extra']) ? Object.entries(fields['as-user-extra']) : [];
  const headers: Record<string, string | string[]> = {
    ...(user ? { 'impersonate-user': user } : {}),
    ...(uid ? { 'impersonate-uid': uid } : {}),
    ...(groups.length > 0 ? { 'impersonate-group': groups } : {}),
  };
  for (const [key, values] of extra) {
    headers[`impersonate-extra-${percentEncoded(key.toLowerCase())}`] = textsOf([values].flat());
  }
  return Object.keys(headers).length > 0 ? headers : undefined;
}

/** What stands in `<field>-data` in base64, or else in the file that `<field>` names. */
function dataOrFile(entry: Entry, field: string, io: CredentialIo, where: string): string | undefined {
  const data = text(entry.fields, `${field}-data`);
  if (data) return Buffer.from(data, 'base64').toString('utf8');
  const file = pathIn(entry, text(entry.fields, field));
  return file ? readFile(io, file, `${where}: ${field}`) : undefined;
}

function readFile(io: CredentialIo, file: string, what: string): string {
  try {
    return io.readFile(file);
  } catch (error) {
    throw new KubeconfigError(`${what}: ${file} cannot be read: ${messageOf(error)}`, error);
  }
}

function pathIn(entry: Entry, path: string | undefined): string | undefined {
  return !path || isAbsolute(path) ? path : join(dirname(entry.file), path);
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(fields: Fields, name: string): string | undefined {
  return textOf(fields[name]) || undefined;
}

/** A value as text; YAML may have read a bare number or boolean. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
}

function textsOf(values: readonly unknown[]): string[] {
  return values.map(textOf).filter((value) => value !== undefined);
}

function namesOf(entries: ReadonlyMap<string, Entry>): string {
  return entries.size === 0
    ? 'none is defined'
    : `there are: ${[...entries.keys()].map((name) => `"${name}"`).join(', ')}`;
}
