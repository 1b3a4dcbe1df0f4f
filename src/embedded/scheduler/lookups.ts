// SPDX-License-Identifier: Apache-2.0
// The scheduler's lookups over informers.
import { kinds, type Pod } from '../../kube/kinds.ts';
import type { SharedInformers } from '../workloads/context.ts';
import { controllerOf } from '../workloads/ownership.ts';
import { selectorOf } from '../workloads/selectors.ts';
import type { Lookups } from './cluster-state.ts';

export function informerLookups(informers: SharedInformers): Lookups {
  const claims = informers.of(kinds.PersistentVolumeClaim);
  const volumes = informers.of(kinds.PersistentVolume);
  const classes = informers.of(kinds.StorageClass);
  const csiNodes = informers.of(kinds.CSINode);
  const namespaces = informers.of(kinds.Namespace);
  const replicaSets = informers.of(kinds.ReplicaSet);
  const statefulSets = informers.of(kinds.StatefulSet);
  return {
    claim: (key) => claims.get(key),
    volume: (name) => volumes.get(name),
    volumes: () => volumes.list(),
    storageClass: (name) => classes.get(name),
    csiNode: (name) => csiNodes.get(name),
    namespaces: () => namespaces.list(),
    ownerSelector: (pod: Pod) => {
      const owner = controllerOf(pod);
      const key = `${pod.metadata.namespace}/${owner?.name}`;
      const set =
        owner?.kind === 'ReplicaSet'
          ? replicaSets.get(key)
          : owner?.kind === 'StatefulSet'
            ? statefulSets.get(key)
            : undefined;
      return set && selectorOf(set);
    },
  };
}
