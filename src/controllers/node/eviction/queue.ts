// SPDX-License-Identifier: Apache-2.0
// The queue of pods that must leave their node. Each is asked through the eviction API, again and again, within its
// disruption budgets; only when its node's deadline comes is it deleted against them.
// Reads and writes the cluster `workload`; reads NodeClaims of `karpenter`.
import { getCondition, nodeClaimConditions } from '../../../api/conditions.ts';
import { planted } from '../../../base/defects.ts';
import { type ApiError, apiErrorOf, isConflict, isNotFound, isTooManyRequests } from '../../../kube/api-error.ts';
import { kinds, type Pod } from '../../../kube/kinds.ts';
import { keyOf } from '../../../kube/object.ts';
import { formatTime } from '../../../kube/time.ts';
import type { Controller, ReconcileContext, Result } from '../../../runtime/controller.ts';
import type { Logger } from '../../../runtime/logging.ts';
import type { Counter } from '../../../runtime/metrics.ts';
import { BucketLimiter, ExponentialBackoff, MaxOfLimiter, scaledBucket } from '../../../runtime/rate-limiters.ts';
import { isActive, isEvictable } from '../../../state/pod-predicates.ts';
import type { ControllerContext } from '../../nodeclaim/context.ts';
import { disrupted, evicted, evictionBlocked } from './events.ts';
import { forcedGraceSeconds, isForcedDeletionDue } from './forced-deletion.ts';
import { evictionMetrics } from './metrics.ts';
import { Turns } from './turns.ts';

const concurrent = [100, 5000] as const;
/** The API server has no code of its own for this refusal. */
const severalBudgets = 'This pod has more than one PodDisruptionBudget';

interface Entry {
  readonly uid: string;
  deadlineMs: number | undefined;
}

/** Pods on their way out. It forgets one as soon as it is going, or as its node stays after all. */
export class EvictionQueue {
  readonly #context: ControllerContext;
  readonly controller: Controller;
  readonly #requests: Counter<'code'>;
  readonly #drained: Counter<'reason'>;
  readonly #turns: Turns;
  /** By `namespace/name`. */
  readonly #entries = new Map<string, Entry>();

