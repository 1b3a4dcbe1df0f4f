// SPDX-License-Identifier: Apache-2.0
// Takes a Node out of service when it is deleted: nothing new is placed on it, its pods leave in order, their volumes
// are detached, the machine is given back, and only then may the Node go.
// Nodes, Pods and VolumeAttachments are of the cluster `workload`, NodeClaims of `karpenter`.
import { falseCondition, nodeClaimConditions, trueCondition, unknownCondition } from '../../../api/conditions.ts';
import { annotations, labels, terminationFinalizer } from '../../../api/labels.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import { disruptedTaint, mergeTaints } from '../../../api/taints.ts';
import { planted } from '../../../base/defects.ts';
import { wrap } from '../../../base/errors.ts';
import { isNodeClaimNotFound } from '../../../cloud/errors.ts';
import type { CloudProvider } from '../../../cloud/provider.ts';
import type { CloudRegistry } from '../../../cloud/registry.ts';
import { ignoreNotFound } from '../../../kube/api-error.ts';
import type { Informer } from '../../../kube/informer.ts';
import { kinds, type Node, type VolumeAttachment } from '../../../kube/kinds.ts';
import type { Controller, ReconcileContext, Result } from '../../../runtime/controller.ts';
import type { Logger } from '../../../runtime/logging.ts';
import { BucketLimiter, ExponentialBackoff, MaxOfLimiter, scaledBucket } from '../../../runtime/rate-limiters.ts';
import type { ControllerContext } from '../../nodeclaim/context.ts';
import type { Draft } from '../../nodeclaim/draft.ts';
import { protectionEvents } from '../../pod-protection.ts';
import type { EvictionQueue } from '../eviction/queue.ts';
import { nextDrainStep, nextDrainStepAt } from './drain.ts';
import { awaitingVolumeDetachment, failedToDrain, terminationGracePeriodExpiring } from './events.ts';
import { terminationMetrics } from './metrics.ts';
import { blockingAttachments } from './volumes.ts';

const concurrent = [100, 5000] as const;
/** How soon to look again where nobody tells of a change. */
const pollMs = 1000;
/** How soon to look again where every change is told of: users hear again what a drain waits for. */
const reminderMs = 10_000;
const instancePollMs = 5000;
/** A pod that the scheduler bound just before it saw the taint must be drained, too. */
const shortestDrainMs = 5000;

export interface NodeTerminationOptions {
  readonly context: ControllerContext;
  readonly evictions: EvictionQueue;
}

/** A node that goes, and what is known about it. */
interface Termination {
  readonly node: Node;
  /** Absent when none or several carry the node's provider id: then nobody speaks for the machine. */
  readonly claim: Draft<NodeClaim> | undefined;
  readonly provider: CloudProvider;
  readonly deadlineMs: number | undefined;
  readonly signal: AbortSignal;
}

/** When to look again; undefined when the step is over. */
type Wait = number | undefined;

const { drained, volumesDetached, instanceTerminating } = nodeClaimConditions;

/** The controller `node.termination`. A restart at any point goes on where the objects say it stopped. */
export class NodeTermination {
  readonly #context: ControllerContext;
  readonly #evictions: EvictionQueue;
  readonly #clouds: CloudRegistry;
  readonly controller: Controller;
  readonly #attachments: Informer<VolumeAttachment>;

