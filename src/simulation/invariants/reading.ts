// SPDX-License-Identifier: Apache-2.0
// How invariants read objects: by what the documents say of them, without the product's own helpers.
import type { NodeClaim } from '../../api/node-claim.ts';
import type { Event, Node, Pod } from '../../kube/kinds.ts';
import { parseDuration, parseTime } from '../../kube/time.ts';
import { collections } from '../collections.ts';
import type { Change, Facts } from '../contract.ts';

export const second = 1000;
export const minute = 60_000;

export const poolLabel = 'karpenter.sh/nodepool';
export const disruptedTaint = 'karpenter.sh/disrupted';
/** Why a node is taken away that could stay. */
export const voluntary: ReadonlySet<string> = new Set(['Empty', 'Underutilized', 'Drifted']);
const protection = 'karpenter.sh/do-not-disrupt';
const deadline = 'karpenter.sh/nodeclaim-termination-timestamp';

/** Whether a process of the autoscaler wrote it. */
export function isOurs({ by }: Change): boolean {
  return by.startsWith('karpenter-');
}

/** The change began the deletion of the object, or carried it out at once. */
export function beginsDeletion({ event }: Change): boolean {
  const before = event.previous?.metadata.deletionTimestamp;
  if (before !== undefined) return false;
  return (
    event.type === 'DELETED' || (event.type === 'MODIFIED' && event.object.metadata.deletionTimestamp !== undefined)
  );
}

export function isGoing({ metadata }: { readonly metadata: { readonly deletionTimestamp?: string } }): boolean {
  return metadata.deletionTimestamp !== undefined;
}

export function conditionTrue(claim: NodeClaim, name: string): boolean {
  return claim.status?.conditions?.some(({ type, status }) => type === name && status === 'True') ?? false;
}

/** Why the autoscaler wants the node gone; undefined when it does not. */
export function disruptionReason(claim: NodeClaim): string | undefined {
  return claim.status?.conditions?.find(({ type, status }) => type === 'DisruptionReason' && status === 'True')?.reason;
}

export function nodeOfClaim(facts: Facts, claim: NodeClaim): Node | undefined {
  const id = claim.status?.providerID;
  if (!id) return undefined;
  return facts.list<Node>(collections.nodes).find(({ spec }) => spec?.providerID === id);
}

export function podsOn(facts: Facts, { metadata }: Node): readonly Pod[] {
  return facts.podsOn(metadata.name ?? '');
}

export function hasEnded({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

export function isDaemon({ metadata }: Pod): boolean {
  return metadata.ownerReferences?.some(({ kind }) => kind === 'DaemonSet') ?? false;
}

/** Whether its annotation protects a pod or node now: `true`, or a duration from its start. */
export function isProtected(object: Pod | Node, now: number): boolean {
  const value = object.metadata.annotations?.[protection];
  if (value === undefined) return false;
  if (value === 'true') return true;
  const started = (object as Pod).status?.startTime ?? object.metadata.creationTimestamp;
  try {
    return started !== undefined && started !== null && parseTime(started) + parseDuration(value) > now;
  } catch {
    return false;
  }
}

/** When the drain of a NodeClaim's node must end, in ms; undefined when it may take for ever. */
export function drainDeadline(claim: NodeClaim | undefined): number | undefined {
  const at = claim?.metadata.annotations?.[deadline];
  return at === undefined ? undefined : parseTime(at);
}

const promise = /nodeclaim\/([^,\s]+)/;

/** The NodeClaim that an event tells a pod to wait for. */
export function claimTold({ reason, message = '' }: Event): string | undefined {
  return reason === 'Nominated' ? promise.exec(message)?.[1] : undefined;
}

export function nameOf({
  metadata,
}: {
  readonly metadata: { readonly namespace?: string; readonly name?: string };
}): string {
  return metadata.namespace ? `${metadata.namespace}/${metadata.name}` : (metadata.name ?? '');
}

/** Whether something on the node keeps it from being drained for ever, by the will of its users. */
export function isHeld(facts: Facts, node: Node): boolean {
  return podsOn(facts, node).some(
    (pod) => !hasEnded(pod) && (isProtected(pod, facts.now) || isGoing(pod) || hasBudget(facts, pod)),
  );
}

/** Whether a machine goes and only the will of its users keeps it: whoever takes a NodeClaim away by force does not take the protection from its pods. */
export function isHeldMachine(facts: Facts, id: string): boolean {
  const node = nodeOfMachine(facts, id);
  return node !== undefined && isGoing(node) && isHeld(facts, node);
}

/** The Node of a machine. */
export function nodeOfMachine(facts: Facts, id: string): Node | undefined {
  return facts.list<Node>(collections.nodes).find(({ spec }) => spec?.providerID === id);
}

function hasBudget(facts: Facts, { metadata }: Pod): boolean {
  return facts.list<Budget>(collections.budgets).some(({ spec, status }) => {
    const wanted = Object.entries(spec?.selector?.matchLabels ?? {});
    return wanted.every(([key, value]) => metadata.labels?.[key] === value) && (status?.disruptionsAllowed ?? 0) === 0;
  });
}

interface Budget {
  readonly metadata: { readonly name?: string };
  readonly spec?: { readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> } };
  readonly status?: { readonly disruptionsAllowed?: number };
}
