// SPDX-License-Identifier: Apache-2.0
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { VirtualClock } from '../base/clock.ts';
import { machineIo } from './credential-io.ts';
import type { CredentialIo } from './credentials.ts';
import { type ConnectionOptions, findConnection, inCluster } from './kubeconfig.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');

interface Run {
  command: string;
  args: readonly string[];
  env: Readonly<Record<string, string>>;
  interactive: boolean;
}

function machine(files: Record<string, unknown>, env: Record<string, string> = {}) {
  const clock = new VirtualClock(Date.UTC(2026, 0, 1));
  const runs: Run[] = [];
  const io: CredentialIo & { isTerminal: boolean } = {
    isTerminal: false,
    readFile: (path) => {
      const content = files[path];
      if (content === undefined)
        throw Object.assign(new Error(`ENOENT: no such file, open '${path}'`), { code: 'ENOENT' });
      return typeof content === 'string' ? content : stringify(content);
    },
    run: async (command, args, { env: variables, interactive }) => {
      runs.push({ command, args, env: variables, interactive });
      return world.plugin();
    },
  };
  const world = {
    clock,
    io,
    runs,
    files,
    plugin: (): { exitCode: number; stdout: string; stderr: string } => ({ exitCode: 0, stdout: '', stderr: '' }),
    find: (options: Partial<ConnectionOptions> = {}) =>
      findConnection({ env, homeDirectory: '/home/me', io, clock, ...options }),
  };
  return world;
}

function config(user: object = {}, cluster: object = {}, context: object = {}) {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'main',
    contexts: [{ name: 'main', context: { cluster: 'c', user: 'u', ...context } }],
    clusters: [{ name: 'c', cluster: { server: 'https://api.example:6443', ...cluster } }],
    users: [{ name: 'u', user }],
  };
}

