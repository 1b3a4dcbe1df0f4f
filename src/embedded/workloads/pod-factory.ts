// SPDX-License-Identifier: Apache-2.0
// Pods from a workload's template, with the events that tell of them.
import { messageOf } from '../../base/errors.ts';
import { deepClone } from '../../base/freeze.ts';
import { isNotFound } from '../../kube/api-error.ts';
import { kinds, type Pod, type PodTemplateSpec } from '../../kube/kinds.ts';
import type { KubeObject, ResourceType } from '../../kube/object.ts';
import type { ControlPlane } from './context.ts';
import { controllerReference } from './ownership.ts';

/** The longest base of a generated name that leaves room for the suffix. */
const longestBase = 58;

/** A pod as the template says, controlled by `owner`, with a generated name. */
export function podFromTemplate(template: PodTemplateSpec, owner: KubeObject, type: ResourceType): Pod {
  const copy = deepClone(template);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      generateName: `${owner.metadata.name!.slice(0, longestBase)}-`,
      namespace: owner.metadata.namespace!,
      ...(copy.metadata?.labels ? { labels: copy.metadata.labels } : {}),
      ...(copy.metadata?.annotations ? { annotations: copy.metadata.annotations } : {}),
      ...(copy.metadata?.finalizers ? { finalizers: copy.metadata.finalizers } : {}),
      ownerReferences: [controllerReference(owner, type)],
    },
    spec: copy.spec,
  };
}

/** Whether a namespace is on its way out: nothing new can be made in it. */
export function isNamespaceLeaving(plane: ControlPlane, namespace: string | undefined): boolean {
  const object = namespace ? plane.informers.of(kinds.Namespace).get(namespace) : undefined;
  return object?.metadata.deletionTimestamp !== undefined;
}

/** Creates a pod for its owner and tells of it, or of the failure, which is thrown on. */
export async function createPod(plane: ControlPlane, pod: Pod, owner: KubeObject): Promise<Pod> {
  try {
    const created = await plane.client.resource(kinds.Pod).create(pod, { namespace: pod.metadata.namespace });
    plane.events.normal(owner, 'SuccessfulCreate', `Created pod: ${created.metadata.name}`);
    return created;
  } catch (error) {
    plane.events.warning(owner, 'FailedCreate', `Error creating: ${messageOf(error)}`);
    throw error;
  }
}

/** Deletes a pod of its owner and tells of it. One that is gone already is fine. */
export async function deletePod(plane: ControlPlane, pod: Pod, owner: KubeObject): Promise<void> {
  const { name, namespace, uid } = pod.metadata;
  try {
    await plane.client
      .resource(kinds.Pod)
      .delete(name!, { namespace, propagationPolicy: 'Background', ...(uid ? { preconditions: { uid } } : {}) });
    plane.events.normal(owner, 'SuccessfulDelete', `Deleted pod: ${name}`);
  } catch (error) {
    if (isNotFound(error)) return;
    plane.events.warning(owner, 'FailedDelete', `Error deleting: ${messageOf(error)}`);
    throw error;
  }
}
