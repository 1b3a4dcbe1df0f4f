// SPDX-License-Identifier: Apache-2.0
// Finds what lost its other half: NodeClaims whose machine is gone, and machines whose NodeClaim is gone. Both are looked
// up once more, past every cache, before anything is deleted. Reads NodeClaims in the cluster `karpenter` and Nodes in
// `workload`, writes both.
import { KarpenterError, messageOf, wrap } from '../../../base/errors.ts';
import type { CloudProvider, Instance } from '../../../cloud/provider.ts';
import { type Controller, type ReconcileContext, type Result, singleton } from '../../../runtime/controller.ts';
import { ExponentialBackoff } from '../../../runtime/rate-limiters.ts';
import type { ControllerContext } from '../context.ts';
import { collectClaims } from './lost-claims.ts';
import { OrphanCollector } from './orphans.ts';

const name = 'nodeclaim.garbagecollection';
const periodMs = 2 * 60_000;
/** How soon to look again after the first failure: a look lists every machine, and clouds count their calls. */
const failedMs = 1000;
/** How soon to look again while an orphan drains or waits for its time. */
const pendingMs = 10_000;

/** The controller `nodeclaim.garbagecollection`. */
export function garbageCollectionController(context: ControllerContext): Controller {
  const { clock, log, metrics, claims, nodes } = context;
  const clouds = context.cloudsFor(name).providers;
  const collectors = new Map(clouds.map((cloud) => [cloud, new OrphanCollector(context, cloud)]));
  const controller = singleton({
    name,
    clock,
    log,
    metrics,
    // Never later than without a failure: nobody else notices, and one cloud that fails would keep the others waiting.
    limiter: new ExponentialBackoff(failedMs, periodMs),
    reconcile: async (signal, run) => {
      const failures: unknown[] = [];
      let pending = false;
      for (const [cloud, orphans] of collectors) {
        try {
          pending = (await collect(context, cloud, orphans, signal, run)) || pending;
        } catch (error) {
          // The other clouds are none the worse for it.
          failures.push(wrap(`collecting garbage of ${cloud.name}`, error));
        }
      }
      if (failures.length > 0) {
        throw new KarpenterError('KRP_GARBAGE_COLLECTION', failures.map(messageOf).join('; '), { cause: failures[0] });
      }
      return { requeueAfterMs: pending ? pendingMs : periodMs } satisfies Result;
    },
  });
  return controller.requires(claims.informer, nodes.informer);
}

/** One round over a cloud; gives whether something is under way. */
async function collect(
  context: ControllerContext,
  cloud: CloudProvider,
  orphans: OrphanCollector,
  signal: AbortSignal,
  { log }: ReconcileContext,
): Promise<boolean> {
  // Taken before the machines are listed: what comes up meanwhile is in neither.
  const claims = context.claims.list().filter((claim) => context.registry.ofNodeClaim(claim)?.name === cloud.name);
  const instances = once(await cloud.list(signal));
  const failures: unknown[] = [];
  // A machine that the cloud cannot tell of must not keep the others from being given back.
  await collectClaims({ context, cloud, claims, instances, signal, log }).catch((error) => failures.push(error));
  const pending = await orphans.collect(instances, signal, log);
  if (failures.length > 0) throw failures[0];
  return pending;
}

/** Pages of a list that changes meanwhile may tell of a machine twice. */
function once(instances: readonly Instance[]): Instance[] {
  return [...new Map(instances.map((instance) => [instance.providerID, instance])).values()];
}
