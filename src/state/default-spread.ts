// SPDX-License-Identifier: Apache-2.0
// Spread constraints for pods that bring none, as a cluster's kube-scheduler is told to use them. Whom a pod is spread
// from is worked out as kube-scheduler does: from the Services that select it and from its owner.
import type { Informer } from '../kube/informer.ts';
import {
  kinds,
  type LabelSelector,
  type LabelSelectorRequirement,
  type Pod,
  type ReplicaSet,
  type ReplicationController,
  type Service,
  type StatefulSet,
} from '../kube/kinds.ts';
import type { Cluster } from '../runtime/clusters.ts';
import type { DefaultSpreadConstraint } from '../runtime/scheduler-config.ts';
import { controllerOf } from './pod-predicates.ts';

/** Adds the default constraints. Pods are not changed: those that get constraints are new objects. */
export class DefaultSpread {
  readonly #constraints: readonly DefaultSpreadConstraint[];
  readonly #services: Informer<Service>;
  readonly #replicaSets: Informer<ReplicaSet>;
  readonly #statefulSets: Informer<StatefulSet>;
  readonly #replicationControllers: Informer<ReplicationController>;

  /** Undefined when there are no constraints to add: then nothing has to be watched. */
  static of(workload: Cluster, constraints: readonly DefaultSpreadConstraint[]): DefaultSpread | undefined {
    return constraints.length === 0 ? undefined : new DefaultSpread(workload, constraints);
  }

  private constructor({ informers }: Cluster, constraints: readonly DefaultSpreadConstraint[]) {
    this.#constraints = constraints;
    this.#services = informers.get(kinds.Service);
    this.#replicaSets = informers.get(kinds.ReplicaSet);
    this.#statefulSets = informers.get(kinds.StatefulSet);
    this.#replicationControllers = informers.get(kinds.ReplicationController);
    this.#services.addIndex('namespace', ({ metadata }) => metadata.namespace);
  }

  get hasRead(): boolean {
    const all = [this.#services, this.#replicaSets, this.#statefulSets, this.#replicationControllers];
    return all.every(({ hasSynced }) => hasSynced);
  }

  /** The pods of a pass. Those of one workload are looked up once. */
  applyTo(pods: readonly Pod[]): Pod[] {
    const known = new Map<string, LabelSelector | undefined>();
    return pods.map((pod) => {
      if ((pod.spec.topologySpreadConstraints?.length ?? 0) > 0) return pod;
      const owner = controllerOf(pod);
      const key = JSON.stringify([pod.metadata.namespace, owner?.uid, pod.metadata.labels]);
      if (!known.has(key)) known.set(key, this.#selectorOf(pod));
      const labelSelector = known.get(key);
      if (!labelSelector) return pod;
      const topologySpreadConstraints = this.#constraints.map((constraint) => ({ ...constraint, labelSelector }));
      return { ...pod, spec: { ...pod.spec, topologySpreadConstraints } };
    });
  }

  /** Whom the pod belongs with; undefined when nobody can tell. */
  #selectorOf(pod: Pod): LabelSelector | undefined {
    const { namespace = '', labels = {} } = pod.metadata;
    const matchLabels: Record<string, string> = {};
    for (const { spec } of this.#services.byIndex('namespace', namespace)) {
      const entries = Object.entries(spec.selector ?? {});
      if (entries.length > 0 && entries.every(([key, value]) => labels[key] === value))
        Object.assign(matchLabels, spec.selector);
    }
    const owner = controllerOf(pod);
    const key = `${namespace}/${owner?.name}`;
    if (owner?.kind === 'ReplicationController')
      Object.assign(matchLabels, this.#replicationControllers.get(key)?.spec.selector);
    const matchExpressions = expressionsOf(this.#ownSelector(owner?.kind, key));
    if (Object.keys(matchLabels).length === 0 && matchExpressions.length === 0) return undefined;
    return { matchLabels, matchExpressions };
  }

  #ownSelector(kind: string | undefined, key: string): LabelSelector | undefined {
    if (kind === 'ReplicaSet') return this.#replicaSets.get(key)?.spec.selector;
    return kind === 'StatefulSet' ? this.#statefulSets.get(key)?.spec.selector : undefined;
  }
}

/** A selector as expressions, so that it can be joined with others. */
function expressionsOf(selector: LabelSelector | undefined): LabelSelectorRequirement[] {
  const labels = Object.entries(selector?.matchLabels ?? {});
  return [
    ...labels.map(([key, value]) => ({ key, operator: 'In', values: [value] })),
    ...(selector?.matchExpressions ?? []),
  ];
}
