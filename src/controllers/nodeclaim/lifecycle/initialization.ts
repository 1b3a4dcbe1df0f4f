// SPDX-License-Identifier: Apache-2.0
// Initialization: the Node is ready for pods and has everything it was promised to have.
import { nodeClaimConditions, trueCondition, unknownCondition } from '../../../api/conditions.ts';
import { annotations, labels } from '../../../api/labels.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import { isKnownEphemeralTaint, isSameTaint } from '../../../api/taints.ts';
import type { Informer } from '../../../kube/informer.ts';
import type { Node, ResourceSlice } from '../../../kube/kinds.ts';
import { Quantity } from '../../../kube/quantity.ts';
import { type Logger, objectField } from '../../../runtime/logging.ts';
import type { ControllerContext } from '../context.ts';
import type { Draft } from '../draft.ts';
import { hasCompletePool } from './device-pools.ts';

const { registered, initialized } = nodeClaimConditions;

export interface InitializationStep {
  readonly context: ControllerContext;
  /** The devices of nodes; none where devices are not looked at. */
  readonly slices: Informer<ResourceSlice> | undefined;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Brings the draft to Initialized, or says in it what is still missing. */
export async function initialize(draft: Draft<NodeClaim>, step: InitializationStep): Promise<void> {
  const condition = draft.condition(initialized);
  if (condition?.status === 'True') return draft.refresh(condition);
  if (!draft.isTrue(registered)) return;
  const { context } = step;
  const [node, another] = context.nodesOf(draft.object);
  const missing =
    node && !another
      ? whatIsMissing(draft.object, node, step.slices)
      : { reason: 'NodeNotFound', message: 'the node is not in the cluster' };
  if (missing) {
    draft.set(unknownCondition(initialized, missing.reason, missing.message));
    return;
  }
  const ready = node!;
  const labelled: Node = {
    ...ready,
    metadata: { ...ready.metadata, labels: { ...ready.metadata.labels, [labels.initialized]: 'true' } },
  };
  if (!(await context.nodes.patch(ready, labelled, { signal: step.signal }))) return;
  draft.set(trueCondition(initialized));
  const log = step.log.with(objectField(ready, 'Node'));
  draft.onceSaved(() => log.info('initialized nodeclaim', { allocatable: ready.status?.allocatable }));
}

interface Missing {
  readonly reason: string;
  readonly message: string;
}

function whatIsMissing(claim: NodeClaim, node: Node, slices: Informer<ResourceSlice> | undefined): Missing | undefined {
  if (node.status?.conditions?.find(({ type }) => type === 'Ready')?.status !== 'True')
    return { reason: 'NodeNotReady', message: 'the node is not ready' };
  const taints = node.spec?.taints ?? [];
  const startup = taints.find((taint) => claim.spec.startupTaints?.some((own) => isSameTaint(own, taint)));
  if (startup) return { reason: 'StartupTaintsExist', message: `startup taint ${shown(startup)} is still there` };
  const ephemeral = taints.find(isKnownEphemeralTaint);
  if (ephemeral) return { reason: 'KnownEphemeralTaintsExist', message: `taint ${shown(ephemeral)} is still there` };
  const resource = missingResource(claim, node);
  if (resource) return { reason: 'ResourceNotRegistered', message: `resource ${resource} is not registered yet` };
  const driver = slices && missingDriver(claim, node, slices);
  if (driver)
    return { reason: 'DRADriverPoolsNotPublished', message: `driver ${driver} has not published a complete pool` };
  return undefined;
}

function shown({ key, value, effect }: { key: string; value?: string; effect: string }): string {
  return value ? `${key}=${value}:${effect}` : `${key}:${effect}`;
}

/** A resource that was asked for and that the node does not offer yet, such as one a device plugin brings. */
function missingResource(claim: NodeClaim, node: Node): string | undefined {
  for (const [name, amount] of Object.entries(claim.spec.resources?.requests ?? {})) {
    if (isZero(amount)) continue;
    if (isZero(node.status?.allocatable?.[name])) return name;
  }
  return undefined;
}

function isZero(amount: unknown): boolean {
  return Quantity.tryParse(amount)?.isZero() ?? true;
}

function missingDriver(claim: NodeClaim, node: Node, slices: Informer<ResourceSlice>): string | undefined {
  const wanted = claim.metadata.annotations?.[annotations.requestedDraDrivers]?.split(',') ?? [];
  const drivers = wanted.map((driver) => driver.trim()).filter((driver) => driver !== '');
  if (drivers.length === 0) return undefined;
  return drivers.find((driver) => !hasCompletePool(driver, node, slices.list()));
}
