// SPDX-License-Identifier: Apache-2.0
// From a NodeClaim to a node and back: launch, registration, initialization, liveness, deletion. Reads and writes
// NodeClaims and NodePools in the cluster `karpenter`, Nodes in `workload`.
import { labels, terminationFinalizer } from '../../../api/labels.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import { KarpenterError, messageOf } from '../../../base/errors.ts';
import { deepEqual } from '../../../base/freeze.ts';
import type { CloudProvider } from '../../../cloud/provider.ts';
import type { CloudRegistry } from '../../../cloud/registry.ts';
import { isConflict } from '../../../kube/api-error.ts';
import type { Informer } from '../../../kube/informer.ts';
import { kinds, type Node, type ResourceSlice } from '../../../kube/kinds.ts';
import { keyOf } from '../../../kube/object.ts';
import type { Controller, ReconcileContext, Reconciler, Result } from '../../../runtime/controller.ts';
import { BucketLimiter, ExponentialBackoff, MaxOfLimiter, scaledBucket } from '../../../runtime/rate-limiters.ts';
import type { ControllerContext } from '../context.ts';
import { finalize } from './deletion.ts';
import { nodeNamesOf } from './device-pools.ts';
import { initialize } from './initialization.ts';
import { launch } from './launch.ts';
import { Launches } from './launches.ts';
import { checkLiveness } from './liveness.ts';
import { register } from './registration.ts';

const name = 'nodeclaim.lifecycle';
const fewest = 1000;
const most = 5000;
/** Somebody else wrote first: what they wrote is on its way to us. */
const conflictRetryMs = 50;

/** The controller `nodeclaim.lifecycle`. */
export function lifecycleController(context: ControllerContext): Controller {
  const { claims, nodes, clock, clusters } = context;
  // Looked at only where devices are scheduled: before Kubernetes 1.34 the kind may not exist.
  const slices = context.settings.ignoreDraRequests
    ? undefined
    : clusters.workload.informers.get(kinds.ResourceSlice, { tolerateMissing: true });
  const bucket = scaledBucket(10, fewest, context.concurrency(fewest, most));
  const controller = context.controller({
    name,
    kind: 'NodeClaim',
    concurrent: [fewest, most],
    reconciler: new LifecycleReconciler(context, slices),
    limiter: new MaxOfLimiter(new ExponentialBackoff(1000, 60_000), new BucketLimiter(clock, bucket.qps, bucket.burst)),
  });
  controller.watch(claims.informer, { when: claimMatters });
  controller.watch(nodes.informer, { keys: (node) => context.claimsOf(node).map(keyOf), when: nodeMatters });
  if (slices) {
    controller.watch(slices, {
      keys: (slice) => nodeNamesOf(slice).flatMap((node) => claimsOfNode(context, node)),
    });
  }
  return controller;
}

/** What is written about its progress is no news: a launch that fails must wait for its turn. */
function claimMatters(claim: NodeClaim, old?: NodeClaim): boolean {
  if (!old || claim.status?.providerID !== old.status?.providerID) return true;
  const [now, before] = [claim.metadata, old.metadata];
  return (
    now.deletionTimestamp !== before.deletionTimestamp ||
    !deepEqual(now.labels, before.labels) ||
    !deepEqual(now.annotations, before.annotations) ||
    !now.finalizers?.includes(terminationFinalizer)
  );
}

/** After its start, a node matters again when it goes; its heartbeats do not. */
function nodeMatters(node: Node, old?: Node): boolean {
  if (!old || node.metadata.labels?.[labels.initialized] !== 'true') return true;
  return (
    node.metadata.deletionTimestamp !== old.metadata.deletionTimestamp ||
    node.metadata.labels[labels.initialized] !== old.metadata.labels?.[labels.initialized] ||
    node.spec?.providerID !== old.spec?.providerID
  );
}

function claimsOfNode(context: ControllerContext, nodeName: string): string[] {
  const node = context.nodes.get(nodeName);
  return node ? context.claimsOf(node).map(keyOf) : [];
}

class LifecycleReconciler implements Reconciler {
  readonly #context: ControllerContext;
  readonly #clouds: CloudRegistry;
  readonly #slices: Informer<ResourceSlice> | undefined;
  readonly #launches = new Launches();

