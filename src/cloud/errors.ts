// SPDX-License-Identifier: Apache-2.0
// What can go wrong at a cloud, as a closed set: controllers decide by these and by nothing else.
import { findCause, KarpenterError } from '../base/errors.ts';

/** The machine is gone (or never was). Ends the wait for a deletion. */
export class NodeClaimNotFoundError extends KarpenterError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super('KRP_NODECLAIM_NOT_FOUND', message, options);
  }
}

/** None of the wanted machines can be had now. The NodeClaim is given up and its pods are scheduled anew. */
export class InsufficientCapacityError extends KarpenterError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super('KRP_INSUFFICIENT_CAPACITY', message, options);
  }
}

/** The NodeClass cannot be used (yet). The NodeClaim is given up. */
export class NodeClassNotReadyError extends KarpenterError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super('KRP_NODECLASS_NOT_READY', message, options);
  }
}

/** A launch failed in a way that its NodeClaim should show: reason and message go into the condition Launched. */
export class CreateError extends KarpenterError {
  readonly conditionReason: string;
  readonly conditionMessage: string;

  constructor(message: string, condition: { reason: string; message: string }, options: { cause?: unknown } = {}) {
    super('KRP_CREATE_FAILED', message, options);
    this.conditionReason = condition.reason;
    this.conditionMessage = condition.message;
  }
}

/** Overlays have not been worked out for this NodePool yet: skip it this time, quietly. */
export class UnevaluatedNodePoolError extends KarpenterError {
  constructor(nodePool: string) {
    super('KRP_NODEPOOL_UNEVALUATED', `overlays of NodePool ${nodePool} have not been evaluated yet`);
  }
}

/** No provider of this process serves the NodeClass. */
export class UnknownNodeClassError extends KarpenterError {
  constructor(ref: { readonly group: string; readonly kind: string }, known: readonly string[]) {
    const served = known.length > 0 ? `served here: ${known.join(', ')}` : 'no provider is configured';
    super('KRP_NODECLASS_UNKNOWN', `no provider serves NodeClass ${ref.kind}.${ref.group} (${served})`);
  }
}

export function isNodeClaimNotFound(error: unknown): boolean {
  return findCause(error, NodeClaimNotFoundError) !== undefined;
}

export function isInsufficientCapacity(error: unknown): boolean {
  return findCause(error, InsufficientCapacityError) !== undefined;
}

export function isNodeClassNotReady(error: unknown): boolean {
  return findCause(error, NodeClassNotReadyError) !== undefined;
}

export function isUnevaluatedNodePool(error: unknown): boolean {
  return findCause(error, UnevaluatedNodePoolError) !== undefined;
}

/** The value of the metric label `error`: the type's name for what callers act on, '' for the rest. */
export function errorLabel(error: unknown): string {
  if (isNodeClaimNotFound(error)) return 'NodeClaimNotFoundError';
  if (isInsufficientCapacity(error)) return 'InsufficientCapacityError';
  if (isNodeClassNotReady(error)) return 'NodeClassNotReadyError';
  return '';
}
