// SPDX-License-Identifier: Apache-2.0
// What operators do by hand: edit NodePools, cordon, drain and delete Nodes and NodeClaims, put notes on objects.
import { capacityBufferKind } from '../../api/capacity-buffer.ts';
import { annotations } from '../../api/labels.ts';
import { type NodeClaim, nodeClaimKind } from '../../api/node-claim.ts';
import { nodeOverlayKind } from '../../api/node-overlay.ts';
import { type NodePool, nodePoolKind } from '../../api/node-pool.ts';
import type { Random } from '../../base/random.ts';
import { ignoreNotFound } from '../../kube/api-error.ts';
import type { KubeClient } from '../../kube/client.ts';
import { kinds, type Node, type Pod } from '../../kube/kinds.ts';
import type { KubeObject } from '../../kube/object.ts';
import { collections } from '../collections.ts';
import type { Happening } from '../contract.ts';
import { between, chance, oneOf, pick } from '../draw.ts';
import { type Hands, namespace } from './hands.ts';
import { bufferOf, overlayOf } from './optional-objects.ts';
import { anchor, budgetsOf, disruptionOf, limitsFor, replicasFor } from './pools.ts';

/** What there is to do for users of features that are behind gates. */
function gatedHappenings(hands: Hands): Happening[] {
  const { karpenter, workload, facts, gates } = hands;
  const all: Happening[] = [];
  if (gates.StaticCapacity)
    all.push({
      name: 'user/scale-static',
      weight: 1,
      happen: async (random) => {
        const pools = facts.list<NodePool>(collections.pools).filter(({ spec }) => spec.replicas !== undefined);
        const pool = pick(random, pools);
        const replicas = replicasFor(random);
        if (!pool || pool.spec.replicas === replicas) return false;
        await ignoreNotFound(karpenter.resource(nodePoolKind).updateScale(pool.metadata.name!, replicas));
        return true;
      },
    });
  if (gates.NodeOverlay)
    all.push({
      name: 'user/overlay',
      weight: 0.4,
      happen: async (random) => {
        const overlays = facts.list(collections.overlays);
        const old = pick(random, overlays);
        if (old && overlays.length > 1) await karpenter.resource(nodeOverlayKind).delete(old.metadata.name!);
        else await karpenter.resource(nodeOverlayKind).create(overlayOf(random, `overlay-${hands.next()}`));
        return true;
      },
    });
  if (gates.CapacityBuffer)
    all.push({
      name: 'user/buffer',
      weight: 0.2,
      happen: async (random) => {
        const buffers = facts.list(collections.buffers);
        const old = pick(random, buffers);
        const resource = workload.resource(capacityBufferKind);
        if (old && buffers.length > 1) await resource.delete(old.metadata.name!, { namespace });
        else await resource.create(bufferOf(random, `buffer-${hands.next()}`));
        return true;
      },
    });
  return all;
}

