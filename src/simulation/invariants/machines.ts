// SPDX-License-Identifier: Apache-2.0
// Machines and NodeClaims belong together: none is forgotten, none is bought twice.
import type { NodeClaim } from '../../api/node-claim.ts';
import type { Node } from '../../kube/kinds.ts';
import { collections } from '../collections.ts';
import type { Facts, Invariant, LedgerInstance } from '../contract.ts';
import { isHeldMachine, isOurs, minute, nameOf } from './reading.ts';

/** How long a machine may be without its NodeClaim once nothing is broken any more: a rollout of Cluster API is waited for alone ten minutes. */
const collectedWithinMs = 15 * minute;

export function machineInvariants(): Invariant[] {
  return [owned(), single(), strangersStay(), neverLetGo()];
}

function uids(facts: Facts): Set<string> {
  return new Set(facts.list<NodeClaim>(collections.claims).map(({ metadata }) => metadata.uid ?? ''));
}

/** Every machine has a NodeClaim, or is given back within a bound. */
function owned(): Invariant {
  /** Since when each machine is without one. */
  const since = new Map<string, number>();
  const look = (facts: Facts): LedgerInstance[] => {
    const claims = uids(facts);
    const orphans: LedgerInstance[] = [];
    const seen = new Set<string>();
    for (const { ledger } of facts.clouds) {
      for (const instance of ledger.alive()) {
        if (!instance.claim || claims.has(instance.claim.uid)) continue;
        if (isHeldMachine(facts, instance.providerID)) continue;
        orphans.push(instance);
        seen.add(instance.providerID);
        if (!since.has(instance.providerID)) since.set(instance.providerID, facts.now);
      }
    }
    for (const id of since.keys()) if (!seen.has(id)) since.delete(id);
    return orphans;
  };
  return {
    name: 'machines/owned',
    onMinute(facts, report) {
      report.checked();
      const calm = facts.calmSince;
      for (const { providerID, claim } of look(facts)) {
        const from = Math.max(since.get(providerID) ?? facts.now, calm ?? facts.now);
        if (facts.now - from > collectedWithinMs) {
          report.violated(`machine ${providerID} of NodeClaim ${claim?.name} was not given back`);
        }
      }
    },
  };
}

/** A NodeClaim never has two machines. */
function single(): Invariant {
  return {
    name: 'machines/single',
    onMinute(facts, report) {
      report.checked();
      const byClaim = new Map<string, string>();
      for (const { ledger } of facts.clouds) {
        for (const { claim, providerID, deletingAt } of ledger.alive()) {
          if (!claim || deletingAt !== undefined) continue;
          const other = byClaim.get(claim.uid);
          if (other) report.violated(`NodeClaim ${claim.name} has two machines: ${other} and ${providerID}`);
          byClaim.set(claim.uid, providerID);
        }
      }
    },
  };
}

/** Machines that are not ours stay as they are. */
function strangersStay(): Invariant {
  return {
    name: 'machines/strangers-stay',
    onMinute(facts, report) {
      for (const { ledger } of facts.clouds) {
        for (const { claim, providerID, deletingAt, goneAt, goneBecause } of ledger.all()) {
          if (claim !== undefined) continue;
          report.checked();
          if ((goneAt !== undefined || deletingAt !== undefined) && goneBecause === undefined) {
            report.violated(`machine ${providerID}, which is not ours, was removed`);
          }
        }
      }
    },
  };
}

/**
 * A NodeClaim and its Node stay until the machine is gone: they are how it is found. Of one that its cloud denies nobody can
 * know that it stands; it is given back later, as `machines/owned` has it.
 */
function neverLetGo(): Invariant {
  const standing = (facts: Facts, id: string | undefined): boolean =>
    id !== undefined &&
    facts.clouds.some(({ ledger }) =>
      ledger.alive().some(({ providerID, deletingAt, hiddenUntil = 0 }) => {
        return providerID === id && deletingAt === undefined && hiddenUntil <= facts.now;
      }),
    );
  return {
    name: 'machines/never-let-go',
    onChange(change, facts, report) {
      if (change.event.type !== 'DELETED' || !isOurs(change)) return;
      if (change.collection === collections.claims) {
        report.checked();
        const claim = change.event.object as NodeClaim;
        if (standing(facts, claim.status?.providerID)) {
          report.violated(
            `NodeClaim ${nameOf(claim)} is gone, and its machine ${claim.status?.providerID} still stands`,
          );
        }
      } else if (change.collection === collections.nodes) {
        const node = change.event.object as Node;
        const id = node.spec?.providerID;
        // A pretended machine is its Node: it stands until now.
        if (id?.startsWith('kwok://')) return;
        report.checked();
        const claim = facts.list<NodeClaim>(collections.claims).find(({ status }) => status?.providerID === id);
        // One machine that joined twice has a Node too many.
        const twin = facts.list<Node>(collections.nodes).some(({ spec }) => spec?.providerID === id);
        if (claim && !twin && standing(facts, id)) {
          report.violated(`Node ${nameOf(node)} is gone, and its machine ${id} still stands`);
        }
      }
    },
  };
}