describe('finding the kubeconfig', () => {
  const named = (server: string, name = 'main') => ({
    'current-context': name,
    contexts: [{ name, context: { cluster: name } }],
    clusters: [{ name, cluster: { server } }],
  });
  const pod = {
    '/var/run/secrets/kubernetes.io/serviceaccount/token': 'pod-token\n',
    '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt': 'CA',
    '/var/run/secrets/kubernetes.io/serviceaccount/namespace': 'kube-system',
  };
  const podEnv = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' };
  const all = {
    ...pod,
    '/flag': named('https://flag'),
    '/env': named('https://env'),
    '/home/me/.kube/config': named('https://home'),
  };

  test.each([
    ['the flag', { path: '/flag' }, { KUBECONFIG: '/env', ...podEnv }, 'https://flag'],
    ['KUBECONFIG', {}, { KUBECONFIG: '/env', ...podEnv }, 'https://env'],
    ['the service account', {}, podEnv, 'https://10.0.0.1:443'],
    ['the home directory', {}, {}, 'https://home'],
  ])('goes by %s', (_, options, env, server) => {
    expect(machine(all, env as Record<string, string>).find(options).server).toBe(server);
  });

  test('a pod uses its own token, and the new one when it was renewed', async () => {
    const world = machine({ ...pod }, { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' });
    const found = world.find();
    expect(found).toMatchObject({
      server: 'https://[fd00::1]:443',
      ca: 'CA',
      namespace: 'kube-system',
      context: 'in-cluster',
    });
    expect(await found.credentials!.current()).toEqual({ authorization: 'Bearer pod-token' });
    world.files['/var/run/secrets/kubernetes.io/serviceaccount/token'] = 'second';
    expect(await found.credentials!.current()).toEqual({ authorization: 'Bearer pod-token' });
    await world.clock.step(60_000);
    expect(await found.credentials!.current()).toEqual({ authorization: 'Bearer second' });
    world.files['/var/run/secrets/kubernetes.io/serviceaccount/token'] = 'third';
    found.credentials!.rejected(await found.credentials!.current());
    expect(await found.credentials!.current()).toEqual({ authorization: 'Bearer third' });
    delete world.files['/var/run/secrets/kubernetes.io/serviceaccount/token'];
    await world.clock.step(60_000);
    expect(await found.credentials!.current()).toEqual({ authorization: 'Bearer third' });
  });

  test('the service account can be asked for, whatever KUBECONFIG says', () => {
    const { io, clock } = machine(all);
    expect(inCluster({ env: { KUBECONFIG: '/env', ...podEnv }, io, clock }).server).toBe('https://10.0.0.1:443');
    expect(() => inCluster({ env: {}, io, clock })).toThrow('this is not a pod');
  });

  test('a pod without a token says so at once', () => {
    const files = { ...pod, '/var/run/secrets/kubernetes.io/serviceaccount/token': undefined };
    expect(() => machine(files, podEnv).find()).toThrow(/service account.*token cannot be read/);
  });

  test('merges several files: the first to say something wins', () => {
    const files = {
      '/a': {
        contexts: [{ name: 'x', context: { cluster: 'shared', namespace: 'from-a' } }],
        clusters: [{ name: 'shared', cluster: { server: 'https://a' } }],
      },
      '/b': {
        'current-context': 'x',
        contexts: [{ name: 'x', context: { cluster: 'other' } }],
        clusters: [
          { name: 'shared', cluster: { server: 'https://b' } },
          { name: 'only-b', cluster: { server: 'https://only-b' } },
        ],
      },
      '/c': { 'current-context': 'y', contexts: [{ name: 'y', context: { cluster: 'only-b' } }] },
    };
    const world = machine(files, { KUBECONFIG: '/a:/missing::/b:/c' });
    expect(world.find()).toMatchObject({ server: 'https://a', namespace: 'from-a', context: 'x' });
    expect(world.find({ context: 'y' })).toMatchObject({ server: 'https://only-b', namespace: 'default' });
  });

  test.each([
    ['nothing there', {}, {}, 'no kubeconfig found (looked for /home/me/.kube/config); name one with --kubeconfig'],
    ['a named file that is missing', {}, { path: '/x' }, 'kubeconfig /x cannot be read: ENOENT'],
    ['no YAML', { '/x': 'a: [b' }, { path: '/x' }, 'kubeconfig /x is not YAML'],
    ['another document', { '/x': '- a' }, { path: '/x' }, 'kubeconfig /x is not a configuration'],
    [
      'an empty file',
      { '/x': '' },
      { path: '/x' },
      '/x: no current context; choose one with --context (none is defined)',
    ],
    ['a list that is none', { '/x': { users: 'me' } }, { path: '/x' }, '"users" must be a list'],
    ['a nameless entry', { '/x': { users: [{ user: {} }] } }, { path: '/x' }, 'an entry of "users" has no name'],
    [
      'an unknown context',
      { '/x': config() },
      { path: '/x', context: 'prod' },
      '/x: there is no context "prod" (there are: "main")',
    ],
    [
      'an unknown cluster',
      { '/x': config({}, {}, { cluster: 'z' }) },
      { path: '/x' },
      'context "main" refers to the cluster "z", which is not defined in /x (there are: "c")',
    ],
    ['an unknown user', { '/x': config({}, {}, { user: 'z' }) }, { path: '/x' }, 'refers to the user "z"'],
    ['no server', { '/x': config({}, { server: '' }) }, { path: '/x' }, '/x: cluster "c" has no server'],
    ['a strange server', { '/x': config({}, { server: 'ftp://x' }) }, { path: '/x' }, 'is not an http(s) URL'],
    [
      'a server that is no host',
      { '/x': config({}, { server: 'https:-//x:1' }) },
      { path: '/x' },
      'is not an http(s) URL',
    ],
    [
      'a missing authority',
      { '/x': config({}, { 'certificate-authority': 'ca.pem' }) },
      { path: '/x' },
      '/x: cluster "c": certificate-authority: /ca.pem cannot be read',
    ],
    [
      'half a certificate',
      { '/x': config({ 'client-certificate-data': base64('C') }) },
      { path: '/x' },
      'user "u" has a client certificate without a client key',
    ],
    [
      'the other half',
      { '/x': config({ 'client-key-data': base64('K') }) },
      { path: '/x' },
      'user "u" has a client key without a client certificate',
    ],
    [
      'an auth provider',
      { '/x': config({ 'auth-provider': { name: 'gcp' } }) },
      { path: '/x' },
      'uses the auth provider "gcp"',
    ],
    [
      'a plugin without command',
      { '/x': config({ exec: { apiVersion: 'client.authentication.k8s.io/v1' } }) },
      { path: '/x' },
      'without a command',
    ],
    [
      'a plugin of old',
      { '/x': config({ exec: { apiVersion: 'client.authentication.k8s.io/v1alpha1', command: 'aws' } }) },
      { path: '/x' },
      'supported are client.authentication.k8s.io/v1 and /v1beta1',
    ],
    [
      'a plugin without mode',
      { '/x': config({ exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'aws' } }) },
      { path: '/x' },
      'interactiveMode ""; it must be Never, IfAvailable or Always',
    ],
  ] as [string, Record<string, unknown>, Partial<ConnectionOptions>, string][])(
    'says what is wrong: %s',
    (_, files, options, message) => {
      expect(() => machine(files).find(options)).toThrow(message);
      expect(() => machine(files).find(options)).toThrow(expect.objectContaining({ code: 'KRP_KUBECONFIG' }) as Error);
    },
  );
});

describe('reading a connection', () => {
  const path = '/etc/kube/config';
  const read = (
    user: object,
    cluster: object = {},
    files: Record<string, unknown> = {},
    env: Record<string, string> = {},
  ) => {
    const world = machine({ [path]: config(user, cluster), ...files }, env);
    return { world, found: world.find({ path }) };
  };

  test('TLS: authority, name and trust, data before files, files beside the kubeconfig', () => {
    const { found } = read(
      {},
      {
        'certificate-authority-data': base64('DATA'),
        'certificate-authority': 'ca.pem',
        'tls-server-name': 'kube',
        'insecure-skip-tls-verify': true,
      },
    );
    expect(found).toMatchObject({ ca: 'DATA', serverName: 'kube', insecureSkipTlsVerify: true });
    expect(read({}, { 'certificate-authority': 'pki/ca.pem' }, { '/etc/kube/pki/ca.pem': 'FILE' }).found.ca).toBe(
      'FILE',
    );
  });

  test('a server without a scheme', () => {
    expect(read({}, { server: 'localhost:8080' }).found.server).toBe('http://localhost:8080');
    expect(read({}, { server: 'api:6443', 'certificate-authority-data': base64('CA') }).found.server).toBe(
      'https://api:6443',
    );
  });

  test('tokens, basic auth and nobody', async () => {
    expect(await read({ token: 't' }).found.credentials!.current()).toEqual({ authorization: 'Bearer t' });
    expect(await read({ username: 'me', password: 12 }).found.credentials!.current()).toEqual({
      authorization: `Basic ${base64('me:12')}`,
    });
    expect(read({}).found.credentials).toBeUndefined();
  });

  test('a token file goes before the token, is read again, and falls back', async () => {
    const { found, world } = read({ tokenFile: 'token', token: 'fixed' }, {}, { '/etc/kube/token': 'one\n' });
    expect(await found.credentials!.current()).toEqual({ authorization: 'Bearer one' });
    world.files['/etc/kube/token'] = 'two';
    await world.clock.step(61_000);
    expect(await found.credentials!.current()).toEqual({ authorization: 'Bearer two' });
    delete world.files['/etc/kube/token'];
    await world.clock.step(61_000);
    expect(await found.credentials!.current()).toEqual({ authorization: 'Bearer fixed' });
    await expect(read({ tokenFile: 'gone' }).found.credentials!.current()).rejects.toThrow(
      '/etc/kube/gone cannot be read',
    );
  });

  test('client certificates: written in, or in files that are renewed', async () => {
    const inline = read({ 'client-certificate-data': base64('C'), 'client-key-data': base64('K') }).found;
    expect(inline).toMatchObject({ certificate: { cert: 'C', key: 'K' } });
    const { found, world } = read(
      { 'client-certificate': 'c', 'client-key': 'k' },
      {},
      { '/etc/kube/c': 'C1', '/etc/kube/k': 'K1' },
    );
    expect(found.certificate).toEqual({ cert: 'C1', key: 'K1' });
    Object.assign(world.files, { '/etc/kube/c': 'C2', '/etc/kube/k': 'K2' });
    await world.clock.step(61_000);
    expect(await found.credentials!.current()).toEqual({ certificate: { cert: 'C2', key: 'K2' } });
  });

  test('what is written in is read again once the server has rejected it: a Secret may have been renewed', async () => {
    const { found, world } = read({ token: 'old' });
    world.files[path] = config({ token: 'new' });
    await world.clock.step(600_000);
    // Not before: a kubeconfig may be a pipe, which can be read once.
    const used = await found.credentials!.current();
    expect(used).toEqual({ authorization: 'Bearer old' });
    found.credentials!.rejected(used);
    expect(await found.credentials!.current()).toEqual({ authorization: 'Bearer new' });
    delete world.files[path];
    found.credentials!.rejected(await found.credentials!.current());
    expect(await found.credentials!.current()).toEqual({ authorization: 'Bearer new' });

    const pair = (name: string) => ({ 'client-certificate-data': base64(`C${name}`), 'client-key-data': base64('K') });
    const second = read(pair('1'));
    second.world.files[path] = config(pair('2'));
    second.found.credentials!.rejected(await second.found.credentials!.current());
    expect(await second.found.credentials!.current()).toEqual({ certificate: { cert: 'C2', key: 'K' } });
  });

  test('impersonation', () => {
    const user = {
      as: 'jane',
      'as-uid': '7',
      'as-groups': ['dev', 'ops'],
      'as-user-extra': { 'Acme.com/Team': ['x', { not: 'a text' }] },
    };
    expect(read(user).found.headers).toEqual({
      'impersonate-user': 'jane',
      'impersonate-uid': '7',
      'impersonate-group': ['dev', 'ops'],
      'impersonate-extra-acme.com%2Fteam': ['x'],
    });
  });

  test.each([
    [{ 'proxy-url': 'socks5://p:1080' }, { HTTPS_PROXY: 'http://env:1' }, 'socks5://p:1080'],
    [{}, { HTTPS_PROXY: 'http://env:1' }, 'http://env:1'],
    [{}, { https_proxy: 'env:1' }, 'http://env:1'],
    [{}, { HTTP_PROXY: 'http://env:1' }, undefined],
    [{ server: 'http://api.example' }, { HTTP_PROXY: 'http://env:1' }, 'http://env:1'],
    [{}, { HTTPS_PROXY: 'http://env:1', NO_PROXY: '*' }, undefined],
    [{}, { HTTPS_PROXY: 'http://env:1', NO_PROXY: 'other, example' }, undefined],
    [{}, { HTTPS_PROXY: 'http://env:1', NO_PROXY: '.example' }, undefined],
    [{}, { HTTPS_PROXY: 'http://env:1', no_proxy: '*.example' }, undefined],
    [{}, { HTTPS_PROXY: 'http://env:1', NO_PROXY: 'ample' }, 'http://env:1'],
    [{}, { HTTPS_PROXY: 'http://env:1', NO_PROXY: 'api.example:6443' }, undefined],
    [{}, { HTTPS_PROXY: 'http://env:1', NO_PROXY: 'api.example:443' }, 'http://env:1'],
    [{ server: 'https://10.1.2.3' }, { HTTPS_PROXY: 'http://env:1', NO_PROXY: '10.0.0.0/8' }, undefined],
    [{ server: 'https://11.1.2.3' }, { HTTPS_PROXY: 'http://env:1', NO_PROXY: '10.0.0.0/8,bad/99' }, 'http://env:1'],
    [{ server: 'https://[fd00::7]:6443' }, { HTTPS_PROXY: 'http://env:1', NO_PROXY: 'fd00::/16' }, undefined],
    [{ server: 'https://[fd00::7]:6443' }, { HTTPS_PROXY: 'http://env:1', NO_PROXY: 'fd00::7' }, undefined],
    [{ server: 'https://127.0.0.1:6443' }, { HTTPS_PROXY: 'http://env:1' }, undefined],
    [{ server: 'https://localhost:6443' }, { HTTPS_PROXY: 'http://env:1' }, undefined],
  ])('proxies: %j with %j', (cluster, env, proxyUrl) => {
    expect(read({}, cluster, {}, env as Record<string, string>).found.proxyUrl).toBe(proxyUrl);
  });
});

describe('credential plugins', () => {
  const plugin = (more: object = {}) => ({
    exec: {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: 'aws',
      args: ['eks', 'get-token'],
      env: [{ name: 'AWS_PROFILE', value: 'x' }],
      interactiveMode: 'IfAvailable',
      installHint: 'Install it with brew.',
      ...more,
    },
  });
  const credential = (status: object, apiVersion = 'client.authentication.k8s.io/v1') => ({
    exitCode: 0,
    stdout: JSON.stringify({ kind: 'ExecCredential', apiVersion, status }),
    stderr: '',
  });
  const setup = (more: object = {}, cluster: object = {}) => {
    const world = machine({ '/etc/kube/config': config(plugin(more), cluster) });
    world.plugin = () => credential({ token: `t${world.runs.length}` });
    return { world, credentials: world.find({ path: '/etc/kube/config' }).credentials! };
  };

  test('runs once for all who ask, and not again', async () => {
    const { world, credentials } = setup();
    const all = await Promise.all([credentials.current(), credentials.current()]);
    await world.clock.step(86_400_000);
    expect([...all, await credentials.current()].map((each) => each.authorization)).toEqual([
      'Bearer t1',
      'Bearer t1',
      'Bearer t1',
    ]);
    expect(world.runs).toEqual([
      {
        command: 'aws',
        args: ['eks', 'get-token'],
        interactive: false,
        env: {
          AWS_PROFILE: 'x',
          KUBERNETES_EXEC_INFO:
            '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"interactive":false}}',
        },
      },
    ]);
  });

  test('runs again when the credential has expired or was rejected', async () => {
    const { world, credentials } = setup();
    world.plugin = () => credential({ token: `t${world.runs.length}`, expirationTimestamp: '2026-01-01T00:10:00Z' });
    await credentials.current();
    await world.clock.step(599_000);
    await credentials.current();
    expect(world.runs.length).toBe(1);
    await world.clock.step(1000);
    expect(await credentials.current()).toMatchObject({ authorization: 'Bearer t2' });
    world.plugin = () => credential({ token: 'fresh' });
    const stale = await credentials.current();
    credentials.rejected(stale);
    expect(await credentials.current()).toMatchObject({ authorization: 'Bearer fresh' });
    // Requests that were under way with the old one are refused later: no reason to run again.
    const { length } = world.runs;
    credentials.rejected(stale);
    await credentials.current();
    expect(world.runs.length).toBe(length);
  });

  test('gives certificates as well', async () => {
    const { world, credentials } = setup();
    world.plugin = () => credential({ clientCertificateData: 'C', clientKeyData: 'K' });
    expect(await credentials.current()).toMatchObject({ certificate: { cert: 'C', key: 'K' } });
  });

  test('tells the plugin about the cluster when asked to', async () => {
    const { world, credentials } = setup(
      { provideClusterInfo: true },
      {
        'certificate-authority-data': base64('CA'),
        extensions: [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'a' } }],
      },
    );
    await credentials.current();
    const info = JSON.parse(world.runs[0]!.env['KUBERNETES_EXEC_INFO']!) as { spec: { cluster: unknown } };
    expect(info.spec.cluster).toEqual({
      server: 'https://api.example:6443',
      'certificate-authority-data': base64('CA'),
      config: { audience: 'a' },
    });
  });

  test('a path is relative to the kubeconfig; v1beta1 needs no mode', async () => {
    const { world, credentials } = setup({
      command: './bin/login',
      apiVersion: 'client.authentication.k8s.io/v1beta1',
      interactiveMode: undefined,
    });
    world.plugin = () => credential({ token: 't' }, 'client.authentication.k8s.io/v1beta1');
    await credentials.current();
    expect(world.runs[0]!.command).toBe('/etc/kube/bin/login');
  });

  test('asks the person only when there is one', async () => {
    const { world, credentials } = setup({ interactiveMode: 'Always' });
    await expect(credentials.current()).rejects.toThrow('asks questions, but there is no terminal');
    world.io.isTerminal = true;
    await credentials.current();
    expect(world.runs[0]!.interactive).toBe(true);
  });

  test.each([
    [
      'fails',
      () => ({ exitCode: 255, stdout: '', stderr: 'no such profile\n' }),
      'the credential plugin "aws" failed with exit code 255: no such profile\n\nInstall it with brew.',
    ],
    ['prints nonsense', () => ({ exitCode: 0, stdout: 'secret!', stderr: '' }), 'printed something that is not JSON'],
    ['prints another kind', () => ({ exitCode: 0, stdout: 'null', stderr: '' }), 'is not an ExecCredential'],
    [
      'answers in another version',
      () => credential({ token: 't' }, 'client.authentication.k8s.io/v1beta1'),
      'answered in version client.authentication.k8s.io/v1beta1',
    ],
    ['gives nothing', () => credential({}), 'neither a token nor a client certificate'],
    [
      'gives half a certificate',
      () => credential({ clientCertificateData: 'C' }),
      'neither a token nor a client certificate',
    ],
  ])('says what went wrong when it %s, and tries again next time', async (_, answer, message) => {
    const { world, credentials } = setup();
    world.plugin = answer;
    const error = await credentials.current().catch((thrown: unknown) => thrown as Error);
    expect((error as Error).message).toContain(message);
    expect((error as Error).message).not.toContain('secret!');
    world.plugin = () => credential({ token: 'ok' });
    expect(await credentials.current()).toMatchObject({ authorization: 'Bearer ok' });
  });

  test('says how to install what is missing', async () => {
    const { world, credentials } = setup();
    world.plugin = () => {
      throw Object.assign(new Error('spawn aws ENOENT'), { code: 'ENOENT' });
    };
    await expect(credentials.current()).rejects.toThrow(
      'was not found; is it installed and on the PATH?\n\nInstall it with brew.',
    );
  });
});