export function userHappenings(hands: Hands): Happening[] {
  const { karpenter, workload, facts } = hands;
  const ours = (): Node[] =>
    facts.list<Node>(collections.nodes).filter((node) => node.metadata.labels?.['karpenter.sh/nodepool']);
  const pools = (): readonly NodePool[] => facts.list<NodePool>(collections.pools);
  const dynamic = (): NodePool[] => pools().filter(({ spec }) => spec.replicas === undefined);
  const editPool = async (random: Random, patchOf: (pool: NodePool) => object, of = pools()): Promise<boolean> => {
    const pool = pick(random, of);
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

  /** Changes the metadata of a Node or NodeClaim unless somebody else does meanwhile. Gives how to change it again. */
  const editHeld = async (random: Random, edit: Edit): Promise<((edit: Edit) => Promise<unknown>) | undefined> => {
    const isNode = chance(random, 0.5);
    const collection = isNode ? collections.nodes : collections.claims;
    const all: readonly KubeObject[] = isNode ? ours() : facts.list<NodeClaim>(collections.claims);
    const { name = '' } = pick(random, all)?.metadata ?? {};
    const change = async (wanted: Edit): Promise<boolean> => {
      const { metadata } = facts.get(collection, '', name) ?? {};
      const changed = metadata && wanted(metadata, isNode);
      if (!changed) return false;
      const patch = { metadata: { resourceVersion: metadata.resourceVersion, ...changed } };
      const type = { type: 'merge' } as const;
      if (isNode) await workload.resource(kinds.Node).patch(name, patch, type);
      else await karpenter.resource(nodeClaimKind).patch(name, patch, type);
      return true;
    };
    return (await change(edit)) ? change : undefined;
  };

  /** Somebody else's controller has something to do before the object may go, and is done with it after some minutes. */
  const holdFor = async (random: Random): Promise<boolean> => {
    const change = await editHeld(random, ({ finalizers = [], deletionTimestamp }) => {
      if (finalizers.includes(inventory) || deletionTimestamp !== undefined) return undefined;
      return { finalizers: [...finalizers, inventory] };
    });
    const letGo: Edit = ({ finalizers = [] }) => {
      const left = finalizers.filter((one) => one !== inventory);
      return left.length === finalizers.length ? undefined : { finalizers: left };
    };
    if (change) hands.clock.after(between(random, 1, 8) * 60_000, () => void change(letGo));
    return change !== undefined;
  };

  return [
    ...gatedHappenings(hands),
    {
      name: 'user/edit-disruption',
      weight: 0.4,
      happen: (random) => editPool(random, () => ({ spec: { disruption: disruptionOf(random) } })),
    },
    {
      name: 'user/edit-budgets',
      weight: 0.4,
      happen: (random) => editPool(random, () => ({ spec: { disruption: { budgets: budgetsOf(random) } } })),
    },
    {
      name: 'user/edit-template',
      weight: 0.6,
      reach: 'pool',
      happen: (random) =>
        editPool(random, () => {
          return { spec: { template: { metadata: { labels: { 'example.com/revision': `r${hands.next()}` } } } } };
        }),
    },
    {
      name: 'user/edit-limits',
      weight: 0.3,
      happen: async (random) => {
        const pool = pick(
          random,
          dynamic().filter(({ spec }) => spec.limits),
        );
        if (!pool) return false;
        const limits = { memory: null, nodes: null, ...limitsFor(random, hands.shape.pods) };
        await ignoreNotFound(karpenter.resource(nodePoolKind).patch(pool.metadata.name!, { spec: { limits } }));
        return true;
      },
    },
    {
      name: 'user/edit-weight',
      weight: 0.2,
      happen: (random) => editPool(random, () => ({ spec: { weight: between(random, 1, 99) } }), dynamic()),
    },
    { name: 'user/remove-pool', weight: 0.15, reach: 'pool', happen: removePool },
    { name: 'user/drain', weight: 0.7, reach: 'machine', happen: drain },
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
      reach: 'machine',
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
      reach: 'machine',
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
      reach: 'machine',
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
    { name: 'user/finalizer', weight: 0.4, happen: holdFor },
    {
      name: 'user/owner',
      weight: 0.4,
      happen: async (random) => {
        const uids = { nodes: await uidOf(workload), claims: await uidOf(karpenter) };
        return editHeld(random, ({ ownerReferences = [] }, isNode) => {
          const uid = isNode ? uids.nodes : uids.claims;
          if (ownerReferences.some((one) => one.uid === uid)) return undefined;
          const owner = { apiVersion: 'v1', kind: 'Namespace', name: namespace, uid };
          return { ownerReferences: [...ownerReferences, owner] };
        }).then((held) => held !== undefined);
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

/** What is to change of an object's metadata; undefined when nothing is. */
type Edit = (metadata: KubeObject['metadata'], isNode: boolean) => object | undefined;

/** Of the namespace of all that users run, in one of two clusters: a name does not tell which. */
async function uidOf(cluster: KubeClient): Promise<string> {
  return (await cluster.resource(kinds.Namespace).get(namespace)).metadata.uid ?? '';
}

const inventory = 'example.com/inventory';

function kindOf({ apiVersion, kind }: NodePool): { apiVersion: string; kind: string } {
  return { apiVersion: apiVersion!, kind: kind! };
}

function isRegistered({ status }: NodeClaim): boolean {
  return status?.conditions?.some(({ type, status: is }) => type === 'Registered' && is === 'True') ?? false;
}
