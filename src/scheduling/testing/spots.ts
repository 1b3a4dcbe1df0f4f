// SPDX-License-Identifier: Apache-2.0
// Where the validator puts pods: nodes that exist, and claims as the set of nodes they may still become.
import type { PodSpec, Taint } from '../objects.ts';
import type { InstanceTypeSpec } from '../problem.ts';
import { type Amounts, add, excess } from './amounts.ts';
import type { Launch, Pool } from './catalogue.ts';
import type { ExistingNode } from './cluster.ts';
import { type HostPort, hostnameLabel, lookup, nodeTerms, portsConflict, surelyMatches } from './pod-rules.ts';
import type { Place } from './topology.ts';
import { type Expression, type LabelState, missing, Values } from './values.ts';

/** A place that can be checked against a pod. */
export interface Spot extends Place {
  readonly taints: readonly Taint[];
  /** Host ports in use before this pass; for a claim, none. */
  readonly ports: readonly HostPort[];
  readonly existing: ExistingNode | undefined;
  /** What is known of a label, whatever node this becomes. */
  label(key: string): LabelState;
  /** Whether every node this may become satisfies one of the terms. */
  satisfies(terms: readonly Expression[][]): boolean;
  /** A pod's node terms, spelled as this place's labels are. */
  terms(spec: PodSpec): Expression[][];
}

const aliases: Readonly<Record<string, string>> = {
  'failure-domain.beta.kubernetes.io/zone': 'topology.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region': 'topology.kubernetes.io/region',
  'beta.kubernetes.io/arch': 'kubernetes.io/arch',
  'beta.kubernetes.io/os': 'kubernetes.io/os',
  'beta.kubernetes.io/instance-type': 'node.kubernetes.io/instance-type',
};

export class ExistingSpot implements Spot {
  readonly id: string;
  readonly existing: ExistingNode;

  constructor(node: ExistingNode) {
    this.existing = node;
    this.id = `node ${node.name}`;
  }

  get taints(): readonly Taint[] {
    return this.existing.taints;
  }

  get ports(): readonly HostPort[] {
    return this.existing.ports;
  }

  label(key: string): LabelState {
    return this.existing.labels.get(key) ?? missing;
  }

  satisfies(terms: readonly Expression[][]): boolean {
    return surelyMatches(terms, lookup(this.existing.labels));
  }

  terms(spec: PodSpec): Expression[][] {
    return nodeTerms(spec).map((t) =>
      t.map((e) => (this.existing.labels.has(e.key) ? e : { ...e, key: aliases[e.key] ?? e.key })),
    );
  }

  domains(key: string): readonly string[] {
    return this.label(key).values.members() ?? [];
  }
}

export class ClaimSpot implements Spot {
  readonly id: string;
  readonly pool: Pool;
  readonly launches: readonly Launch[];
  readonly existing = undefined;
  readonly ports: readonly HostPort[] = [];
  readonly #labels = new Map<string, LabelState>();
  readonly #domains = new Map<string, readonly string[]>();

  constructor(id: string, pool: Pool, launches: readonly Launch[]) {
    this.id = id;
    this.pool = pool;
    this.launches = launches;
  }

  get taints(): readonly Taint[] {
    return this.pool.taints;
  }

  label(key: string): LabelState {
    let state = this.#labels.get(key);
    if (!state) {
      let values = Values.none;
      let maybeAbsent = this.launches.length === 0;
      const seen = new Set<LabelState>();
      for (const launch of this.launches) {
        const one = launch.labels.get(key) ?? missing;
        if (seen.has(one)) continue;
        seen.add(one);
        values = values.or(one.values);
        maybeAbsent ||= one.maybeAbsent;
      }
      state = { values, maybeAbsent };
      this.#labels.set(key, state);
    }
    return state;
  }

  satisfies(terms: readonly Expression[][]): boolean {
    if (surelyMatches(terms, (key) => this.label(key))) return true;
    return (
      terms.length > 1 && this.launches.length > 0 && this.launches.every((l) => surelyMatches(terms, lookup(l.labels)))
    );
  }

  terms(spec: PodSpec): Expression[][] {
    return this.pool.terms(spec);
  }

  domains(key: string): readonly string[] {
    if (key === hostnameLabel) return [this.id];
    let found = this.#domains.get(key);
    if (!found) {
      const { values } = this.label(key);
      // A label with a value of the cloud's or our choosing is a domain, but nobody else's.
      found = values.members() ?? [`unknown to ${this.id}`];
      this.#domains.set(key, found);
    }
    return found;
  }
}

/** The launches of a claim in which its pods and the type's daemonsets fit, ports included. */
export function fittingLaunches(
  launches: readonly Launch[],
  pool: Pool,
  requests: Amounts,
  ports: readonly HostPort[],
): Launch[] {
  const verdicts = new Map<InstanceTypeSpec, Map<Amounts, boolean>>();
  return launches.filter((launch) => {
    let known = verdicts.get(launch.type);
    if (!known) {
      known = new Map();
      verdicts.set(launch.type, known);
    }
    let fits = known.get(launch.allocatable);
    if (fits === undefined) {
      const daemons = pool.daemonsFor(launch.type);
      const total = daemons.length > 0 ? add(requests, ...daemons.map((d) => d.requests)) : requests;
      fits =
        excess(total, launch.allocatable).length === 0 &&
        !daemons.some((d) => d.ports.some((a) => ports.some((b) => portsConflict(a, b))));
      known.set(launch.allocatable, fits);
    }
    return fits;
  });
}
