// SPDX-License-Identifier: Apache-2.0
// What is promised of Cluster API's Machines: replicas are what people want and one for each NodeClaim, a Machine never
// serves two NodeClaims, those of others are left alone, and none is forgotten.
import { clusterApiNodeClassKind } from '../../api/cluster-api-node-class.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import type { Machine, MachineDeployment } from '../../embedded/clouds/cluster-api/objects.ts';
import { collections } from '../collections.ts';
import type { Facts, Invariant } from '../contract.ts';
import { isHeld, isHeldMachine, nodeOfMachine } from '../invariants/reading.ts';
import {
  type BookedMachine,
  type ClusterApiBooks,
  capiCollections,
  claimOf,
  isByAutoscaler,
} from './cluster-api-books.ts';
import { noneShared } from './shared-invariants.ts';

const minute = 60_000;
/** How long a Machine may be nobody's once nothing is broken any more. */
const collectedWithinMs = 15 * minute;

export function clusterApiInvariants(books: ClusterApiBooks): Invariant[] {
  return [noneShared(), oneOwner(), strangers(books), replicas(books), noneLost(books)];
}

/** Whose a Machine is does not change. */
function oneOwner(): Invariant {
  return {
    name: 'cluster-api/one-owner',
    onChange({ collection, event, by }, _facts, report) {
      if (collection !== capiCollections.machines || event.type !== 'MODIFIED' || !isByAutoscaler(by)) return;
      const [before, after] = [claimOf(event.previous as Machine), claimOf(event.object as Machine)];
      if (after === undefined) return;
      report.checked();
      if (before && before.uid !== after.uid)
        report.violated(
          `Machine ${event.object.metadata.name} was of NodeClaim ${before.name} and is of ${after.name}`,
        );
    },
  };
}

/** Machines that somebody else has are neither taken, nor marked, nor removed. */
function strangers(books: ClusterApiBooks): Invariant {
  return {
    name: 'cluster-api/strangers',
    onChange({ collection, event, by }, _facts, report) {
      if (collection !== capiCollections.machines || !isByAutoscaler(by)) return;
      const machine = books.machine(event.object.metadata.uid ?? '');
      report.checked();
      if (machine?.isStranger)
        report.violated(`Machine ${machine.name} is somebody else's, and ${by} wrote to it (${event.type})`);
    },
  };
}

function isOfClass({ spec }: NodeClaim): boolean {
  return spec.nodeClassRef.kind === clusterApiNodeClassKind.kind;
}

function claimsOf(facts: Facts): NodeClaim[] {
  return facts.list<NodeClaim>(collections.claims).filter(isOfClass);
}

/** NodeClaims that are gone may still have their replica for this long, from when nobody held their Machine any more. */
const aftermathMs = 20 * minute;

