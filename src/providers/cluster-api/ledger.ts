// SPDX-License-Identifier: Apache-2.0
// The NodeClaims for which the replicas of a member were raised, kept in an annotation of the member itself. Record and
// replicas change in one conditional write, so each NodeClaim counts exactly once, whatever is retried or crashes.
// Replicas are always `what others want + what the ledger holds`; what others want is never ours to change.
import { planted } from '../../base/defects.ts';
import { chain, compareStrings } from '../../base/order.ts';
import { isDeleting, type Machine } from './kinds.ts';
import { annotations, capi } from './names.ts';

/** NodeClaims raised for at one moment, and which Machines were there before: those are not meant for them. */
export interface Batch {
  /** Creation time of the newest Machine there was, by the management cluster's own clock; '' when any will do. */
  readonly after: string;
  /** The names of the Machines of that very second. */
  readonly seen: readonly string[];
  /** Machines that were there before, and are meant for them all the same: nobody else is left who wants them. */
  readonly given?: readonly string[];
  readonly claims: readonly string[];
}

export interface Ledger {
  /** Those whose Machine has been found. */
  readonly bound: readonly string[];
  /** Those that wait for one. */
  readonly pending: readonly Batch[];
}

export const emptyLedger: Ledger = { bound: [], pending: [] };

/** Reads the annotation. What is not a ledger counts as an empty one: Machines carry their NodeClaims as well. */
export function parseLedger(text: string | undefined): Ledger {
  if (!text) return emptyLedger;
  try {
    const read = JSON.parse(text) as { bound?: unknown; pending?: unknown };
    const pending = Array.isArray(read.pending) ? read.pending.filter(isBatch) : [];
    return {
      bound: textsOf(read.bound),
      pending: pending.map(({ given, ...batch }) => ({
        ...batch,
        ...(Array.isArray(given) ? { given: textsOf(given) } : {}),
        claims: textsOf(batch.claims),
      })),
    };
  } catch {
    return emptyLedger;
  }
}

function isBatch(value: unknown): value is Batch {
  const batch = value as Partial<Batch> | null;
  return typeof batch?.after === 'string' && Array.isArray(batch.seen) && Array.isArray(batch.claims);
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
}

/** The annotation's text; undefined when there is nothing to record. */
export function formatLedger(ledger: Ledger): string | undefined {
  return sizeOf(ledger) === 0 ? undefined : JSON.stringify(ledger);
}

export function sizeOf({ bound, pending }: Ledger): number {
  return pending.reduce((sum, { claims }) => sum + claims.length, bound.length);
}

export function claimsOf({ bound, pending }: Ledger): string[] {
  return [...bound, ...pending.flatMap(({ claims }) => claims)];
}

export function holds(ledger: Ledger, uid: string): boolean {
  return ledger.bound.includes(uid) || ledger.pending.some(({ claims }) => claims.includes(uid));
}

/** The moment up to which Machines belong to others. */
export function baselineOf(machines: readonly Machine[]): Pick<Batch, 'after' | 'seen'> {
  const after = machines.reduce((newest, { metadata }) => later(newest, metadata.creationTimestamp ?? ''), '');
  const seen = machines.filter(({ metadata }) => metadata.creationTimestamp === after).map(nameOf);
  // No Machine at all: whatever comes was made for us.
  return { after, seen: seen.sort(compareStrings) };
}

function later(a: string, b: string): string {
  return compareStrings(a, b) > 0 ? a : b;
}

function nameOf({ metadata }: Machine): string {
  return metadata.name ?? '';
}

/** Whether a Machine may have come for a batch. */
export function cameFor(machine: Machine, { after, seen, given }: Omit<Batch, 'claims'>): boolean {
  if (given?.includes(nameOf(machine))) return true;
  const order = compareStrings(machine.metadata.creationTimestamp ?? '', after);
  if (planted('cluster-api-adopts-strangers')) return true;
  return order > 0 || (order === 0 && !seen.includes(nameOf(machine)));
}

/** Belongs to no NodeClaim and nobody wants it gone. */
export function isUnclaimed(machine: Machine): boolean {
  return (
    !isDeleting(machine) && !isMarked(machine) && machine.metadata.annotations?.[annotations.claimUid] === undefined
  );
}

