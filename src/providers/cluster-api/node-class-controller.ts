// SPDX-License-Identifier: Apache-2.0
// What a ClusterAPINodeClass says about itself: whether the management cluster answers, what it selects, and which of
// that cannot be used and why. Reads the management cluster, writes NodeClasses in the cluster `karpenter`.
import {
  type ClusterApiNodeClass,
  clusterApiNodeClassConditions,
  clusterApiNodeClassConditionTypes,
} from '../../api/cluster-api-node-class.ts';
import {
  type Condition,
  type ConditionUpdate,
  completeConditions,
  falseCondition,
  setCondition,
  trueCondition,
  unknownCondition,
} from '../../api/conditions.ts';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { deepEqual } from '../../base/freeze.ts';
import { ignoreNotFound } from '../../kube/api-error.ts';
import { SelectorError } from '../../kube/labels.ts';
import { formatTime } from '../../kube/time.ts';
import type { Cluster } from '../../runtime/clusters.ts';
import { Controller, type Result } from '../../runtime/controller.ts';
import type { Logger } from '../../runtime/logging.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { InvalidMember, Members } from './catalog.ts';
import { type Hub, HubUnavailableError } from './hub.ts';
import type { MemberReader } from './members.ts';

export interface NodeClassControllerOptions {
  readonly hub: Hub;
  readonly members: MemberReader;
  /** Where NodeClasses live. */
  readonly karpenter: Cluster;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

const { hubReachable, membersFound, membersValid } = clusterApiNodeClassConditions;
/** Price tables and templates are not watched. */
const againMs = 5 * 60_000;
/** Changes of the management cluster come in swarms. */
const settleMs = 1000;
const mostNamed = 5;

/** The controller `cluster-api.nodeclass`. */
export function nodeClassController(options: NodeClassControllerOptions): Controller {
  const { hub, members, clock, log, metrics } = options;
  const controller = new Controller({
    name: 'cluster-api.nodeclass',
    kind: 'ClusterAPINodeClass',
    clock,
    log,
    metrics,
    maxConcurrent: 10,
    reconciler: new NodeClassReconciler(options),
  }).watch(members.nodeClasses);
  let waiting = false;
  hub.onChange(() => {
    if (waiting) return;
    waiting = true;
    clock.after(settleMs, () => {
      waiting = false;
      for (const { metadata } of members.nodeClasses.list()) controller.enqueue(metadata.name ?? '');
    });
  });
  return controller;
}

class NodeClassReconciler {
  readonly #options: NodeClassControllerOptions;
  /** What was written last: a server that drops fields it does not know must not make us write for ever. */
  readonly #written = new Map<string, unknown>();

  constructor(options: NodeClassControllerOptions) {
    this.#options = options;
  }

  async reconcile(name: string, signal: AbortSignal): Promise<Result | void> {
    const { members, karpenter } = this.#options;
    const nodeClass = members.nodeClasses.get(name);
    if (!nodeClass) {
      this.#written.delete(name);
      return;
    }
    const { updates, count, invalid } = await this.#look(nodeClass, signal);
    const conditions = this.#conditions(nodeClass, updates);
    const wanted = { members: count, conditions };
    const { uid } = nodeClass.metadata;
    const isCounted = nodeClass.status?.members === count || deepEqual(this.#written.get(name), [uid, count]);
    if (nodeClass.status?.conditions === conditions && isCounted) return { requeueAfterMs: againMs };
    this.#report(nodeClass, invalid);
    this.#announce(nodeClass, updates);
    this.#written.set(name, [uid, count]);
    await ignoreNotFound(
      karpenter.client.resource(members.nodeClasses.type).patchStatus(name, { status: wanted }, { signal }),
    );
    return { requeueAfterMs: againMs };
  }

  async #look(
    nodeClass: ClusterApiNodeClass,
    signal: AbortSignal,
  ): Promise<{ updates: ConditionUpdate[]; count: number; invalid: readonly InvalidMember[] }> {
    const { hub, members } = this.#options;
    // At a start it has not been asked yet: that is no news.
    await hub.ready(signal).catch(() => undefined);
    const reachable =
      hub.problem === undefined
        ? trueCondition(hubReachable)
        : falseCondition(hubReachable, 'HubUnavailable', hub.problem);
    try {
      const found = await members.read(nodeClass, signal);
      return { updates: [reachable, ...judge(found)], count: found.valid.length, invalid: found.invalid };
    } catch (error) {
      if (error instanceof SelectorError) {
        const wrong = falseCondition(membersFound, 'SelectorInvalid', messageOf(error));
        return { updates: [reachable, wrong], count: 0, invalid: [] };
      }
      const down = falseCondition(hubReachable, 'HubUnavailable', messageOf(error));
      if (!(error instanceof HubUnavailableError)) {
        return { updates: [down], count: nodeClass.status?.members ?? 0, invalid: [] };
      }
      const unknown = unknownCondition(membersFound, 'HubUnavailable', 'the management cluster could not be asked');
      return { updates: [down, unknown], count: nodeClass.status?.members ?? 0, invalid: [] };
    }
  }

  #conditions(nodeClass: ClusterApiNodeClass, updates: readonly ConditionUpdate[]): readonly Condition[] {
    const now = formatTime(this.#options.clock.now());
    let conditions = completeConditions(clusterApiNodeClassConditionTypes, nodeClass, now);
    for (const update of updates) {
      const object = { ...nodeClass, status: { conditions: conditions as Condition[] } };
      conditions = setCondition(clusterApiNodeClassConditionTypes, object, update, now);
    }
    return conditions;
  }

  /** What is wrong now and was not, or was for another reason, is told by an event on the NodeClass. */
  #announce(nodeClass: ClusterApiNodeClass, updates: readonly ConditionUpdate[]): void {
    for (const { type, status, reason, message = '' } of updates) {
      // Members have an event each.
      if (status !== 'False' || reason === 'InvalidMembers') continue;
      const before = nodeClass.status?.conditions?.find((condition) => condition.type === type);
      if (before?.status === status && before.reason === reason) continue;
      this.#options.karpenter.events.publish({ object: nodeClass, type: 'Warning', reason, message });
    }
  }

  /** Each resource that had to be left out is told of by an event on the NodeClass. */
  #report(nodeClass: ClusterApiNodeClass, invalid: readonly InvalidMember[]): void {
    const { karpenter, log } = this.#options;
    for (const { key, problem } of invalid) {
      log.error('a member cannot be used', { member: key, problem });
      karpenter.events.publish({
        object: nodeClass,
        type: 'Warning',
        reason: 'InvalidMember',
        message: `${key}: ${problem}`,
      });
    }
  }
}

function judge({ valid, invalid, priceProblem }: Members): ConditionUpdate[] {
  const found =
    valid.length > 0
      ? trueCondition(membersFound)
      : falseCondition(
          membersFound,
          invalid.length > 0 ? 'NoValidMembers' : 'NoMembers',
          invalid.length > 0
            ? named(invalid)
            : 'no MachineDeployment or MachineSet carries the label node.cluster.x-k8s.io/karpenter-member and fits the selector, namespace and Cluster of this class',
        );
  const sound =
    invalid.length > 0
      ? falseCondition(membersValid, 'InvalidMembers', named(invalid))
      : priceProblem !== undefined
        ? falseCondition(membersValid, 'NoPriceTable', priceProblem)
        : trueCondition(membersValid);
  return [found, sound];
}

function named(invalid: readonly InvalidMember[]): string {
  const some = invalid.slice(0, mostNamed).map(({ key, problem }) => `${key}: ${problem}`);
  const more = invalid.length - some.length;
  return `${some.join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}