/** Replicas are never more than people want and NodeClaims there are, never less than is in use, and exact at rest. */
function replicas(books: ClusterApiBooks): Invariant {
  /** When each NodeClaim went, by its UID, or when its Machine was held last. */
  const went = new Map<string, number>();
  const inUse = (facts: Facts, deployment: string): BookedMachine[] => {
    const staying = new Set(
      claimsOf(facts)
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
        .map(({ metadata }) => metadata.uid),
    );
    return books
      .machines()
      .filter(
        (machine) =>
          machine.deployment === deployment &&
          machine.deletingAt === undefined &&
          !machine.marked &&
          staying.has(machine.claim?.uid ?? ''),
      );
  };
  return {
    name: 'cluster-api/replicas',
    onChange({ collection, event, by }, facts, report) {
      if (collection === collections.claims && event.type === 'DELETED' && isOfClass(event.object as NodeClaim))
        went.set(event.object.metadata.uid ?? '', facts.now);
      if (collection !== capiCollections.deployments || event.type !== 'MODIFIED' || !isByAutoscaler(by)) return;
      const [before, after] = [replicasOf(event.previous!), replicasOf(event.object)];
      if (before === after) return;
      report.checked();
      const { name = '' } = event.object.metadata;
      if (after < before) {
        const theirs = books.accounts().get(name)?.wantedByPeople ?? 0;
        const used = inUse(facts, name).length;
        if (after < theirs + used)
          report.violated(`${name} was lowered to ${after}, and ${theirs} are wanted by people, ${used} by NodeClaims`);
        return;
      }
      for (const [uid, at] of went) if (facts.now - at > aftermathMs) went.delete(uid);
      let ours = 0;
      for (const { replicas: all, wantedByPeople } of books.accounts().values()) ours += all - wantedByPeople;
      const claims = claimsOf(facts).length;
      if (ours > claims + went.size)
        report.violated(
          `${ours} replicas were asked for, and there are ${claims} NodeClaims (${name} was raised to ${after})`,
        );
    },
    onMinute(facts) {
      // Who takes a NodeClaim away by force leaves its Machine to its users: the replica is in use until they let it go.
      for (const { claim, providerID } of books.machines())
        if (claim && went.has(claim.uid) && isHeldMachine(facts, providerID)) went.set(claim.uid, facts.now);
    },
    onQuiet(facts, report) {
      for (const [name, { replicas: all, wantedByPeople: theirs }] of books.accounts()) {
        if (isRolling(books, name)) continue;
        report.checked();
        const least = inUse(facts, name).length;
        const uids = new Set(claimsOf(facts).map(({ metadata }) => metadata.uid));
        const held = books
          .machines()
          .filter(
            ({ deployment, claim, providerID }) =>
              deployment === name && claim && (uids.has(claim.uid) || isHeldMachine(facts, providerID)),
          ).length;
        const waiting = claimsOf(facts).filter(({ status }) => !status?.providerID).length;
        const ours = all - theirs;
        if (ours < least || ours > held + waiting)
          report.violated(`${name} has ${all} replicas at rest: people want ${theirs}, NodeClaims have ${held}`);
      }
    },
  };
}

function replicasOf(object: object): number {
  return (object as MachineDeployment).spec?.replicas ?? 0;
}

/** Machines of two templates at once. */
function isRolling(books: ClusterApiBooks, name: string): boolean {
  const sets = books.machines().filter(({ deployment }) => deployment === name);
  return new Set(sets.map(({ set }) => set)).size > 1;
}

/**
 * Whether somebody took the Machine of a NodeClaim, and the will of its users keeps it: what Cluster API has in its place stays until
 * the NodeClaim is given up, since the replica is the NodeClaim's.
 */
function isTakenAndHeld(facts: Facts, { deletingAt, marked, providerID }: BookedMachine): boolean {
  if (deletingAt === undefined || marked) return false;
  const node = nodeOfMachine(facts, providerID);
  return node !== undefined && isHeld(facts, node);
}

/** Machines that no NodeClaim has are wanted by people, or are there in place of one that is held, or go. */
function noneLost(books: ClusterApiBooks): Invariant {
  /** Since when a MachineDeployment has more Machines of nobody than people want. */
  const since = new Map<string, number>();
  return {
    name: 'cluster-api/none-lost',
    onMinute(facts, report) {
      const uids = new Set(claimsOf(facts).map(({ metadata }) => metadata.uid));
      for (const [name, { wantedByPeople: theirs }] of books.accounts()) {
        const machines = books.machines().filter(({ deployment }) => deployment === name);
        const nobodys = machines.filter(
          ({ claim, deletingAt, providerID }) =>
            deletingAt === undefined && (!claim || !uids.has(claim.uid)) && !isHeldMachine(facts, providerID),
        ).length;
        const replaced = machines.filter(
          (machine) => machine.claim && uids.has(machine.claim.uid) && isTakenAndHeld(facts, machine),
        ).length;
        if (nobodys <= theirs + replaced || isRolling(books, name)) {
          since.delete(name);
          continue;
        }
        report.checked();
        if (!since.has(name)) since.set(name, facts.now);
        const from = Math.max(since.get(name)!, facts.calmSince ?? facts.now);
        if (facts.now - from > collectedWithinMs)
          report.violated(`${name} has ${nobodys} Machines that no NodeClaim has, and people want ${theirs}`);
      }
    },
  };
}
