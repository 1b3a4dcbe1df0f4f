// SPDX-License-Identifier: Apache-2.0
// A problem that may leave the cluster: a bug report, a benchmark, a what-if. Only what the scheduler reads is in it; what
// is not named here is left out, so that a field nobody thought of cannot carry a secret along.
import type { DaemonSet, Pod, PodSpec } from '../kube/kinds.ts';
import type {
  Condition,
  CSINode,
  Metadata,
  Node,
  NodeClaim,
  NodePool,
  PersistentVolume,
  PersistentVolumeClaim,
  StorageClass,
} from '../scheduling/objects.ts';
import type { Problem } from '../scheduling/problem.ts';
import { keptAnnotations, slimPod, slimSpec } from './slim.ts';

/** The same problem, with the same solution, without what the scheduler does not read. A new object; parts may be shared. */
export function sanitizeProblem(problem: Problem): Problem {
  return {
    ...problem,
    nodePools: problem.nodePools.map(cleanPool),
    nodes: problem.nodes?.map(cleanNode) ?? [],
    nodeClaims: problem.nodeClaims?.map(cleanClaim) ?? [],
    pods: problem.pods.map((pod) => ({ ...slimPod(pod as Pod), metadata: cleanMetadata(pod.metadata) })),
    daemonSets: problem.daemonSets?.map((set) => cleanDaemonSet(set as DaemonSet)) ?? [],
    namespaces: problem.namespaces?.map(({ metadata }) => ({ metadata: cleanMetadata(metadata) })) ?? [],
    podDisruptionBudgets:
      problem.podDisruptionBudgets?.map(({ metadata, spec, status }) =>
        defined({
          metadata: cleanMetadata(metadata),
          spec,
          status: status && defined({ disruptionsAllowed: status.disruptionsAllowed }),
        }),
      ) ?? [],
    persistentVolumeClaims: problem.persistentVolumeClaims?.map(cleanVolumeClaim) ?? [],
    persistentVolumes: problem.persistentVolumes?.map(cleanVolume) ?? [],
    storageClasses: problem.storageClasses?.map(cleanStorageClass) ?? [],
    csiNodes: problem.csiNodes?.map(cleanCsiNode) ?? [],
  };
}

const volumeAnnotations = /^pv\.kubernetes\.io\//;

function cleanMetadata(metadata: Metadata): Metadata {
  const { name, namespace, uid, creationTimestamp, deletionTimestamp, labels, annotations, ownerReferences } = metadata;
  const kept = Object.entries(annotations ?? {}).filter(
    ([key]) => keptAnnotations.test(key) || volumeAnnotations.test(key),
  );
  return defined({
    name,
    namespace,
    uid,
    creationTimestamp,
    deletionTimestamp,
    labels,
    annotations: kept.length > 0 ? Object.fromEntries(kept) : undefined,
    ownerReferences,
  });
}

function cleanPool({ metadata, spec, status }: NodePool): NodePool {
  const { template } = spec;
  return {
    metadata: cleanMetadata(metadata),
    spec: {
      ...spec,
      // Annotations of a template go to nodes; the scheduler does not read them.
      template: defined({ metadata: defined({ labels: template.metadata?.labels }), spec: template.spec }),
    },
    ...(status?.conditions ? { status: { conditions: status.conditions.map(cleanCondition) } } : {}),
  };
}

function cleanClaim({ metadata, spec, status }: NodeClaim): NodeClaim {
  return defined({
    metadata: cleanMetadata(metadata),
    spec:
      spec &&
      defined({
        taints: spec.taints,
        startupTaints: spec.startupTaints,
        requirements: spec.requirements,
        // What plans of disruption read.
        terminationGracePeriod: spec.terminationGracePeriod,
        expireAfter: spec.expireAfter,
      }),
    status:
      status &&
      defined({
        nodeName: status.nodeName,
        providerID: status.providerID,
        capacity: status.capacity,
        allocatable: status.allocatable,
        conditions: status.conditions?.map(cleanCondition),
      }),
  });
}

function cleanNode({ metadata, spec, status }: Node): Node {
  return {
    metadata: cleanMetadata(metadata),
    spec: defined({ providerID: spec?.providerID, taints: spec?.taints, unschedulable: spec?.unschedulable }),
    status: defined({
      capacity: status?.capacity,
      allocatable: status?.allocatable,
      conditions: status?.conditions?.map(cleanCondition),
    }),
  };
}

function cleanCondition({ type, status, reason, lastTransitionTime }: Condition): Condition {
  return defined({ type, status, reason, lastTransitionTime });
}

function cleanDaemonSet({ metadata, spec }: DaemonSet): NonNullable<Problem['daemonSets']>[number] {
  const { template } = spec;
  return {
    metadata: cleanMetadata(metadata),
    spec: {
      template: {
        metadata: defined({ labels: template.metadata?.labels }),
        spec: slimSpec(template.spec as PodSpec),
      },
    },
  };
}

function cleanVolumeClaim({ metadata, spec, status }: PersistentVolumeClaim): PersistentVolumeClaim {
  return {
    metadata: cleanMetadata(metadata),
    spec: defined({ volumeName: spec?.volumeName, storageClassName: spec?.storageClassName }),
    status: defined({ phase: status?.phase }),
  };
}

function cleanVolume({ metadata, spec }: PersistentVolume): PersistentVolume {
  const present = (part: unknown): object | undefined => (part === undefined ? undefined : {});
  return {
    metadata: cleanMetadata(metadata),
    spec: defined({
      csi: spec?.csi && { driver: spec.csi.driver },
      awsElasticBlockStore: present(spec?.awsElasticBlockStore),
      gcePersistentDisk: present(spec?.gcePersistentDisk),
      azureDisk: present(spec?.azureDisk),
      local: present(spec?.local),
      hostPath: present(spec?.hostPath),
      nodeAffinity: spec?.nodeAffinity,
    }),
  };
}

function cleanStorageClass({
  metadata,
  provisioner,
  volumeBindingMode,
  allowedTopologies,
}: StorageClass): StorageClass {
  return defined({ metadata: cleanMetadata(metadata), provisioner, volumeBindingMode, allowedTopologies });
}

function cleanCsiNode({ metadata, spec }: CSINode): CSINode {
  const drivers = spec?.drivers?.map(({ name, allocatable }) => defined({ name, allocatable }));
  return { metadata: cleanMetadata(metadata), spec: defined({ drivers }) };
}

type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** Without the fields that are undefined. */
function defined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
}
