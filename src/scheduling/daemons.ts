// SPDX-License-Identifier: Apache-2.0
// Daemonset pods come with every node: what they take must be left free, on each instance type by itself.
import type { LabelSet } from '../api/labels.ts';
import { planted } from '../base/defects.ts';
import { type HostPort, hostPortsOf } from './host-ports.ts';
import type { DaemonSet, NodeSelectorTerm, Pod, PodSpec, Taint, Toleration } from './objects.ts';
import { type Amounts, addTo, amountsProblem, podRequests, quantityProblem } from './pod-resources.ts';
import type { ObjectError, Problem } from './problem.ts';
import {
  compatible,
  conflict,
  mergeRequirements,
  type Requirements,
  requirementsOf,
  requirementsOfLabels,
} from './requirements.ts';
import { daemonSetShape } from './shapes.ts';
import { toleratePreferences, untolerated } from './taints.ts';

export interface Daemon {
  readonly name: string;
  readonly requests: ReadonlyMap<string, bigint>;
  readonly ports: readonly HostPort[];
  readonly tolerations: readonly Toleration[];
  readonly nodeSelector: Readonly<Record<string, string>> | undefined;
  /** Alternatives; none: anywhere. */
  readonly terms: readonly NodeSelectorTerm[];
}

/** DaemonSets that cannot change, and have the shape of one. */
const sound = new WeakSet<DaemonSet>();

/** The daemons of a problem. Unreadable ones become errors. */
export function readDaemons(problem: Problem, errors: ObjectError[]): Daemon[] {
  const newest = newestPods(problem);
  const daemons: Daemon[] = [];
  for (const set of problem.daemonSets ?? []) {
    const name = `${set.metadata.namespace ?? 'default'}/${set.metadata.name}`;
    const wrong = sound.has(set) ? undefined : daemonSetShape(set);
    if (wrong === undefined && Object.isFrozen(set)) sound.add(set);
    if (wrong !== undefined) {
      errors.push({ object: `DaemonSet/${name}`, reason: wrong });
      continue;
    }
    try {
      const template = set.spec.template.spec;
      const spec = newest.get(name)?.spec ?? template;
      if (usesClaims(spec)) continue;
      const requests = podRequests(spec);
      const problemOf = amountsProblem(requests);
      if (problemOf !== undefined) {
        errors.push({ object: `DaemonSet/${name}`, reason: `its requests cannot be used: ${problemOf}` });
        continue;
      }
      requests.set('pods', 1_000_000_000n);
      daemons.push({
        name,
        requests,
        ports: hostPortsOf(spec),
        tolerations: [...(spec.tolerations ?? []), toleratePreferences],
        nodeSelector: spec.nodeSelector,
        // A real pod's own affinity pins it to its node: the template says where the set wants to be.
        terms: template.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [],
      });
    } catch (error) {
      errors.push({ object: `DaemonSet/${name}`, reason: quantityProblem(error) });
    }
  }
  return daemons;
}

function usesClaims(spec: PodSpec): boolean {
  return (spec.resourceClaims?.length ?? 0) > 0;
}

function newestPods(problem: Problem): Map<string, Pod> {
  const newest = new Map<string, Pod>();
  if ((problem.daemonSets?.length ?? 0) === 0) return newest;
  const known = new Set(
    problem.daemonSets?.map(({ metadata }: DaemonSet) => `${metadata.namespace ?? 'default'}/${metadata.name}`),
  );
  for (const pod of problem.pods) {
    const owner = daemonSetOf(pod?.metadata?.ownerReferences);
    if (!owner) continue;
    const key = `${pod.metadata.namespace ?? 'default'}/${owner.name}`;
    if (!known.has(key)) continue;
    const present = newest.get(key);
    if (!present || (pod.metadata.creationTimestamp ?? '') > (present.metadata.creationTimestamp ?? ''))
      newest.set(key, pod);
  }
  return newest;
}

/** By hand: it is asked of every pod there is. */
function daemonSetOf(owners: Pod['metadata']['ownerReferences']): { readonly name: string } | undefined {
  if (!Array.isArray(owners)) return undefined;
  const list: NonNullable<typeof owners> = owners;
  for (let i = 0; i < list.length; i++) if (list[i]?.kind === 'DaemonSet') return list[i];
  return undefined;
}

/** A place where daemons may run: a kind of node to buy, or a node that exists. */
export interface Place {
  readonly taints: readonly Taint[];
  readonly requirements: Requirements;
  readonly mayBeUndefined: ReadonlySet<string>;
  readonly labels: LabelSet;
}

/** For each alternative of a daemon what it asks of a node; the first that fits decides. */
function wishes(daemon: Daemon, labels: LabelSet): Requirements[] {
  const base = requirementsOfLabels(daemon.nodeSelector, labels);
  if (daemon.terms.length === 0) return [base];
  return daemon.terms.map((term) => mergeRequirements(base, requirementsOf(term.matchExpressions ?? [], labels)));
}

/** The alternatives with which a daemon may run at a place; empty when it never does. */
export function daemonWishes(daemon: Daemon, place: Place): Requirements[] {
  if (untolerated(place.taints, daemon.tolerations)) return [];
  return wishes(daemon, place.labels).filter((asked) => compatible(place.requirements, asked, place.mayBeUndefined));
}

const noLoad: Load = { overhead: new Map(), ports: [] };

/** What daemons take on the types of one pool. Types with the same daemons share one sum. */
export class DaemonLoad {
  readonly #daemons: readonly { readonly daemon: Daemon; readonly alternatives: readonly Requirements[] }[];
  readonly #loads = new Map<string, Load>();

  constructor(daemons: readonly Daemon[], place: Place) {
    this.#daemons = daemons
      .map((daemon) => ({ daemon, alternatives: daemonWishes(daemon, place) }))
      .filter(({ alternatives }) => alternatives.length > 0);
  }

  on(instanceType: Requirements): Load {
    if (this.#daemons.length === 0) return noLoad;
    const running = this.#daemons.filter(({ alternatives }) =>
      alternatives.some((asked) => conflict(instanceType, asked) === undefined),
    );
    const text = running.map(({ daemon }) => daemon.name).join();
    let load = this.#loads.get(text);
    if (!load) {
      const daemons = running.map(({ daemon }) => daemon);
      load = { overhead: overheadOf(daemons), ports: daemons.flatMap(({ ports }) => ports) };
      this.#loads.set(text, load);
    }
    return load;
  }
}

/** What daemons take on a node: resources and ports. */
export interface Load {
  readonly overhead: ReadonlyMap<string, bigint>;
  readonly ports: readonly HostPort[];
}

/** The sum of what daemons request. */
export function overheadOf(daemons: readonly Daemon[]): Amounts {
  const total: Amounts = new Map();
  for (const { requests } of daemons) if (!planted('forgets-daemons')) addTo(total, requests);
  return total;
}
