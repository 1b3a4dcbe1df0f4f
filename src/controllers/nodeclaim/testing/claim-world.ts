// SPDX-License-Identifier: Apache-2.0
// The test world with the verbs that tests of NodeClaim and NodePool controllers share.
import { nodeClaimConditions } from '../../../api/conditions.ts';
import { labels } from '../../../api/labels.ts';
import { type NodeClaim, type NodeClaimSpec, nodeClaimKind } from '../../../api/node-claim.ts';
import type { NodePool } from '../../../api/node-pool.ts';
import { nodeClaim } from '../../../api/testing/objects.ts';
import { isConflict } from '../../../kube/api-error.ts';
import { kinds, type Node } from '../../../kube/kinds.ts';
import type { ResourceType } from '../../../kube/object.ts';
import type { Controller } from '../../../runtime/controller.ts';
import { type TestWorld, type TestWorldOptions, testWorld } from '../../testing/world.ts';
import { ControllerContext } from '../context.ts';
import { lifecycleController } from '../lifecycle/controller.ts';

const notReady = 'node.kubernetes.io/not-ready';
export const claimType = nodeClaimKind as ResourceType<NodeClaim>;

export interface ClaimWorld extends Verbs {
  readonly world: TestWorld;
  readonly context: ControllerContext;
}

interface Verbs {
  /** Runs controllers and lets them settle. */
  run(...factories: readonly ((context: ControllerContext) => Controller)[]): Promise<void>;
  /** Writes a NodeClaim, of a pool where one is given; nothing has happened to it yet when this returns. */
  write(name: string, parts?: ClaimParts): Promise<NodeClaim>;
  /** The NodeClaim as it is stored; undefined when it is gone. */
  claim(name: string): Promise<NodeClaim | undefined>;
  /** The Node of a NodeClaim. */
  nodeOf(name: string): Promise<Node | undefined>;
  /** `status reason` of a condition of a NodeClaim; '' when it does not have it. */
  condition(name: string, type: keyof typeof nodeClaimConditions | 'Ready'): Promise<string>;
  /** The Node reports, or stops to report, that it is ready. */
  setReady(nodeName: string, status: 'True' | 'False'): Promise<void>;
}

export interface ClaimParts {
  readonly pool?: NodePool;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly spec?: Partial<NodeClaimSpec>;
}

/** A world and the context of its controllers; with `lifecycle`, that controller runs already. */
export async function claimWorld(
  options: TestWorldOptions & { readonly lifecycle?: boolean } = {},
): Promise<ClaimWorld> {
  const world = await testWorld(options);
  playNodeLifecycle(world);
  const context = new ControllerContext(world);
  const verbs = verbsOf(world, context);
  if (options.lifecycle) await verbs.run(lifecycleController);
  return { world, context, ...verbs };
}

/** The API server taints new Nodes as not ready; the controller manager takes that away when they are. */
function playNodeLifecycle({ cloud, workload }: TestWorld): void {
  const appear = cloud.appear.bind(cloud);
  cloud.appear = async (providerID, parts) => {
    await appear(providerID, parts);
    const nodes = workload.resource(kinds.Node);
    const { items } = await nodes.list();
    for (const { metadata, spec } of items) if (spec?.providerID === providerID) await untaint(metadata.name ?? '');
  };
  const untaint = async (name: string): Promise<void> => {
    const nodes = workload.resource(kinds.Node);
    const { metadata, spec } = await nodes.get(name);
    const taints = spec?.taints?.filter(({ key }) => key !== notReady) ?? [];
    try {
      await nodes.patch(name, { metadata: { resourceVersion: metadata.resourceVersion }, spec: { taints } });
    } catch (error) {
      if (!isConflict(error)) throw error;
      await untaint(name);
    }
  };
}

function verbsOf(world: TestWorld, context: ControllerContext): Verbs {
  const claim = (name: string): Promise<NodeClaim | undefined> => world.find(claimType, name);
  return {
    claim,
    async run(...factories) {
      world.run(...factories.map((factory) => factory(context)));
      await world.until(() => [...context.nodeClasses].every(({ hasSynced }) => hasSynced));
    },
    async write(name, { pool, spec, ...metadata } = {}) {
      const plain = nodeClaim({ name, ...(spec ? { spec } : {}) });
      const owner = pool && {
        apiVersion: 'karpenter.sh/v1',
        kind: 'NodePool',
        name: pool.metadata.name ?? '',
        uid: pool.metadata.uid ?? '',
        blockOwnerDeletion: true,
      };
      const [stored] = await world.apply({
        ...plain,
        metadata: {
          name,
          ...metadata,
          labels: { ...metadata.labels, ...(pool ? { [labels.nodePool]: pool.metadata.name ?? '' } : {}) },
          ...(owner ? { ownerReferences: [owner] } : {}),
        },
      });
      return stored;
    },
    async nodeOf(name) {
      const providerID = (await claim(name))?.status?.providerID;
      return (await world.nodes()).find((node) => node.spec?.providerID === providerID);
    },
    async condition(name, type) {
      const wanted = type === 'Ready' ? type : nodeClaimConditions[type];
      const found = (await claim(name))?.status?.conditions?.find((condition) => condition.type === wanted);
      return found ? `${found.status} ${found.reason}` : '';
    },
    async setReady(nodeName, status) {
      const conditions = [{ type: 'Ready', status }];
      await world.workload.resource(kinds.Node).patchStatus(nodeName, { status: { conditions } });
      await world.settle();
    },
  };
}