  constructor(context: ControllerContext, slices: Informer<ResourceSlice> | undefined) {
    this.#context = context;
    this.#clouds = context.cloudsFor(name);
    this.#slices = slices;
    context.claims.informer.addHandler({ deleted: (claim) => this.#launches.forget(claim) });
  }

  async reconcile(key: string, signal: AbortSignal, run: ReconcileContext): Promise<Result> {
    const claim = this.#context.claim(key);
    const cloud = claim && this.#clouds.ofNodeClaim(claim);
    if (!claim || !cloud) return {};
    try {
      return await (claim.metadata.deletionTimestamp === undefined
        ? this.#advance(claim, cloud, signal, run)
        : this.#end(claim, cloud, signal, run));
    } catch (error) {
      if (!isConflict(error)) throw error;
      return { requeueAfterMs: conflictRetryMs };
    }
  }

  #end(claim: NodeClaim, cloud: CloudProvider, signal: AbortSignal, run: ReconcileContext): Promise<Result> {
    const step = this.#step(claim, signal, run);
    const { nodeName } = claim.status ?? {};
    const log = nodeName ? step.log.with({ Node: { name: nodeName } }) : step.log;
    return finalize(claim, { ...step, log, cloud, launches: this.#launches });
  }

  /** One round through all steps; what they found is written before a failure is reported. */
  async #advance(found: NodeClaim, cloud: CloudProvider, signal: AbortSignal, run: ReconcileContext): Promise<Result> {
    const context = this.#context;
    // Nothing is launched for a NodeClaim that could vanish without us noticing.
    const claim = await this.#withFinalizer(found, signal);
    if (!claim) return {};
    const step = this.#step(claim, signal, run);
    const draft = context.draftOfClaim(claim);
    draft.complete();
    const failures: unknown[] = [];
    const attempt = async <R>(work: () => Promise<R>): Promise<R | undefined> => {
      try {
        return await work();
      } catch (error) {
        failures.push(error);
        return undefined;
      }
    };
    const launched = await attempt(() => launch(draft, { ...step, cloud, launches: this.#launches }));
    if (launched === false) return {};
    const hooks = context.registry.ofNodeClaim(claim)?.registrationHooks ?? [];
    const registration = await attempt(() => register(draft, { ...step, hooks }));
    await attempt(() => initialize(draft, { ...step, slices: this.#slices }));
    if (draft.changed && !(await draft.save(context.claims, signal))) return {};
    const liveness = await checkLiveness(draft, step);
    if (failures.length > 0) throw combined(failures);
    return soonest(registration ?? {}, liveness);
  }

  async #withFinalizer(claim: NodeClaim, signal: AbortSignal): Promise<NodeClaim | undefined> {
    const finalizers = claim.metadata.finalizers ?? [];
    if (finalizers.includes(terminationFinalizer)) return claim;
    const held = { ...claim, metadata: { ...claim.metadata, finalizers: [...finalizers, terminationFinalizer] } };
    return this.#context.claims.patch(claim, held, { signal, lock: true });
  }

  #step(claim: NodeClaim, signal: AbortSignal, run: ReconcileContext) {
    const { providerID } = claim.status ?? {};
    // The steps that know the Node name it themselves: a key must not come twice in a line.
    const log = providerID ? run.log.with({ 'provider-id': providerID }) : run.log;
    return { context: this.#context, log, signal };
  }
}

function soonest(...results: readonly Result[]): Result {
  const requeueAfterMs = Math.min(...results.map((result) => result.requeueAfterMs ?? Number.POSITIVE_INFINITY));
  return Number.isFinite(requeueAfterMs) ? { requeueAfterMs } : {};
}

/** All that went wrong in one round. Only when there was nothing but conflicts does it count as one. */
function combined(failures: readonly unknown[]): unknown {
  const cause = failures.find((failure) => !isConflict(failure)) ?? failures[0];
  if (failures.length === 1 || isConflict(cause)) return cause;
  return new KarpenterError('KRP_LIFECYCLE', failures.map(messageOf).join('; '), { cause });
}
