// SPDX-License-Identifier: Apache-2.0
// What a new machine makes of its user data: the part of cloud-init that lets it join a cluster.
import { gunzipSync } from 'node:zlib';
import { parse, parseAllDocuments } from 'yaml';
import { asObject, asText, type Json } from './exchange.ts';
import type { Taint } from './records.ts';

/** How a machine joins. */
export interface Join {
  readonly by: 'kubeadm' | 'k3s';
  /** Where the API server is said to be. */
  readonly endpoint: string;
  readonly token: { readonly id: string; readonly secret: string };
  /** The machine's own label unless told. */
  readonly nodeName?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly maxPods?: number;
  /** Its kubelet waits for a cloud controller manager. */
  readonly externalCloud: boolean;
  /** Its kubelet says which Linode it is: `linode://ID`; `asks`: it asks the metadata service for the ID. */
  readonly providerId?: `linode://${string}` | 'asks';
}

/** Why a machine does not join. */
export interface NoJoin {
  readonly problem: string;
}

const no = (problem: string): NoJoin => ({ problem });

/** Reads user data as it reaches the machine: decoded once, one character for each byte. */
export function readJoin(userData: string): Join | NoJoin {
  const text = plainText(Buffer.from(userData, 'latin1'));
  if (text === undefined) return no('the user data is compressed, and broken');
  if (!/^#cloud-config\s/.test(text)) return no('the user data is not a #cloud-config');
  let config: Json;
  try {
    config = asObject(parse(text));
  } catch (error) {
    return no(`the user data is not YAML: ${(error as Error).message}`);
  }
  const files = filesOf(config);
  const commands = commandsOf(config, files);
  const join = kubeadmLine(commands);
  if (join !== undefined) return kubeadmJoin(join, files, commands);
  if (/\bk3s\b/.test(commands)) return k3sJoin(files, commands);
  return no('the user data runs neither kubeadm join nor k3s');
}

function plainText(bytes: Buffer): string | undefined {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes.toString('utf8');
  try {
    return gunzipSync(bytes).toString('utf8');
  } catch {
    return undefined;
  }
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The files it writes, by path. */
function filesOf(config: Json): Map<string, string> {
  return new Map(
    list(config['write_files']).map((entry) => {
      const { path, content, encoding } = asObject(entry);
      return [asText(path), decodedFile(asText(content), asText(encoding))];
    }),
  );
}

function decodedFile(content: string, encoding: string): string {
  if (/^(?:b64|base64)$/.test(encoding)) return Buffer.from(content, 'base64').toString('utf8');
  if (/^(?:gz|gzip)\+(?:b64|base64)$/.test(encoding)) return plainText(Buffer.from(content, 'base64')) ?? '';
  return content;
}

/** What it runs: the commands, and the scripts they name. */
function commandsOf(config: Json, files: ReadonlyMap<string, string>): string {
  const lines = [...list(config['bootcmd']), ...list(config['runcmd'])].map((entry) =>
    Array.isArray(entry) ? entry.map(asText).join(' ') : asText(entry),
  );
  const commands = lines.join('\n');
  const scripts = [...files].filter(([path, content]) => content.startsWith('#!') && commands.includes(path));
  return [commands, ...scripts.map(([, content]) => content)].join('\n');
}

function kubeadmLine(commands: string): string | undefined {
  return commands
    .replaceAll('\\\n', ' ')
    .split('\n')
    .find((line) => /\bkubeadm\s+join\b/.test(line) && !line.trimStart().startsWith('#'));
}

const tokenPattern = /^([a-z0-9]{6})\.([a-z0-9]{16})$/;

function tokenOf(text: string): Join['token'] | undefined {
  const match = tokenPattern.exec(text);
  return match ? { id: match[1]!, secret: match[2]! } : undefined;
}

function kubeadmJoin(line: string, files: ReadonlyMap<string, string>, commands: string): Join | NoJoin {
  const path = flag(line, 'config');
  if (path === undefined) return kubeadmFlags(line);
  const file = files.get(path);
  if (file === undefined) return no(`kubeadm join reads ${path}, which nobody writes`);
  const config = parseAllDocuments(file)
    .map((document) => asObject(document.toJS()))
    .find(({ kind }) => kind === 'JoinConfiguration');
  if (!config) return no(`${path} has no JoinConfiguration`);
  return kubeadmConfig(config, files, commands);
}

function kubeadmFlags(line: string): Join | NoJoin {
  const [, rest = ''] = line.split(/\bkubeadm\s+join\b/);
  const endpoint = rest
    .trim()
    .split(/\s+/)
    .find((word) => /^[\w.[\]:-]+:\d+$/.test(word));
  const token = tokenOf(flag(line, 'token') ?? '');
  if (!token) return no('kubeadm join has no bootstrap token');
  if (endpoint === undefined) return no('kubeadm join names no API server');
  if (
    !line.includes('--discovery-token-ca-cert-hash') &&
    !line.includes('--discovery-token-unsafe-skip-ca-verification')
  ) {
    return no('kubeadm join is told no CA to trust');
  }
  const name = flag(line, 'node-name');
  return {
    by: 'kubeadm',
    endpoint,
    token,
    ...(name === undefined ? {} : { nodeName: name }),
    labels: {},
    taints: [],
    externalCloud: false,
  };
}

/** Discovery by a file, or by a bootstrap token. */
function discoveryOf(config: Json, files: ReadonlyMap<string, string>): { endpoint: string; token: string } | NoJoin {
  const discovery = asObject(config['discovery']);
  const path = asText(asObject(discovery['file'])['kubeConfigPath']);
  const tlsToken = asText(discovery['tlsBootstrapToken']);
  if (path !== '') {
    const kubeconfig = asObject(parse(files.get(path) ?? ''));
    const cluster = asObject(asObject(list(kubeconfig['clusters'])[0])['cluster']);
    const user = asObject(asObject(list(kubeconfig['users'])[0])['user']);
    if (!files.has(path)) return no(`kubeadm discovers by ${path}, which nobody writes`);
    if (asText(cluster['server']) === '') return no(`${path} names no API server`);
    if (asText(cluster['certificate-authority-data']) === '') return no(`${path} has no CA to trust`);
    return { endpoint: asText(cluster['server']), token: tlsToken || asText(user['token']) };
  }
  const bootstrap = asObject(discovery['bootstrapToken']);
  const trusts = list(bootstrap['caCertHashes']).length > 0 || bootstrap['unsafeSkipCAVerification'] === true;
  if (asText(bootstrap['apiServerEndpoint']) === '') return no('the JoinConfiguration names no API server');
  if (!trusts) return no('the JoinConfiguration has no CA to trust');
  return { endpoint: asText(bootstrap['apiServerEndpoint']), token: tlsToken || asText(bootstrap['token']) };
}

function kubeadmConfig(config: Json, files: ReadonlyMap<string, string>, commands: string): Join | NoJoin {
  const discovery = discoveryOf(config, files);
  if ('problem' in discovery) return discovery;
  const token = tokenOf(discovery.token);
  if (!token) return no('the JoinConfiguration has no bootstrap token');
  const registration = asObject(config['nodeRegistration']);
  const args = extraArgs(registration['kubeletExtraArgs']);
  const name = asText(registration['name']);
  return {
    by: 'kubeadm',
    endpoint: discovery.endpoint,
    token,
    ...(name === '' ? {} : { nodeName: name }),
    labels: pairsOf((args['node-labels'] ?? '').split(',')),
    taints: [
      ...list(registration['taints']).map((entry) => taintOf(asObject(entry))),
      ...taintsOf((args['register-with-taints'] ?? '').split(',')),
    ],
    ...kubeletParts(args, commands + [...files.values()].join('\n')),
  };
}

function k3sJoin(files: ReadonlyMap<string, string>, commands: string): Join | NoJoin {
  const config = asObject(parse(files.get('/etc/rancher/k3s/config.yaml') ?? ''));
  const variable = (name: string): string => new RegExp(`\\b${name}=["']?([^\\s"']+)`).exec(commands)?.[1] ?? '';
  const endpoint = asText(config['server']) || variable('K3S_URL');
  const given = asText(config['token']) || variable('K3S_TOKEN');
  const token = tokenOf(given.replace(/^K10[0-9a-f]+::/, ''));
  if (endpoint === '') return no('k3s is told no server');
  if (!token) return no('k3s has no bootstrap token');
  const args = Object.fromEntries(
    [...list(config['kubelet-arg'])].map((entry) => {
      const [name = '', ...value] = asText(entry).split('=');
      return [name, value.join('=')];
    }),
  );
  const name = asText(config['node-name']);
  return {
    by: 'k3s',
    endpoint,
    token,
    ...(name === '' ? {} : { nodeName: name }),
    labels: pairsOf(list(config['node-label']).map(asText)),
    taints: taintsOf(list(config['node-taint']).map(asText)),
    ...kubeletParts(args, commands + [...files.values()].join('\n')),
  };
}

/** What else the kubelet is told. */
function kubeletParts(
  args: Readonly<Record<string, string>>,
  everything: string,
): Pick<Join, 'maxPods' | 'externalCloud' | 'providerId'> {
  const providerId = args['provider-id'];
  const literal = isProviderId(providerId) ? providerId : undefined;
  const asks = everything.includes('169.254.169.254') && everything.includes('provider-id');
  const maxPods = Number(args['max-pods'] ?? maxPodsIn(everything));
  return {
    externalCloud: args['cloud-provider'] === 'external',
    ...(literal === undefined ? (asks ? { providerId: 'asks' as const } : {}) : { providerId: literal }),
    ...(Number.isInteger(maxPods) && maxPods > 0 ? { maxPods } : {}),
  };
}

function isProviderId(text: string | undefined): text is `linode://${string}` {
  return text !== undefined && /^linode:\/\/\d+$/.test(text);
}

function maxPodsIn(text: string): string | undefined {
  return /\bmaxPods["']?:\s*(\d+)/.exec(text)?.[1];
}

/** A map before v1beta4, a list of names and values since. */
function extraArgs(value: unknown): Readonly<Record<string, string>> {
  if (!Array.isArray(value)) {
    return Object.fromEntries(Object.entries(asObject(value)).map(([name, each]) => [name, String(each)]));
  }
  return Object.fromEntries(value.map((entry) => [asText(asObject(entry)['name']), asText(asObject(entry)['value'])]));
}

function flag(line: string, name: string): string | undefined {
  return new RegExp(`--${name}[= ]["']?([^\\s"']+)`).exec(line)?.[1];
}

function pairsOf(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts
      .filter((text) => text.includes('='))
      .map((text) => [text.slice(0, text.indexOf('=')).trim(), text.slice(text.indexOf('=') + 1).trim()]),
  );
}

function taintOf({ key, value, effect }: Json): Taint {
  return { key: asText(key), ...(typeof value === 'string' && value !== '' ? { value } : {}), effect: asText(effect) };
}

/** `key=value:Effect` or `key:Effect`. */
function taintsOf(texts: readonly string[]): Taint[] {
  return texts
    .filter((text) => text.includes(':'))
    .map((text) => {
      const at = text.lastIndexOf(':');
      const [key = '', value = ''] = text.slice(0, at).split('=');
      return { key, ...(value === '' ? {} : { value }), effect: text.slice(at + 1) };
    });
}
