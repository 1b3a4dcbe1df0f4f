// SPDX-License-Identifier: Apache-2.0
// What happens to Nodes: they fall silent, come back, flap.
import { labels } from '../../api/labels.ts';
import type { VirtualClock } from '../../base/clock.ts';
import { ignoreNotFound } from '../../kube/api-error.ts';
import type { KubeClient } from '../../kube/client.ts';
import { kinds, type Node } from '../../kube/kinds.ts';
import { formatTime } from '../../kube/time.ts';
import type { FeatureGates } from '../../runtime/settings.ts';
import { isSilent } from '../cloud/machines.ts';
import { collections } from '../collections.ts';
import type { Coverage, Facts, Fault } from '../contract.ts';
import { between, pick } from '../draw.ts';
import { unreadySince } from '../invariants/repairs.ts';

export interface NodeFaultParts {
  readonly clock: VirtualClock;
  readonly workload: KubeClient;
  readonly facts: Facts;
  readonly coverage: Coverage;
  readonly gates: FeatureGates;
}

/** Whose nodes are repaired within a rest. */
const longestPatienceMs = 15 * 60_000;

export function nodeFaults({ clock, workload, facts, coverage, gates }: NodeFaultParts): Fault[] {
  const ours = (): Node[] =>
    facts.list<Node>(collections.nodes).filter((node) => node.metadata.labels?.[labels.nodePool] && !isSilent(node));
  const report = async (name: string, ready: boolean, uid: string): Promise<void> => {
    const node = facts.get<Node>(collections.nodes, '', name);
    // A machine that died meanwhile says nothing any more.
    if (!node || node.metadata.uid !== uid || isSilent(node)) return;
    const time = formatTime(clock.now());
    const conditions = (node.status?.conditions ?? []).map((condition) =>
      condition.type !== 'Ready'
        ? condition
        : {
            ...condition,
            status: ready ? 'True' : 'False',
            reason: ready ? 'KubeletReady' : 'KubeletNotReady',
            message: ready ? 'kubelet is posting ready status' : 'container runtime is down',
            lastTransitionTime: time,
          },
    );
    await ignoreNotFound(
      workload.resource(kinds.Node).patchStatus(name, { status: { conditions } }, { type: 'merge' }),
    );
  };
  /** In service, at a cloud that has them repaired, and the only one of its pool that is not well. */
  const repairable = (): Node[] => {
    const unwell = new Set(
      ours()
        .filter((node) => unreadySince(node) !== undefined)
        .map(poolOf),
    );
    const ids = new Set(
      facts.clouds
        .filter(({ repairsAfterMs = Number.POSITIVE_INFINITY }) => repairsAfterMs <= longestPatienceMs)
        .flatMap(({ ledger }) => ledger.alive())
        .filter(({ claim, deletingAt }) => claim !== undefined && deletingAt === undefined)
        .map(({ providerID }) => providerID),
    );
    return ours().filter(
      (node) =>
        ids.has(node.spec?.providerID ?? '') &&
        node.metadata.labels?.[labels.initialized] === 'true' &&
        !unwell.has(poolOf(node)),
    );
  };
  const breaks: Fault = {
    name: 'node/breaks',
    weight: 5,
    // For good: only somebody who replaces it ends it.
    inject: async (random) => {
      const node = pick(random, repairable());
      if (!node) return () => undefined;
      coverage.count('fault', 'node/breaks');
      await report(node.metadata.name ?? '', false, node.metadata.uid ?? '');
      return () => undefined;
    },
  };
  return [
    ...(gates.NodeRepair ? [breaks] : []),
    {
      name: 'node/not-ready',
      weight: 1,
      inject: async (random) => {
        const node = pick(random, ours());
        if (!node) return () => undefined;
        coverage.count('fault', 'node/not-ready');
        const { name = '', uid = '' } = node.metadata;
        await report(name, false, uid);
        return () => void report(name, true, uid);
      },
    },
    {
      name: 'node/flapping',
      weight: 1,
      inject: (random) => {
        const node = pick(random, ours());
        if (!node) return () => undefined;
        const { name = '', uid = '' } = node.metadata;
        const everyMs = between(random, 5, 90) * 1000;
        let ready = true;
        const flip = (): void => {
          ready = !ready;
          coverage.count('fault', 'node/flapping');
          void report(name, ready, uid);
          timer = clock.after(everyMs, flip);
        };
        let timer = clock.after(0, flip);
        return () => {
          timer.cancel();
          void report(name, true, uid);
        };
      },
    },
  ];
}

function poolOf({ metadata }: Node): string {
  return metadata.labels?.[labels.nodePool] ?? '';
}
