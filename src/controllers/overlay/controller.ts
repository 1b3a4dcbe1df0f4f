// SPDX-License-Identifier: Apache-2.0
// Which NodeOverlays are in force: those that are valid and contradict no other of the same weight. Writes NodeOverlays in the
// cluster `karpenter`.
import { falseCondition, trueCondition } from '../../api/conditions.ts';
import { extendLabelSet, type LabelSet } from '../../api/labels.ts';
import {
  byOverlayPrecedence,
  type NodeOverlay,
  nodeOverlayConditionTypes,
  nodeOverlayKind,
  overlayValidationSucceeded,
} from '../../api/node-overlay.ts';
import type { NodePool } from '../../api/node-pool.ts';
import { validateNodeOverlay } from '../../api/validation.ts';
import { deepEqual } from '../../base/freeze.ts';
import { changesPrice, type OverlayStore, touchedOfferings } from '../../cloud/overlays.ts';
import type { CloudProvider, InstanceType } from '../../cloud/provider.ts';
import type { CloudRegistry } from '../../cloud/registry.ts';
import type { ResourceType } from '../../kube/object.ts';
import type { Controller } from '../../runtime/controller.ts';
import type { ControllerContext } from '../nodeclaim/context.ts';
import { Draft } from '../nodeclaim/draft.ts';
import { ObjectStore } from '../nodeclaim/object-store.ts';

const everything = 'overlays';
const againMs = 6 * 3_600_000;

/** What one pool is sold. */
interface Shelf {
  readonly pool: NodePool;
  readonly cloud: CloudProvider;
  readonly types: readonly InstanceType[];
}

/** The controller `nodeoverlay.controller`. `clouds` are the providers without overlays. */
export function overlayController(context: ControllerContext, store: OverlayStore, clouds: CloudRegistry): Controller {
  const { pools, clock, state } = context;
  const overlays = new ObjectStore<NodeOverlay>(
    context.clusters.karpenter,
    nodeOverlayKind as ResourceType<NodeOverlay>,
    {
      tolerateMissing: true,
    },
  );
  const known = clouds.providers.map(({ labels }) => labels).reduce(extendedBy);
  const controller = context.controller({
    name: 'nodeoverlay.controller',
    kind: 'NodeOverlay',
    concurrent: 1,
    reconciler: {
      async reconcile(_, signal) {
        const { shelves, failure } = await shelvesOf(context, clouds, signal);
        const accepted: NodeOverlay[] = [];
        for (const overlay of overlays.list().sort(byOverlayPrecedence)) {
          const draft = new Draft(overlay, nodeOverlayConditionTypes, clock);
          const { problems } = validateNodeOverlay(overlay, known);
          const rival = problems.length > 0 ? undefined : accepted.find((other) => contradict(overlay, other, shelves));
          draft.set(
            problems.length > 0
              ? falseCondition(overlayValidationSucceeded, 'RuntimeValidation', problems.join('; '))
              : rival
                ? falseCondition(
                    overlayValidationSucceeded,
                    'Conflict',
                    `NodeOverlay ${rival.metadata.name} of the same weight changes the same`,
                  )
                : trueCondition(overlayValidationSucceeded),
          );
          if (problems.length === 0 && !rival) accepted.push(overlay);
          if (draft.changed) await draft.save(overlays, signal);
        }
        if (!store.accepted || !deepEqual(store.accepted.map(wishOf), accepted.map(wishOf))) {
          store.accepted = accepted;
          state.markUnconsolidated();
        }
        if (failure !== undefined) throw failure;
        return { requeueAfterMs: againMs };
      },
    },
  });
  const keys = (): string[] => [everything];
  const when = (object: { metadata: { generation?: number } }, old?: { metadata: { generation?: number } }): boolean =>
    object.metadata.generation !== old?.metadata.generation;
  controller.watch(overlays.informer, { keys, when }).watch(pools.informer, { keys, when });
  for (const nodeClasses of context.nodeClasses) controller.watch(nodeClasses, { keys, when });
  // Also without any overlay: until it has been looked, nothing is bought.
  controller.enqueue(everything);
  return controller.requires(pools.informer);
}

function wishOf({ metadata, spec }: NodeOverlay): unknown {
  return [metadata.name, spec];
}

function extendedBy(a: LabelSet, b: LabelSet): LabelSet {
  return extendLabelSet(a, { wellKnown: [...b.wellKnown], restrictedDomains: [...b.restrictedDomains] });
}

/** What every pool is sold. A cloud that fails costs only its own pools, and another try. */
async function shelvesOf(
  context: ControllerContext,
  clouds: CloudRegistry,
  signal: AbortSignal,
): Promise<{ shelves: Shelf[]; failure: unknown }> {
  const shelves: Shelf[] = [];
  let failure: unknown;
  for (const pool of context.pools.list()) {
    const cloud = clouds.ofNodePool(pool);
    if (!cloud) continue;
    try {
      shelves.push({ pool, cloud, types: await cloud.instanceTypes(pool, signal) });
    } catch (error) {
      failure ??= error;
    }
  }
  return { shelves, failure };
}

/** Whether two overlays of the same weight would change the same price or the same resource somewhere. */
function contradict(a: NodeOverlay, b: NodeOverlay, shelves: readonly Shelf[]): boolean {
  if ((a.spec.weight ?? 0) !== (b.spec.weight ?? 0)) return false;
  const bothPrice = changesPrice(a) && changesPrice(b);
  const resources = Object.keys(a.spec.capacity ?? {}).some((name) => name in (b.spec.capacity ?? {}));
  if (!bothPrice && !resources) return false;
  return shelves.some(({ pool, cloud, types }) =>
    types.some((type) => {
      const [one, other] = [a, b].map((overlay) => touchedOfferings(overlay, type, pool, cloud.labels));
      if (!one || !other) return false;
      return resources || (bothPrice && [...one].some((i) => other.has(i)));
    }),
  );
}
