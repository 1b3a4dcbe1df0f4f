// SPDX-License-Identifier: Apache-2.0
// What operators do by hand: edit NodePools, cordon, drain and delete Nodes and NodeClaims, put notes on objects.
import { annotations } from '../../api/labels.ts';
import { type NodeClaim, nodeClaimKind } from '../../api/node-claim.ts';
import { type NodePool, nodePoolKind } from '../../api/node-pool.ts';
import type { Random } from '../../base/random.ts';
import { ignoreNotFound } from '../../kube/api-error.ts';
import { kinds, type Node, type Pod } from '../../kube/kinds.ts';
import { collections } from '../collections.ts';
import type { Happening } from '../contract.ts';
import { between, chance, oneOf, pick } from '../draw.ts';
import { type Hands, namespace } from './hands.ts';
import { anchor, budgetsOf, disruptionOf, limitsFor } from './pools.ts';

export function userHappenings(hands: Hands): Happening[] {
  const { karpenter, workload, facts } = hands;
  const ours = (): Node[] =>
    facts.list<Node>(collections.nodes).filter((node) => node.metadata.labels?.['karpenter.sh/nodepool']);
  const pools = (): readonly NodePool[] => facts.list<NodePool>(collections.pools);
  const editPool = async (random: Random, patchOf: (pool: NodePool) => object): Promise<boolean> => {
    const pool = pick(random, pools());
    if (!pool) return false;
    await ignoreNotFound(karpenter.resource(nodePoolKind).patch(pool.metadata.name!, patchOf(pool)));
    return true;
  };
  const editNode = async (random: Random, patch: object, of = ours()): Promise<boolean> => {
    const node = pick(random, of);
    if (!node) return false;
    await ignoreNotFound(workload.resource(kinds.Node).patch(node.metadata.name!, patch));
    return true;
  };

  const drain = async (random: Random): Promise<boolean> => {
    const node = pick(random, ours());
    if (!node) return false;
    const name = node.metadata.name!;
    await ignoreNotFound(workload.resource(kinds.Node).patch(name, { spec: { unschedulable: true } }));
    const pods = facts.list<Pod>(collections.pods).filter(({ spec, metadata }) => {
      return spec.nodeName === name && metadata.namespace === namespace;
    });
    // Some refuse to go; a person tries once.
    for (const { metadata } of pods) {
      await workload
        .resource(kinds.Pod)
        .evict(metadata.name!, { namespace })
        .catch(() => undefined);
    }
    return true;
  };

  const removePool = async (random: Random): Promise<boolean> => {
    const pool = pick(
      random,
      pools().filter(({ metadata }) => metadata.name !== anchor && !metadata.deletionTimestamp),
    );
    if (!pool) return false;
    const { name } = pool.metadata;
    await karpenter.resource(nodePoolKind).delete(name!);
    const { spec } = pool;
    const again = async (): Promise<void> => {
      const known = facts.get<NodePool>(collections.pools, '', name!);
      if (known) return void hands.clock.after(60_000, () => void again());
      await karpenter.resource(nodePoolKind).create({ ...kindOf(pool), metadata: { name: name! }, spec });
    };
    hands.clock.after(between(random, 1, 10) * 60_000, () => void again());
    return true;
  };

  return [
    {
      name: 'user/edit-disruption',
      weight: 1,
      happen: (random) => editPool(random, () => ({ spec: { disruption: disruptionOf(random) } })),
    },
    {
      name: 'user/edit-budgets',
      weight: 1,
      happen: (random) => editPool(random, () => ({ spec: { disruption: { budgets: budgetsOf(random) } } })),
    },
    {
      name: 'user/edit-template',
      weight: 0.6,
      isSweeping: true,
      happen: (random) =>
        editPool(random, () => {
          return { spec: { template: { metadata: { labels: { 'example.com/revision': `r${hands.next()}` } } } } };
        }),
    },
    {
      name: 'user/edit-limits',
      weight: 0.6,
      happen: async (random) => {
        const pool = pick(
          random,
          pools().filter(({ spec }) => spec.limits),
        );
        if (!pool) return false;
        const limits = limitsFor(random, hands.shape.pods);
        await ignoreNotFound(karpenter.resource(nodePoolKind).patch(pool.metadata.name!, { spec: { limits } }));
        return true;
      },
    },
    {
      name: 'user/edit-weight',
      weight: 0.4,
      happen: (random) => editPool(random, () => ({ spec: { weight: between(random, 1, 99) } })),
    },
    { name: 'user/remove-pool', weight: 0.15, isSweeping: true, happen: removePool },
    { name: 'user/drain', weight: 0.7, happen: drain },
    { name: 'user/cordon', weight: 0.7, happen: (random) => editNode(random, { spec: { unschedulable: true } }) },
    {
      name: 'user/uncordon',
      weight: 1,
      happen: (random) =>
        editNode(
          random,
          { spec: { unschedulable: null } },
          ours().filter(({ spec }) => spec?.unschedulable),
        ),
    },
    {
      name: 'user/delete-node',
      weight: 0.7,
      happen: async (random) => {
        const node = pick(random, ours());
        if (!node) return false;
        await ignoreNotFound(workload.resource(kinds.Node).delete(node.metadata.name!));
        return true;
      },
    },
    {
      name: 'user/delete-claim',
      weight: 1,
      happen: async (random) => {
        const claim = pick(random, facts.list<NodeClaim>(collections.claims));
        if (!claim) return false;
        await ignoreNotFound(karpenter.resource(nodeClaimKind).delete(claim.metadata.name!));
        return true;
      },
    },
    {
      name: 'user/force-claim',
      weight: 0.4,
      // Takes off the finalizer, mostly of what neither comes nor goes by itself: the machine is left to be found.
      happen: async (random) => {
        const claims = facts.list<NodeClaim>(collections.claims);
        const stuck = claims.filter((claim) => claim.metadata.deletionTimestamp !== undefined || !isRegistered(claim));
        const claim = pick(random, stuck.length > 0 && chance(random, 0.7) ? stuck : claims);
        if (!claim) return false;
        const { name = '' } = claim.metadata;
        await ignoreNotFound(karpenter.resource(nodeClaimKind).delete(name));
        await ignoreNotFound(karpenter.resource(nodeClaimKind).patch(name, { metadata: { finalizers: null } }));
        return true;
      },
    },
    {
      name: 'user/note',
      weight: 2,
      happen: (random) => {
        const value = `v${hands.next()}`;
        const notes = { labels: { 'example.com/owner': value }, annotations: { 'example.com/note': value } };
        const patch = { metadata: notes };
        if (chance(random, 0.4)) return editNode(random, patch);
        const claim = pick(random, facts.list<NodeClaim>(collections.claims));
        if (!claim) return false;
        return ignoreNotFound(karpenter.resource(nodeClaimKind).patch(claim.metadata.name!, patch)).then(() => true);
      },
    },
    {
      name: 'user/taint',
      weight: 0.5,
      happen: async (random) => {
        const node = pick(random, ours());
        if (!node) return false;
        const taint = { key: 'example.com/maintenance', value: 'planned', effect: 'NoSchedule' };
        const taints = (node.spec?.taints ?? []).filter(({ key }) => key !== taint.key);
        const had = taints.length < (node.spec?.taints ?? []).length;
        const next = { spec: { taints: had ? taints : [...taints, taint] } };
        const patch = { metadata: { resourceVersion: node.metadata.resourceVersion }, ...next };
        await workload
          .resource(kinds.Node)
          .patch(node.metadata.name!, patch, { type: 'merge' })
          .catch(() => undefined);
        return true;
      },
    },
    {
      name: 'user/protect-node',
      weight: 0.5,
      happen: (random) => {
        const value = chance(random, 0.5) ? 'true' : null;
        return editNode(random, { metadata: { annotations: { [annotations.doNotDisrupt]: value } } });
      },
    },
    {
      name: 'user/protect-pod',
      weight: 1,
      happen: async (random) => {
        const pod = pick(
          random,
          facts.list<Pod>(collections.pods).filter(({ metadata }) => metadata.namespace === namespace),
        );
        if (!pod) return false;
        const value = oneOf(random, ['true', '10m', null, null]);
        // Told apart from what a template brought: it may come a moment too late to be seen.
        const byHand = { [annotations.doNotDisrupt]: value, 'example.com/protected-by-hand': 'true' };
        const patch = { metadata: { annotations: byHand } };
        await ignoreNotFound(workload.resource(kinds.Pod).patch(pod.metadata.name!, patch, { namespace }));
        return true;
      },
    },
  ];
}

function kindOf({ apiVersion, kind }: NodePool): { apiVersion: string; kind: string } {
  return { apiVersion: apiVersion!, kind: kind! };
}

function isRegistered({ status }: NodeClaim): boolean {
  return status?.conditions?.some(({ type, status: is }) => type === 'Registered' && is === 'True') ?? false;
}
