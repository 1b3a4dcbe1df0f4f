// SPDX-License-Identifier: Apache-2.0
// Bootstrap tokens: one for each machine, valid for half an hour, gone when its Node is there. The name follows from the
// NodeClaim, so a launch that is tried again uses the token it made before.
import type { NodeClaim } from '../../../api/node-claim.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Random } from '../../../base/random.ts';
import { ignoreNotFound, isAlreadyExists } from '../../../kube/api-error.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { kinds, type Secret } from '../../../kube/kinds.ts';
import { formatTime, parseTime } from '../../../kube/time.ts';
import { sha256 } from '../names.ts';

export interface TokenOptions {
  /** Where machines join. */
  readonly workload: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
}

const namespace = 'kube-system';
const lifeMs = 30 * 60_000;
/** A token must live long enough for a machine to boot and join. */
const leastMs = 15 * 60_000;
const alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789';

export class BootstrapTokens {
  readonly #options: TokenOptions;

  constructor(options: TokenOptions) {
    this.#options = options;
  }

  /** `id.secret` for the machine of a NodeClaim. */
  async mint(claim: NodeClaim, distribution: 'kubeadm' | 'k3s', signal: AbortSignal): Promise<string> {
    const secrets = this.#options.workload.resource(kinds.Secret);
    const wanted = this.#secret(claim, distribution);
    const name = wanted.metadata.name!;
    try {
      return tokenOf(await secrets.create(wanted, { signal }));
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    const found = await ignoreNotFound(secrets.get(name, { namespace, signal }));
    if (found && this.#lives(found)) return tokenOf(found);
    await ignoreNotFound(secrets.delete(name, { namespace, signal }));
    return tokenOf(await secrets.create(wanted, { signal }));
  }

  /** The machine has joined, or never will. */
  async revoke(claim: NodeClaim, signal: AbortSignal): Promise<void> {
    const secrets = this.#options.workload.resource(kinds.Secret);
    await ignoreNotFound(secrets.delete(secretName(claim), { namespace, signal }));
  }

  #lives({ data, type }: Secret): boolean {
    const expiration = Buffer.from(data?.['expiration'] ?? '', 'base64').toString('utf8');
    if (type !== 'bootstrap.kubernetes.io/token' || expiration === '') return false;
    return parseTime(expiration) - this.#options.clock.now() >= leastMs;
  }

  #secret(claim: NodeClaim, distribution: 'kubeadm' | 'k3s'): Secret {
    const expiration = formatTime(this.#options.clock.now() + lifeMs);
    const fields: Record<string, string> = {
      'token-id': tokenId(claim),
      'token-secret': chance(16, this.#options.random),
      expiration,
      description: `karpenter: NodeClaim ${claim.metadata.name}`,
      'usage-bootstrap-authentication': 'true',
      'usage-bootstrap-signing': 'true',
      'auth-extra-groups': `system:bootstrappers:${distribution}:default-node-token`,
    };
    return {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'bootstrap.kubernetes.io/token',
      metadata: { name: secretName(claim), namespace, labels: { 'app.kubernetes.io/managed-by': 'karpenter' } },
      data: Object.fromEntries(
        Object.entries(fields).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
      ),
    };
  }
}

/** Six characters of the UID's hash: which token, not whether it is right. */
function tokenId({ metadata }: NodeClaim): string {
  const bits = BigInt(`0x${sha256(metadata.uid ?? '').slice(0, 12)}`);
  let text = '';
  for (let left = bits, i = 0; i < 6; i++, left /= 36n) text += alphabet[Number(left % 36n)];
  return text;
}

function secretName(claim: NodeClaim): string {
  return `bootstrap-token-${tokenId(claim)}`;
}

function tokenOf({ data }: Secret): string {
  const text = (key: string): string => Buffer.from(data?.[key] ?? '', 'base64').toString('utf8');
  return `${text('token-id')}.${text('token-secret')}`;
}

function chance(length: number, random: Random): string {
  return Array.from({ length }, () => alphabet[random.int(alphabet.length)]).join('');
}
