// SPDX-License-Identifier: Apache-2.0
// Credentials that are renewed while we run: files that somebody rotates, and plugins that print tokens.
import type { Clock } from '../base/clock.ts';
import { KarpenterError, messageOf } from '../base/errors.ts';
import type { Credential, Credentials } from './http-transport.ts';
import { parseTime } from './time.ts';

/** What credentials need of the machine. */
export interface CredentialIo {
  /** The text of a file; throws when it cannot be read. */
  readFile(path: string): string;
  /** Runs a program to its end. Rejects when it cannot be started, with the system's `code` (`ENOENT`). */
  run(
    command: string,
    args: readonly string[],
    options: { env: Readonly<Record<string, string>>; interactive: boolean; timeoutMs: number },
  ): Promise<{ exitCode: number; stdout: string; stderr: string }>;
  /** Whether a person could answer questions. */
  readonly isTerminal: boolean;
}

/** The `exec` part of a kubeconfig's user. */
export interface ExecPlugin {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly installHint?: string | undefined;
  readonly interactiveMode: 'Never' | 'IfAvailable' | 'Always';
  /** What is told about the cluster, when `provideClusterInfo` is set. */
  readonly cluster?: object | undefined;
}

/** No credentials could be had. `code` is `KRP_CREDENTIALS`; the message says what to do. */
export class CredentialError extends KarpenterError {
  constructor(message: string, cause?: unknown) {
    super('KRP_CREDENTIALS', message, cause === undefined ? {} : { cause });
  }
}

const rereadMs = 60_000;
const pluginTimeoutMs = 60_000;

/**
 * A token or a certificate in files that somebody else renews: read again every minute, and at once after the server
 * rejected them. A file that cannot be read any more leaves what was read last in force. With `initial`, that is used until
 * the server rejects it: the file may be a pipe, which can be read only once.
 */
export class FileCredentials implements Credentials {
  readonly #read: () => Credential;
  readonly #clock: Clock;
  readonly #rereadMs: number;
  #last: Credential | undefined;
  #readAt = 0;

  constructor(read: () => Credential, clock: Clock, initial?: Credential) {
    this.#read = read;
    this.#clock = clock;
    this.#last = initial;
    this.#rereadMs = initial ? Number.POSITIVE_INFINITY : rereadMs;
  }

  async current(): Promise<Credential> {
    const now = this.#clock.monotonic();
    if (this.#last && now - this.#readAt < this.#rereadMs) return this.#last;
    try {
      this.#last = this.#read();
      this.#readAt = now;
    } catch (error) {
      if (!this.#last) throw new CredentialError(`reading credentials: ${messageOf(error)}`, error);
    }
    return this.#last;
  }

  rejected(used: Credential): void {
    if (used === this.#last) this.#readAt = Number.NEGATIVE_INFINITY;
  }
}

interface ExecCredential extends Credential {
  readonly expiresAt: number;
}

/**
 * The client.authentication.k8s.io protocol (v1, v1beta1): runs a program that prints an ExecCredential, keeps what it
 * printed until it expires or is rejected, and runs it once for all who wait.
 */
export class ExecCredentials implements Credentials {
  readonly #plugin: ExecPlugin;
  readonly #io: CredentialIo;
  readonly #clock: Clock;
  #held: ExecCredential | undefined;
  #running: Promise<ExecCredential> | undefined;

  constructor(plugin: ExecPlugin, io: CredentialIo, clock: Clock) {
    this.#plugin = plugin;
    this.#io = io;
    this.#clock = clock;
  }

  async current(): Promise<Credential> {
    if (this.#held && this.#clock.now() < this.#held.expiresAt) return this.#held;
    this.#running ??= this.#run().finally(() => (this.#running = undefined));
    this.#held = await this.#running;
    return this.#held;
  }

  rejected(used: Credential): void {
    // Many requests under way may be refused together; only the first of them makes the plugin run again.
    if (used === this.#held) this.#held = undefined;
  }

  async #run(): Promise<ExecCredential> {
    const { apiVersion, command, args, env, interactiveMode, cluster, installHint } = this.#plugin;
    if (interactiveMode === 'Always' && !this.#io.isTerminal) {
      throw new CredentialError(
        `the credential plugin "${command}" asks questions, but there is no terminal to answer them`,
      );
    }
    const interactive = interactiveMode !== 'Never' && this.#io.isTerminal;
    const spec = { interactive, ...(cluster ? { cluster } : {}) };
    const info = JSON.stringify({ apiVersion, kind: 'ExecCredential', spec });
    let result: Awaited<ReturnType<CredentialIo['run']>>;
    try {
      result = await this.#io.run(command, args, {
        env: { ...env, KUBERNETES_EXEC_INFO: info },
        interactive,
        timeoutMs: interactive ? 0 : pluginTimeoutMs,
      });
    } catch (error) {
      const missing = (error as { code?: unknown }).code === 'ENOENT';
      const problem = missing
        ? 'was not found; is it installed and on the PATH?'
        : `could not run: ${messageOf(error)}`;
      throw new CredentialError(`the credential plugin "${command}" ${problem}${hint(installHint)}`, error);
    }
    if (result.exitCode !== 0) {
      const said = result.stderr.trim().slice(-1000);
      throw new CredentialError(
        `the credential plugin "${command}" failed with exit code ${result.exitCode}${said ? `: ${said}` : ''}${hint(installHint)}`,
      );
    }
    return this.#parse(result.stdout);
  }

  #parse(stdout: string): ExecCredential {
    const { command, apiVersion } = this.#plugin;
    const bad = (problem: string): CredentialError =>
      new CredentialError(`the credential plugin "${command}" ${problem}`);
    let credential: { kind?: unknown; apiVersion?: unknown; status?: Record<string, unknown> | null };
    try {
      credential = JSON.parse(stdout) as typeof credential;
    } catch {
      // What it printed may hold a secret: it is not repeated.
      throw bad('printed something that is not JSON');
    }
    if (credential?.kind !== 'ExecCredential') throw bad('printed something that is not an ExecCredential');
    const { apiVersion: version } = credential;
    if (version !== apiVersion) {
      throw bad(
        `answered in version ${typeof version === 'string' ? version : JSON.stringify(version)}, but the kubeconfig asks for ${apiVersion}`,
      );
    }
    const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = credential.status ?? {};
    const hasToken = typeof token === 'string' && token !== '';
    const hasCertificate = typeof cert === 'string' && typeof key === 'string' && cert !== '' && key !== '';
    if (!hasToken && !hasCertificate) throw bad('printed neither a token nor a client certificate with its key');
    return {
      ...(hasToken ? { authorization: `Bearer ${token}` } : {}),
      ...(hasCertificate ? { certificate: { cert, key } } : {}),
      expiresAt: typeof expirationTimestamp === 'string' ? parseTime(expirationTimestamp) : Number.POSITIVE_INFINITY,
    };
  }
}

function hint(installHint: string | undefined): string {
  return installHint ? `\n\n${installHint.trim()}` : '';
}