  constructor({ context }: { readonly context: ControllerContext }) {
    const { clock, metrics } = context;
    this.#context = context;
    this.#turns = new Turns(context);
    this.#requests = metrics.counter(evictionMetrics.requests);
    this.#drained = metrics.counter(evictionMetrics.drained);
    const { qps, burst } = scaledBucket(100, concurrent[0], context.concurrency(...concurrent));
    this.controller = context.controller({
      name: 'eviction-queue',
      kind: 'Pod',
      reconciler: { reconcile: (key, signal, run) => this.#reconcile(key, signal, run) },
      concurrent,
      limiter: new MaxOfLimiter(new ExponentialBackoff(100, 10_000), new BucketLimiter(clock, qps, burst)),
    });
  }

  /** Wants pods gone, at the latest by the deadline. Of several deadlines for a pod the earliest counts. */
  add(pods: Iterable<Pod>, deadlineMs?: number): void {
    for (const pod of pods) this.#add(pod, deadlineMs);
  }

  has(pod: Pod): boolean {
    return this.#entries.get(keyOf(pod))?.uid === pod.metadata.uid;
  }

  #add(pod: Pod, deadlineMs: number | undefined): void {
    const key = keyOf(pod);
    const uid = pod.metadata.uid ?? '';
    let entry = this.#entries.get(key);
    const known = entry?.uid === uid;
    if (!entry || !known) {
      entry = { uid, deadlineMs };
      this.#entries.set(key, entry);
    }
    if (deadlineMs !== undefined) entry.deadlineMs = Math.min(entry.deadlineMs ?? deadlineMs, deadlineMs);
    // One that waits for its next try goes on waiting, unless its time is over.
    if (isForcedDeletionDue(pod, entry.deadlineMs, this.#context.clock.now())) this.controller.enqueue(key);
    else if (!known) this.controller.enqueue(key, { afterMs: this.#turns.delayOf(pod) });
  }

  async #reconcile(key: string, signal: AbortSignal, run: ReconcileContext): Promise<Result> {
    const entry = this.#entries.get(key);
    const pod = this.#context.state.sources.pods.get(key);
    if (!entry || !pod || pod.metadata.uid !== entry.uid || !this.#nodeGoes(pod)) return this.#done(key, entry);
    const now = this.#context.clock.now();
    const { deadlineMs } = entry;
    if (deadlineMs !== undefined && isForcedDeletionDue(pod, deadlineMs, now)) {
      await this.#delete(pod, deadlineMs, signal, run.log);
      return this.#done(key, entry);
    }
    if (!isActive(pod)) return this.#done(key, entry);
    if (!isEvictable(pod, now)) return { requeue: true };
    return (await this.#evict(pod, signal)) ? this.#done(key, entry) : { requeue: true };
  }

  /** Forgets the pod, unless another one of its name was added meanwhile. */
  #done(key: string, entry: Entry | undefined): Result {
    if (entry && this.#entries.get(key) === entry) this.#entries.delete(key);
    return {};
  }

  /** Only a node that is being deleted is drained. */
  #nodeGoes(pod: Pod): boolean {
    return this.#nodeOf(pod)?.metadata.deletionTimestamp !== undefined;
  }

  #nodeOf(pod: Pod) {
    return this.#context.state.sources.nodes.get(pod.spec.nodeName ?? '');
  }

  async #delete(pod: Pod, deadlineMs: number, signal: AbortSignal, log: Logger): Promise<void> {
    const { clusters, clock } = this.#context;
    const { name = '', namespace, uid = '' } = pod.metadata;
    const gracePeriodSeconds = forcedGraceSeconds(deadlineMs, clock.now());
    clusters.workload.events.publish(disrupted(pod, deadlineMs, gracePeriodSeconds));
    log.debug('deleting pod', {
      'pod.terminationGracePeriodSeconds': pod.spec.terminationGracePeriodSeconds,
      'delete.gracePeriodSeconds': gracePeriodSeconds,
      'nodeclaim.terminationTime': formatTime(deadlineMs),
    });
    try {
      await clusters.workload.client
        .resource(kinds.Pod)
        .delete(name, { namespace, gracePeriodSeconds, preconditions: { uid }, signal });
    } catch (error) {
      if (!isGoneOrAnother(error)) throw error;
    }
  }

  /** Asks once. Gives whether the pod is on its way (or gone); throws when asking failed for no fault of the pod. */
  async #evict(pod: Pod, signal: AbortSignal): Promise<boolean> {
    const { workload } = this.#context.clusters;
    const { name = '', namespace, uid = '' } = pod.metadata;
    try {
      const pods = workload.client.resource(kinds.Pod);
      const how = {
        namespace,
        preconditions: { uid },
        signal,
        ...(planted('cuts-grace') ? { gracePeriodSeconds: 1 } : {}),
      };
      await (planted('ignores-disruption-budgets') ? pods.delete(name, how) : pods.evict(name, how));
    } catch (error) {
      const refusal = apiErrorOf(error);
      if (refusal) this.#requests.inc({ code: String(refusal.status) });
      if (isGoneOrAnother(error)) return true;
      const problem = refusal && blockedBy(refusal);
      const node = this.#nodeOf(pod);
      if (problem && node) workload.events.publish(evictionBlocked(node, pod, problem));
      if (problem || isTooManyRequests(error)) return false;
      throw error;
    }
    const reason = this.#reasonOf(pod);
    this.#requests.inc({ code: '200' });
    this.#drained.inc({ reason });
    workload.events.publish(evicted(pod, reason));
    return true;
  }

  /** Why the pod's node is disrupted, as its NodeClaim says. */
  #reasonOf(pod: Pod): string {
    const claim = this.#context.state.nodeByName(pod.spec.nodeName ?? '')?.nodeClaim;
    const condition = claim && getCondition(claim, nodeClaimConditions.disruptionReason);
    return condition?.status === 'True' && condition.reason ? condition.reason : 'Forceful Termination';
  }
}

/** The pod does not exist any more, or one of the same name has taken its place. */
function isGoneOrAnother(error: unknown): boolean {
  return isNotFound(error) || isConflict(error);
}

/** What budgets have to do with a refusal; undefined when it is about something else. */
function blockedBy({ status, body }: ApiError): string | undefined {
  if (body.message?.startsWith(severalBudgets)) return 'eviction does not support multiple PDBs';
  // A server that is merely busy answers with the same code.
  const causes = body.details?.causes ?? [];
  const byBudget = status === 429 && causes.some(({ reason }) => reason === 'DisruptionBudget');
  return byBudget ? 'evicting pod violates a PDB' : undefined;
}
