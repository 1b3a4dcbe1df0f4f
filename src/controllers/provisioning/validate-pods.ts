// SPDX-License-Identifier: Apache-2.0
// Which of the pods that wait can be planned for: what cannot be read, or waits for something else than a node, is left
// out and told why.
import { type LabelSet, labels } from '../../api/labels.ts';
import type { Pod } from '../../kube/kinds.ts';
import { constraintsOf, nodeSelectionProblem } from '../../scheduling/constraints.ts';
import type { VolumeIndex } from '../../scheduling/volumes.ts';

export interface IgnoredPod {
  readonly pod: Pod;
  readonly reason: string;
  /** The pod says itself that it does not want a node of ours: nothing worth telling. */
  readonly byChoice: boolean;
}

export interface ValidatedPods {
  readonly valid: readonly Pod[];
  readonly ignored: readonly IgnoredPod[];
}

/**
 * Sorts pods. `labelSets` are those of the clouds that could serve: a selection that one of them accepts is fine. `volumes`
 * know the storage objects.
 */
export function validatePods(
  pods: Iterable<Pod>,
  labelSets: readonly LabelSet[],
  volumes: Pick<VolumeIndex, 'problemOf'>,
): ValidatedPods {
  const valid: Pod[] = [];
  const ignored: IgnoredPod[] = [];
  for (const pod of pods) {
    const byChoice = refusesPools(pod);
    const reason = byChoice
      ? `the pod asks for a node without ${labels.nodePool}`
      : (selectionProblem(pod, labelSets) ?? volumes.problemOf(pod));
    if (reason === undefined) valid.push(pod);
    else ignored.push({ pod, reason, byChoice });
  }
  return { valid, ignored };
}

/** Whether every alternative of the pod asks for a node that belongs to no pool. */
function refusesPools(pod: Pod): boolean {
  const terms =
    pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  return (
    terms.length > 0 &&
    terms.every(({ matchExpressions }) =>
      matchExpressions?.some(({ key, operator }) => key === labels.nodePool && operator === 'DoesNotExist'),
    )
  );
}

function selectionProblem(pod: Pod, labelSets: readonly LabelSet[]): string | undefined {
  const { nodeSelector, affinity } = pod.spec;
  if (!nodeSelector && !affinity?.nodeAffinity) return undefined;
  const constraints = constraintsOf(pod.spec, [], 'Ignore');
  let first: string | undefined;
  for (const set of labelSets) {
    const problem = nodeSelectionProblem(constraints, set);
    if (problem === undefined) return undefined;
    first ??= problem;
  }
  return first;
}