export function isMarked({ metadata }: Machine): boolean {
  return metadata.annotations?.[capi.deleteMachine] !== undefined;
}

/** What is to happen to a ledger. */
export type Entry =
  /** One machine more for a NodeClaim; with `adopt`, one that is there already if there is one. */
  | { readonly kind: 'raise'; readonly uid: string; readonly adopt?: boolean }
  /** The NodeClaim's Machine is to go; `lost` when it has none (any more). */
  | { readonly kind: 'release'; readonly uid: string; readonly lost: boolean }
  /** The NodeClaim has a Machine, but the record of it was lost. */
  | { readonly kind: 'restore'; readonly uid: string };

export interface LedgerState {
  readonly ledger: Ledger;
  readonly replicas: number;
  readonly min: number;
  readonly max: number;
  readonly machines: readonly Machine[];
  /** How many bytes the annotation may take; more than enough unless told. */
  readonly room?: number;
}

export interface Plan {
  readonly ledger: Ledger;
  readonly replicas: number;
  /** Raised NodeClaims that found no room. */
  readonly refused: ReadonlySet<string>;
  /** Whether it was the annotation that had none left, not the member. */
  readonly isOverfull: boolean;
  /** Machines of nobody that are to be marked before replicas are lowered, so that no other is chosen. */
  readonly marks: readonly Machine[];
  readonly changed: boolean;
}

/** What becomes of a member: pure, so that it can be worked out anew after a conflict. Entries that hold already change nothing. */
export function planEntries(state: LedgerState, entries: readonly Entry[]): Plan {
  const { min, max, machines, room } = state;
  let { replicas } = state;
  let ledger = settled(state.ledger, machines);
  const refused = new Set<string>();
  const raised: string[] = [];
  const adopting: string[] = [];
  let lost = 0;
  const baseline = baselineOf(machines);
  const space = spaceFor(entries, ledger, baseline, room);
  let isOverfull = false;
  let adoptable = machines.filter(isUnclaimed).length - pendingOf(ledger);
  for (const entry of entries) {
    const { uid } = entry;
    const held = holds(ledger, uid) || raised.includes(uid) || adopting.includes(uid);
    if (entry.kind === 'raise') {
      if (held && !planted('cluster-api-raises-again')) continue;
      if (raised.length + adopting.length >= space) {
        isOverfull = true;
        refused.add(uid);
      } else if (entry.adopt && adoptable > 0) {
        adoptable--;
        adopting.push(uid);
      } else if (replicas >= max) refused.add(uid);
      else {
        replicas++;
        raised.push(uid);
      }
    } else if (entry.kind === 'restore') {
      if (!held) ledger = { ...ledger, bound: [...ledger.bound, uid] };
    } else if (holds(ledger, uid) || planted('cluster-api-lowers-again')) {
      ledger = without(ledger, uid);
      // Somebody may have lowered replicas already and so cost this NodeClaim its Machine: then the count is right.
      const floor = entry.lost ? Math.min(replicas, sizeOf(ledger) + raised.length) : 0;
      const lowered = Math.max(replicas - 1, floor, Math.min(min, replicas), 0);
      if (entry.lost && lowered < replicas) lost++;
      replicas = lowered;
    }
  }
  ledger = {
    ...ledger,
    pending: nonEmpty([...ledger.pending, { ...baseline, claims: raised }, adopted(adopting)]),
  };
  const { pending, given, left } = withGiven(ledger, replicas, machines);
  ledger = { ...ledger, pending };
  // At most as many as NodeClaims ended without a Machine, less those given away: those are theirs.
  const marks = left.slice(0, Math.max(0, Math.min(lost - given, tooMany(state, replicas))));
  const changed = replicas !== state.replicas || formatLedger(ledger) !== formatLedger(state.ledger);
  return { ledger, replicas, refused, isOverfull, marks, changed };
}

/**
 * How many more NodeClaims can be written down for sure. What cannot be recorded is not raised: a replica that nobody knows
 * the reason of would be lost.
 */
