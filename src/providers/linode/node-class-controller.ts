// SPDX-License-Identifier: Apache-2.0
// What a LinodeNodeClass says about itself: whether the account can be used, whether all it names exists, and the hash by
// which its machines drift. Keeps it until its NodeClaims are gone. Reads and writes NodeClasses and NodeClaims in the
// cluster `karpenter`.
import {
  type Condition,
  type ConditionUpdate,
  completeConditions,
  falseCondition,
  getCondition,
  nodeClaimConditions,
  setCondition,
  trueCondition,
  unknownCondition,
} from '../../api/conditions.ts';
import {
  type LinodeNodeClass,
  linodeNodeClassConditions,
  linodeNodeClassConditionTypes,
  linodeNodeClassKind,
} from '../../api/linode-node-class.ts';
import { type NodeClaim, nodeClaimKind } from '../../api/node-claim.ts';
import type { Clock } from '../../base/clock.ts';
import { deepEqual } from '../../base/freeze.ts';
import { ignoreNotFound } from '../../kube/api-error.ts';
import type { Informer } from '../../kube/informer.ts';
import { formatTime } from '../../kube/time.ts';
import type { Cluster } from '../../runtime/clusters.ts';
import { Controller, type Result } from '../../runtime/controller.ts';
import type { Logger } from '../../runtime/logging.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { type Account, LinodeAccountError } from './account.ts';
import { linodeAnnotations, nodeClassFinalizer } from './names.ts';
import { nodeClassHash, nodeClassHashVersion } from './node-class.ts';
import type { Problem, Validator, Verdict } from './validation.ts';

export interface NodeClassControllerOptions {
  readonly account: Account;
  readonly validator: Validator;
  /** Where NodeClasses and NodeClaims live. */
  readonly karpenter: Cluster;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

const { accountReady, validationSucceeded } = linodeNodeClassConditions;
const minute = 60_000;
const againMs = 10 * minute;
/** What is wrong is looked at more often: somebody is waiting. */
const wrongAgainMs = minute;

/** The controller `linode.nodeclass`. */
export function nodeClassController(options: NodeClassControllerOptions): Controller {
  const { karpenter, clock, log, metrics } = options;
  const classes = karpenter.informers.get(linodeNodeClassKind);
  const claims = karpenter.informers.get(nodeClaimKind);
  const controller = new Controller({
    name: 'linode.nodeclass',
    kind: 'LinodeNodeClass',
    clock,
    log,
    metrics,
    maxConcurrent: 10,
    reconciler: new NodeClassReconciler(options, classes, claims),
  })
    .watch(classes)
    .requires(claims);
  // A class that goes waits for its last NodeClaim.
  claims.addHandler({
    deleted: ({ spec }) => {
      const { group, kind, name } = spec.nodeClassRef;
      if (group === linodeNodeClassKind.group && kind === linodeNodeClassKind.kind) controller.enqueue(name);
    },
  });
  return controller;
}

class NodeClassReconciler {
  readonly #options: NodeClassControllerOptions;
  readonly #classes: Informer<LinodeNodeClass>;
  readonly #claims: Informer<NodeClaim>;

  constructor(options: NodeClassControllerOptions, classes: Informer<LinodeNodeClass>, claims: Informer<NodeClaim>) {
    this.#options = options;
    this.#classes = classes;
    this.#claims = claims;
  }

  async reconcile(name: string, signal: AbortSignal): Promise<Result | void> {
    const nodeClass = this.#classes.get(name);
    if (!nodeClass) return;
    if (nodeClass.metadata.deletionTimestamp !== undefined) return this.#letGo(nodeClass, signal);
    await this.#mark(nodeClass, signal);
    const { updates, images, problems } = await this.#judge(nodeClass, signal);
    const conditions = this.#conditions(nodeClass, updates);
    const isSame =
      nodeClass.status?.conditions === conditions && deepEqual(nodeClass.status?.linodeImages ?? [], images);
    if (!isSame) {
      this.#report(nodeClass, problems);
      const client = this.#options.karpenter.client.resource(linodeNodeClassKind);
      const status = { linodeImages: [...images], conditions: [...conditions] };
      await ignoreNotFound(client.patchStatus(name, { status }, { signal }));
    }
    return { requeueAfterMs: problems.length > 0 ? wrongAgainMs : againMs };
  }

