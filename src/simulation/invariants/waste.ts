// SPDX-License-Identifier: Apache-2.0
// What is promised about machines that nobody needs.
import type { NodePool } from '../../api/node-pool.ts';
import type { Node, Pod } from '../../kube/kinds.ts';
import { collections } from '../collections.ts';
import type { Change, Invariant } from '../contract.ts';
import { poolLabel } from './reading.ts';

const fewestMachines = 20;
const mostWaste = 0.35;
const hostname = 'kubernetes.io/hostname';

/**
 * Of many machines few are bought that no pod ever ran on. Not counted: one that its cloud made so that no Node comes of
 * it, those of a static pool, and one for each pod that would rather be alone. Such a pod gets a node of its own, as the documents say, and is put
 * with others onto the first that comes, as kube-scheduler does with a wish.
 */
export function littleWaste(): Invariant {
  const used = new Set<string>();
  const nodes = new Map<string, string>();
  /** Pods that wait and would rather be alone, as long as no machine was bought for them. */
  const wishes = new Set<string>();
  /** How many NodeClaims such pods had made. Which they were nobody can tell. */
  let granted = 0;
  /** NodeClaims of static pools. */
  const fixed = new Set<string>();
  const podChanged = ({ event }: Change): void => {
    const { spec, metadata } = event.object as Pod;
    if (spec.nodeName && !metadata.ownerReferences?.some(({ kind }) => kind === 'DaemonSet')) used.add(spec.nodeName);
    if (spec.nodeName || event.type === 'DELETED') wishes.delete(metadata.uid ?? '');
    else if (event.type === 'ADDED' && wouldBeAlone(spec)) wishes.add(metadata.uid ?? '');
  };
  return {
    name: 'machines/waste',
    onChange(change, facts) {
      const { collection, event } = change;
      if (collection === collections.pods) podChanged(change);
      else if (collection === collections.nodes && event.type !== 'DELETED') {
        // Some clouds say only later which machine a Node is.
        const { metadata, spec } = event.object as Node;
        nodes.set(metadata.name ?? '', spec?.providerID ?? '');
      } else if (collection === collections.claims && event.type === 'ADDED') {
        const { uid = '', labels } = event.object.metadata;
        const pool = facts.get<NodePool>(collections.pools, '', labels?.[poolLabel] ?? '');
        // A user wants it, whether pods do or not.
        if (pool?.spec.replicas !== undefined) return void fixed.add(uid);
        const [wish] = wishes;
        if (wish === undefined) return;
        wishes.delete(wish);
        granted++;
      }
    },
    onQuiet(facts, report) {
      const machines = new Set([...used].map((name) => nodes.get(name)));
      const bought = facts.clouds
        .flatMap(({ ledger }) => ledger.all())
        .filter(({ claim, isBroken }) => claim !== undefined && !isBroken && !fixed.has(claim.uid));
      const unused = bought.filter(({ providerID }) => !machines.has(providerID)).length;
      const excused = Math.min(unused, granted);
      const [wasted, all] = [unused - excused, bought.length - excused];
      if (all < fewestMachines) return;
      report.checked();
      if (wasted > all * mostWaste) report.violated(`${wasted} of ${all} machines never ran a pod`);
    },
  };
}

function wouldBeAlone({ affinity }: Pod['spec']): boolean {
  const wishes = affinity?.podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  return wishes.some(({ podAffinityTerm }) => podAffinityTerm.topologyKey === hostname);
}