function spaceFor(entries: readonly Entry[], ledger: Ledger, baseline: Omit<Batch, 'claims'>, room?: number): number {
  if (room === undefined) return Number.POSITIVE_INFINITY;
  const each = Math.max(...entries.map(({ uid }) => uid.length)) + '"",'.length;
  // Two batches at most: those that are raised for, those that adopt.
  const frame = JSON.stringify(withBatch(withBatch(ledger, { ...baseline, claims: [] }), adopted([]))).length + 1;
  return Math.floor((room - frame) / each);
}

function adopted(claims: readonly string[]): Batch {
  return { after: '', seen: [], claims };
}

function pendingOf({ pending }: Ledger): number {
  return pending.reduce((sum, { claims }) => sum + claims.length, 0);
}

function withBatch(ledger: Ledger, batch: Batch): Ledger {
  return { ...ledger, pending: [...ledger.pending, batch] };
}

function without({ bound, pending }: Ledger, uid: string): Ledger {
  return {
    bound: bound.filter((other) => other !== uid),
    pending: nonEmpty(pending.map((batch) => ({ ...batch, claims: batch.claims.filter((other) => other !== uid) }))),
  };
}

/** Those whose Machine is there no longer wait. */
function settled({ bound, pending }: Ledger, machines: readonly Machine[]): Ledger {
  const found = new Set(machines.map(({ metadata }) => metadata.annotations?.[annotations.claimUid]));
  const arrived = pending.flatMap(({ claims }) => claims.filter((uid) => found.has(uid)));
  if (arrived.length === 0) return { bound, pending };
  return {
    bound: [...bound, ...arrived],
    pending: nonEmpty(pending.map((batch) => ({ ...batch, claims: batch.claims.filter((uid) => !found.has(uid)) }))),
  };
}

function nonEmpty(batches: readonly Batch[]): Batch[] {
  return batches.filter(({ claims }) => claims.length > 0);
}

/**
 * Those who wait for Machines that will never come, because Cluster API has as many as it wants, are given Machines of
 * nobody that were there before: what it made in place of a lost Machine, say, when who lost it gave up later. As many
 * Machines of nobody as others want stay theirs. `left` are those of nobody that nobody waits for.
 */
function withGiven(
  ledger: Ledger,
  replicas: number,
  machines: readonly Machine[],
): { pending: readonly Batch[]; given: number; left: Machine[] } {
  const free = machines.filter(isUnclaimed).sort(oldestFirst);
  const short = ledger.pending.map((batch) => batch.claims.filter(() => !takeFirst(free, batch)).length);
  const coming = Math.max(0, replicas - machines.filter((machine) => !isGoing(machine)).length);
  const theirs = Math.max(0, replicas - sizeOf(ledger));
  const missing = short.reduce((sum, count) => sum + count, 0) - coming;
  const given = Math.max(0, Math.min(missing, free.length - theirs));
  const left = free.sort(leastUseful);
  const spare = left.splice(0, given);
  const pending = ledger.pending.map((batch, index) => {
    const names = spare.splice(0, short[index]).map(nameOf);
    return names.length === 0 ? batch : { ...batch, given: [...(batch.given ?? []), ...names] };
  });
  return { pending, given, left };
}

/** Takes the first Machine out that came for the batch. */
export function takeFirst(free: Machine[], batch: Batch): Machine | undefined {
  const index = free.findIndex((machine) => cameFor(machine, batch));
  return index < 0 ? undefined : free.splice(index, 1)[0];
}

function isGoing(machine: Machine): boolean {
  return isDeleting(machine) || isMarked(machine);
}

/**
 * How many Machines of nobody must go when replicas come down to `replicas` and neither those on their way out nor those
 * marked before are enough.
 */
function tooMany({ machines, replicas: before }: LedgerState, replicas: number): number {
  return replicas >= before ? 0 : machines.length - replicas - machines.filter(isGoing).length;
}

/** By age, then by name. */
export const oldestFirst = chain<Machine>(
  (a, b) => compareStrings(a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? ''),
  (a, b) => compareStrings(nameOf(a), nameOf(b)),
);

const leastUseful = chain<Machine>(
  (a, b) => Number(a.status?.nodeRef !== undefined) - Number(b.status?.nodeRef !== undefined),
  (a, b) => compareStrings(b.metadata.creationTimestamp ?? '', a.metadata.creationTimestamp ?? ''),
  (a, b) => compareStrings(nameOf(a), nameOf(b)),
);