  async #judge(
    nodeClass: LinodeNodeClass,
    signal: AbortSignal,
  ): Promise<{ updates: ConditionUpdate[]; images: Verdict['images']; problems: readonly Problem[] }> {
    const { account, validator } = this.#options;
    try {
      // A minute old at most: a token that was revoked must show.
      await account.place(wrongAgainMs);
    } catch (error) {
      if (!(error instanceof LinodeAccountError)) throw error;
      const { reason, message } = error;
      const unknown = unknownCondition(validationSucceeded, reason, 'the account could not be asked');
      const updates = [falseCondition(accountReady, reason, message), unknown];
      return { updates, images: nodeClass.status?.linodeImages ?? [], problems: [{ reason, message }] };
    }
    const { problems, images } = await validator.check(nodeClass, signal);
    const [first] = problems;
    const judged = first
      ? falseCondition(validationSucceeded, first.reason, problems.map(({ message }) => message).join('; '))
      : trueCondition(validationSucceeded);
    return { updates: [trueCondition(accountReady), judged], images, problems };
  }

  #conditions(nodeClass: LinodeNodeClass, updates: readonly ConditionUpdate[]): readonly Condition[] {
    const now = formatTime(this.#options.clock.now());
    let conditions = completeConditions(linodeNodeClassConditionTypes, nodeClass, now);
    for (const update of updates) {
      const object = { ...nodeClass, status: { conditions: conditions as Condition[] } };
      conditions = setCondition(linodeNodeClassConditionTypes, object, update, now);
    }
    return conditions;
  }

  #report(nodeClass: LinodeNodeClass, problems: readonly Problem[]): void {
    const { karpenter, log } = this.#options;
    for (const { reason, message } of problems) {
      log.error('a nodeclass cannot be used', {
        LinodeNodeClass: { name: nodeClass.metadata.name },
        reason,
        problem: message,
      });
      karpenter.events.publish({ object: nodeClass, type: 'Warning', reason, message });
    }
  }

  /** Finalizer and hash; hashes of another algorithm on NodeClaims are replaced, so that they make nothing drift. */
  async #mark(nodeClass: LinodeNodeClass, signal: AbortSignal): Promise<void> {
    const { name = '', finalizers = [], annotations = {}, resourceVersion } = nodeClass.metadata;
    const hash = nodeClassHash(nodeClass);
    const { [linodeAnnotations.hash]: oldHash, [linodeAnnotations.hashVersion]: oldVersion } = annotations;
    if (oldVersion !== nodeClassHashVersion) {
      for (const claim of this.#ofClass(name)) await this.#rehash(claim, hash, signal);
    }
    const isMarked = finalizers.includes(nodeClassFinalizer);
    if (isMarked && oldHash === hash && oldVersion === nodeClassHashVersion) return;
    const client = this.#options.karpenter.client.resource(linodeNodeClassKind);
    await client.patch(
      name,
      {
        metadata: {
          resourceVersion,
          finalizers: isMarked ? finalizers : [...finalizers, nodeClassFinalizer],
          annotations: { [linodeAnnotations.hash]: hash, [linodeAnnotations.hashVersion]: nodeClassHashVersion },
        },
      },
      { signal },
    );
  }

  async #rehash(claim: NodeClaim, hash: string, signal: AbortSignal): Promise<void> {
    if (claim.metadata.annotations?.[linodeAnnotations.hashVersion] === nodeClassHashVersion) return;
    // What has drifted stays so: its old hash said that it is not what the class asks for.
    const isDrifted = getCondition(claim, nodeClaimConditions.drifted)?.status === 'True';
    const annotations = {
      [linodeAnnotations.hashVersion]: nodeClassHashVersion,
      ...(isDrifted ? {} : { [linodeAnnotations.hash]: hash }),
    };
    const client = this.#options.karpenter.client.resource(nodeClaimKind);
    await ignoreNotFound(client.patch(claim.metadata.name ?? '', { metadata: { annotations } }, { signal }));
  }

  #ofClass(name: string): NodeClaim[] {
    return this.#claims.list().filter(({ spec: { nodeClassRef: ref } }) => {
      return ref.group === linodeNodeClassKind.group && ref.kind === linodeNodeClassKind.kind && ref.name === name;
    });
  }

  async #letGo(nodeClass: LinodeNodeClass, signal: AbortSignal): Promise<Result | void> {
    const { karpenter } = this.#options;
    const { name = '', finalizers = [], resourceVersion } = nodeClass.metadata;
    if (!finalizers.includes(nodeClassFinalizer)) return;
    const claims = this.#ofClass(name);
    if (claims.length > 0) {
      const names = claims.slice(0, 5).map(({ metadata }) => metadata.name);
      const more = claims.length > names.length ? ` and ${claims.length - names.length} more` : '';
      karpenter.events.publish({
        object: nodeClass,
        type: 'Normal',
        reason: 'WaitingOnNodeClaimTermination',
        message: `waiting for NodeClaims to go: ${names.join(', ')}${more}`,
      });
      return { requeueAfterMs: againMs };
    }
    const left = finalizers.filter((finalizer) => finalizer !== nodeClassFinalizer);
    const client = karpenter.client.resource(linodeNodeClassKind);
    await ignoreNotFound(client.patch(name, { metadata: { resourceVersion, finalizers: left } }, { signal }));
  }
}
