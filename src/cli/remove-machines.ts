// SPDX-License-Identifier: Apache-2.0
// Everything that costs money goes: NodePools first, so that nothing new is bought, then NodeClaims, whose machines the
// controller drains and removes. Reads and deletes NodePools and NodeClaims, touches nothing else.
import { type NodeClaim, nodeClaimKind } from '../api/node-claim.ts';
import { nodePoolKind } from '../api/node-pool.ts';
import type { Clock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { compareStrings } from '../base/order.ts';
import { isForbidden, isNotFound } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject, ResourceType } from '../kube/object.ts';

export interface CleanupOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Only looks. */
  readonly dryRun: boolean;
  /** Is told how it goes, a line at a time. */
  readonly tell: (line: string) => void;
  readonly signal: AbortSignal;
}

export interface Remainder {
  readonly kind: 'NodePool' | 'NodeClaim';
  readonly name: string;
  readonly why: string;
}

export interface CleanupReport {
  readonly dryRun: boolean;
  /** Nothing is left. */
  readonly done: boolean;
  /** What there was, also what came up meanwhile. */
  readonly nodePools: readonly string[];
  readonly nodeClaims: readonly string[];
  readonly left: readonly Remainder[];
  readonly seconds: number;
}

const pollMs = 2000;
/** How often a line is written although nothing changed. */
const sayEveryMs = 30_000;

/** Deletes until nothing is left or the time is over. Throws only when it may not look or delete at all. */
export async function cleanUp(options: CleanupOptions): Promise<CleanupReport> {
  const { client, clock, timeoutMs, dryRun, tell, signal } = options;
  const started = clock.monotonic();
  const seen = { pools: new Set<string>(), claims: new Set<string>() };
  const report = (done: boolean, left: readonly Remainder[]): CleanupReport => ({
    dryRun,
    done,
    nodePools: [...seen.pools].sort(compareStrings),
    nodeClaims: [...seen.claims].sort(compareStrings),
    left,
    seconds: Math.round((clock.monotonic() - started) / 1000),
  });
  let [said, saidAt] = ['', Number.NEGATIVE_INFINITY];
  let left: Remainder[] = [];
  for (;;) {
    try {
      const pools = await listOf(client, nodePoolKind as ResourceType<KubeObject>, signal);
      const claims = await listOf(client, nodeClaimKind as ResourceType<KubeObject>, signal);
      for (const { metadata } of pools) seen.pools.add(metadata.name ?? '');
      for (const { metadata } of claims) seen.claims.add(metadata.name ?? '');
      left = [
        ...pools.map((pool) => remainder('NodePool', pool)),
        ...claims.map((claim) => remainder('NodeClaim', claim)),
      ];
      if (dryRun || left.length === 0) return report(left.length === 0, left);
      // In this order: a NodePool that is gone buys nothing in place of what goes. Those that came up meanwhile go as well.
      await removeAll(client, nodePoolKind as ResourceType<KubeObject>, pools, signal);
      await removeAll(client, nodeClaimKind as ResourceType<KubeObject>, claims, signal);
      const line = `${pools.length} NodePools and ${claims.length} NodeClaims left${examples(left)}`;
      if (line !== said || clock.monotonic() - saidAt >= sayEveryMs) {
        tell(line);
        [said, saidAt] = [line, clock.monotonic()];
      }
    } catch (error) {
      if (signal.aborted || isForbidden(error)) throw error;
      tell(`trying again: ${messageOf(error)}`);
    }
    if (clock.monotonic() - started + pollMs > timeoutMs) return report(false, left);
    await clock.sleep(pollMs, signal);
  }
}

/** All of a kind; none where the cluster does not know it. */
async function listOf(
  client: KubeClient,
  kind: ResourceType<KubeObject>,
  signal: AbortSignal,
): Promise<readonly KubeObject[]> {
  try {
    return (await client.resource(kind).listAll({ signal })).items;
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}

async function removeAll(
  client: KubeClient,
  kind: ResourceType<KubeObject>,
  objects: readonly KubeObject[],
  signal: AbortSignal,
): Promise<void> {
  for (const { metadata } of objects) {
    if (metadata.deletionTimestamp !== undefined) continue;
    try {
      await client.resource(kind).delete(metadata.name ?? '', { signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}

function remainder(kind: Remainder['kind'], object: KubeObject): Remainder {
  return {
    kind,
    name: object.metadata.name ?? '',
    why: kind === 'NodeClaim' ? whyOf(object as NodeClaim) : 'is deleted',
  };
}

/** How far its removal is, as its conditions say it. */
function whyOf({ metadata, status }: NodeClaim): string {
  if (metadata.deletionTimestamp === undefined) return 'is not deleted yet';
  const is = (type: string, value: string) => status?.conditions?.find((c) => c.type === type && c.status === value);
  const drain = is('Drained', 'False') ?? is('Drained', 'Unknown');
  if (drain) return `its node is drained${drain.message ? `: ${drain.message}` : ''}`;
  const volumes = is('VolumesDetached', 'False') ?? is('VolumesDetached', 'Unknown');
  if (volumes) return `volumes are still attached${volumes.message ? `: ${volumes.message}` : ''}`;
  if (is('InstanceTerminating', 'True')) return 'its machine is being removed';
  return 'waits for the controller';
}

const mostNamed = 3;

function examples(left: readonly Remainder[]): string {
  const claims = left.filter(({ kind }) => kind === 'NodeClaim');
  const named = claims.slice(0, mostNamed).map(({ name, why }) => `${name} (${why})`);
  const more = claims.length > mostNamed ? `, and ${claims.length - mostNamed} more` : '';
  return named.length === 0 ? '' : `: ${named.join(', ')}${more}`;
}