  constructor({ context, evictions }: NodeTerminationOptions) {
    const { clusters, clock, state } = context;
    this.#context = context;
    this.#evictions = evictions;
    this.#clouds = context.cloudsFor('node.termination');
    this.#attachments = clusters.workload.informers.get(kinds.VolumeAttachment);
    this.#attachments.addIndex('nodeName', ({ spec }) => spec.nodeName);
    const { qps, burst } = scaledBucket(10, concurrent[0], context.concurrency(...concurrent));
    this.controller = context
      .controller({
        name: 'node.termination',
        kind: 'Node',
        reconciler: { reconcile: (name, signal, run) => this.#reconcile(name, signal, run) },
        concurrent,
        limiter: new MaxOfLimiter(new ExponentialBackoff(100, 10_000), new BucketLimiter(clock, qps, burst)),
      })
      .watch(context.nodes.informer, { when: isGoing })
      // What a drain waits for, and until when it may.
      .watch(state.sources.pods, { keys: ({ spec }) => this.#goingNode(spec.nodeName) })
      .watch(context.claims.informer, {
        keys: (claim) => context.nodesOf(claim).flatMap(({ metadata }) => this.#goingNode(metadata.name)),
        when: ({ metadata: { annotations: own, deletionTimestamp } }, old) =>
          own?.[annotations.terminationTimestamp] !== old?.metadata.annotations?.[annotations.terminationTimestamp] ||
          deletionTimestamp !== old?.metadata.deletionTimestamp,
      })
      .requires(state.sources.persistentVolumeClaims, this.#attachments);
  }

  /** The name, if it is that of a node that goes. */
  #goingNode(name = ''): string[] {
    const node = name === '' ? undefined : this.#context.nodes.get(name);
    return node && isGoing(node) ? [name] : [];
  }

  async #reconcile(name: string, signal: AbortSignal, run: ReconcileContext): Promise<Result> {
    const { claims, nodes } = this.#context;
    const node = nodes.get(name);
    if (!node || !isGoing(node)) return {};
    const found = this.#context.claimsOf(node);
    const claim = found.length === 1 ? found[0] : undefined;
    const provider = (claim && this.#clouds.ofNodeClaim(claim)) ?? this.#clouds.ofNode(node);
    if (!provider) return {};
    const log = claim ? run.log.with({ NodeClaim: { name: claim.metadata.name } }) : run.log;
    if (claim && claim.metadata.deletionTimestamp === undefined) await claims.delete(claim, signal);
    if (!isReady(node) && (await isMachineGone(provider, node, signal))) {
      await this.#letGo(node, signal, log);
      return {};
    }
    const deadlineMs = this.#deadlineOf(node, claim, log);
    await this.#cordon(node, signal, log);
    // The deletion may have changed it.
    const newest = claim && claims.get(claim.metadata.name ?? '');
    const draft = newest && this.#context.draftOfClaim(newest);
    const requeueAfterMs = await this.#terminate({ node, claim: draft, provider, deadlineMs, signal });
    if (requeueAfterMs !== undefined && !planted('node-let-go-too-early')) return { requeueAfterMs };
    await this.#letGo(node, signal, log);
    return {};
  }

  /** When the node must be gone; undefined when it has all the time its pods need. */
  #deadlineOf(node: Node, claim: NodeClaim | undefined, log: Logger): number | undefined {
    const annotation = annotations.terminationTimestamp;
    const value = claim?.metadata.annotations?.[annotation];
    if (value === undefined || planted('ignores-termination-grace-period')) return undefined;
    const deadlineMs = Date.parse(value);
    if (Number.isNaN(deadlineMs)) {
      // Nobody's pods are deleted for a time that cannot be read.
      log.error('ignoring a termination time that is none', { annotation, value });
      return undefined;
    }
    this.#context.clusters.workload.events.publish(terminationGracePeriodExpiring(node, value));
    return deadlineMs;
  }

  /** Nothing new is placed on the node, and load balancers send it nothing more. */
  async #cordon(node: Node, signal: AbortSignal, log: Logger): Promise<void> {
    const taints = node.spec?.taints ?? [];
    const merged = mergeTaints(taints, [disruptedTaint]);
    const isTainted = merged.length === taints.length;
    if (isTainted && node.metadata.labels?.[labels.excludeFromLoadBalancers] === 'karpenter') return;
    const own = { ...node.metadata.labels, [labels.excludeFromLoadBalancers]: 'karpenter' };
    const after: Node = {
      ...node,
      metadata: { ...node.metadata, labels: own },
      spec: { ...node.spec, taints: planted('overwrites-foreign-taints') ? [disruptedTaint] : merged },
    };
    await this.#context.nodes.patch(node, after, { signal, lock: true });
    const { key, effect } = disruptedTaint;
    log.info('tainted node', { 'taint.Key': key, 'taint.Value': '', 'taint.Effect': effect });
  }

  /** Runs the steps up to the first that is not over, and writes what they found. */
  async #terminate(termination: Termination): Promise<Wait> {
    try {
      return (
        this.#drain(termination) ??
        (await this.#confirmDrained(termination)) ??
        this.#awaitDetachment(termination) ??
        (await this.#terminateInstance(termination))
      );
    } finally {
      // Also what was reached before a failure.
      await this.#save(termination);
    }
  }

  async #save({ node, claim, signal }: Termination): Promise<void> {
    if (!claim?.changed) return;
    const isNews = claim.isTrue(drained) && !claim.before.status?.conditions?.some(isDrained);
    const saved = await claim.save(this.#context.claims, signal);
    if (saved && isNews) this.#context.metrics.counter(terminationMetrics.drained).inc({ nodepool: poolOf(node) });
  }

  #drain({ node, claim, deadlineMs }: Termination): Wait {
    const { state, clock, clusters } = this.#context;
    const now = clock.now();
    const pods = [...state.podsOn(node.metadata.name ?? '')];
    const { evict, force, waiting } = nextDrainStep(pods, deadlineMs, now);
    this.#evictions.add([...force, ...evict], deadlineMs);
    if (claim && !claim.condition(drained)) claim.set(unknownCondition(drained, 'Draining', 'Draining'));
    if (waiting > 0) {
      const wait = isReady(node) ? reminderMs : pollMs;
      clusters.workload.events.publish(
        failedToDrain(node, waiting),
        ...pods.flatMap((pod) => protectionEvents(pod, now)),
      );
      return Math.min(wait, nextDrainStepAt(pods, deadlineMs, now) - now);
    }
    if (!claim || claim.isTrue(drained)) return undefined;
    const since = Date.parse(claim.condition(drained)!.lastTransitionTime);
    if (now < since) {
      // The clock was set back: the wait begins anew.
      claim.clear(drained);
      claim.set(unknownCondition(drained, 'Draining', 'Draining'));
      return shortestDrainMs;
    }
    if (now - since < shortestDrainMs) return shortestDrainMs - (now - since);
    claim.set(trueCondition(drained));
    return undefined;
  }

  /**
   * Asks the API server itself, once, before the machine goes: a watch may be late, and a pod that it has not told of yet
   * would die with the machine.
   */
  async #confirmDrained({ node, claim, deadlineMs, signal }: Termination): Promise<Wait> {
    if (claim?.isTrue(instanceTerminating) || planted('trusts-a-stale-cache')) return undefined;
    const fieldSelector = `spec.nodeName=${node.metadata.name}`;
    const { items } = await this.#context.clusters.workload.client.resource(kinds.Pod).list({ fieldSelector, signal });
    const { waiting } = nextDrainStep(items, deadlineMs, this.#context.clock.now());
    if (waiting === 0) return undefined;
    claim?.set(unknownCondition(drained, 'Draining', 'Draining'));
    return pollMs;
  }

  #awaitDetachment({ node, claim, deadlineMs }: Termination): Wait {
    const { state, clock, clusters } = this.#context;
    const name = node.metadata.name ?? '';
    const now = clock.now();
    const blocking = blockingAttachments(
      this.#attachments.byIndex('nodeName', name),
      state.podsOn(name),
      (key) => state.sources.persistentVolumeClaims.get(key),
      now,
    );
    if (blocking.length === 0) {
      claim?.set(trueCondition(volumesDetached));
      return undefined;
    }
    if (deadlineMs !== undefined && now > deadlineMs) {
      const reason = 'TerminationGracePeriodElapsed';
      claim?.set(falseCondition(volumesDetached, reason, reason));
      return undefined;
    }
    const reason = 'AwaitingVolumeDetachment';
    clusters.workload.events.publish(awaitingVolumeDetachment(node, blocking));
    claim?.set(unknownCondition(volumesDetached, reason, reason));
    return pollMs;
  }

  async #terminateInstance({ claim, provider, signal }: Termination): Promise<Wait> {
    if (!claim) return undefined;
    let isGone = false;
    try {
      await provider.delete(claim.object, signal);
    } catch (error) {
      if (!isNodeClaimNotFound(error)) throw wrap('terminating instance', error);
      isGone = true;
    }
    claim.set(trueCondition(instanceTerminating));
    return isGone ? undefined : instancePollMs;
  }