describe('the machine itself', () => {
  const folders: string[] = [];
  afterEach(() => {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
  });

  test('runs programs, with their output, their errors and their environment', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'karpenter-'));
    folders.push(folder);
    const script = join(folder, 'plugin');
    writeFileSync(script, '#!/bin/sh\necho "$GREETING $1"\necho trouble >&2\nexit 3\n');
    chmodSync(script, 0o755);
    const io = machineIo({ PATH: '/usr/bin:/bin', GREETING: 'no' }, false);
    const options = { env: { GREETING: 'hello' }, interactive: false, timeoutMs: 10_000 };
    expect(await io.run(script, ['world'], options)).toEqual({
      exitCode: 3,
      stdout: 'hello world\n',
      stderr: 'trouble\n',
    });
    await expect(io.run(join(folder, 'none'), [], options)).rejects.toMatchObject({ code: 'ENOENT' });
    expect(io.readFile(script)).toContain('GREETING');
  });

  test('ends programs that take too long', async () => {
    const io = machineIo({ PATH: '/usr/bin:/bin' }, false);
    const result = await io.run('sleep', ['60'], { env: {}, interactive: false, timeoutMs: 50 });
    expect(result.exitCode).not.toBe(0);
    expect(result.stderr).toContain('ended by SIGTERM');
  });
});