  /** Takes our finalizer off: the Node goes. */
  async #letGo(node: Node, signal: AbortSignal, log: Logger): Promise<void> {
    const { metrics, clock, clusters } = this.#context;
    const { name = '', uid, creationTimestamp, deletionTimestamp } = node.metadata;
    // Takes one item out of the list, whatever others did to it meanwhile; and only of the node that was meant.
    const patch = { metadata: { uid, '$deleteFromPrimitiveList/finalizers': [terminationFinalizer] } };
    const nodes = clusters.workload.client.resource(kinds.Node);
    if (!(await ignoreNotFound(nodes.patch(name, patch, { type: 'strategic', signal })))) return;
    const nodepool = poolOf(node);
    const secondsSince = (time: string): number => (clock.now() - Date.parse(time)) / 1000;
    metrics.counter(terminationMetrics.terminated).inc({ nodepool, zone: node.metadata.labels?.[labels.zone] ?? '' });
    metrics.summary(terminationMetrics.duration).observe({ nodepool }, secondsSince(deletionTimestamp!));
    if (creationTimestamp)
      metrics.histogram(terminationMetrics.lifetime).observe({ nodepool }, secondsSince(creationTimestamp));
    log.info('deleted node');
  }
}

/** Deleted, and held back by us. */
function isGoing({ metadata }: Node): boolean {
  return metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).includes(terminationFinalizer);
}

function isDrained({ type, status }: { readonly type: string; readonly status: string }): boolean {
  return type === drained && status === 'True';
}

function isReady(node: Node): boolean {
  return node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
}

/** Whether the cloud says that the machine does not exist. Throws when it cannot say. */
async function isMachineGone(provider: CloudProvider, node: Node, signal: AbortSignal): Promise<boolean> {
  try {
    await provider.get(node.spec?.providerID ?? '', signal);
    return false;
  } catch (error) {
    if (isNodeClaimNotFound(error)) return true;
    throw wrap('getting instance', error);
  }
}

function poolOf(node: Node): string {
  return node.metadata.labels?.[labels.nodePool] ?? '';
}
