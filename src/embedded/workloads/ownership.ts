// SPDX-License-Identifier: Apache-2.0
// Who controls what: owner references, adoption of orphans that match, release of those that no longer do.
import { ignoreNotFound, isInvalid, isNotFound } from '../../kube/api-error.ts';
import type { Selector } from '../../kube/labels.ts';
import { apiVersionOf, type KubeObject, type OwnerReference, type ResourceType } from '../../kube/object.ts';
import type { ResourceClient } from '../../kube/resource-client.ts';

/** The owner that controls an object, if any. */
export function controllerOf(object: KubeObject): OwnerReference | undefined {
  const owners = object.metadata.ownerReferences;
  if (owners) for (let i = 0; i < owners.length; i++) if (owners[i]!.controller === true) return owners[i];
  return undefined;
}

/** The reference that makes `owner` the controller of what carries it. */
export function controllerReference(owner: KubeObject, type: ResourceType): OwnerReference {
  return {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    name: owner.metadata.name!,
    uid: owner.metadata.uid!,
    controller: true,
    blockOwnerDeletion: true,
  };
}

/** `namespace/name` of the owner when it is of this kind: the key its controller works on. */
export function ownerKey(object: KubeObject, type: ResourceType): string | undefined {
  const owner = controllerOf(object);
  if (!owner || owner.kind !== type.kind || owner.apiVersion !== apiVersionOf(type)) return undefined;
  return `${object.metadata.namespace}/${owner.name}`;
}

export interface Claim<T extends KubeObject> {
  readonly owner: KubeObject;
  readonly ownerType: ResourceType;
  readonly selector: Selector;
  /** Everything in the owner's namespace that could be its own. */
  readonly candidates: readonly T[];
  readonly client: ResourceClient<T>;
}

/** What the owner controls, after adopting matching orphans and releasing what no longer matches. */
export async function claimOwned<T extends KubeObject>(claim: Claim<T>): Promise<T[]> {
  const { owner, selector } = claim;
  const owned: T[] = [];
  for (const candidate of claim.candidates) {
    const controller = controllerOf(candidate);
    if (controller && controller.uid !== owner.metadata.uid) continue;
    const matches = selector.matches(candidate.metadata.labels);
    if (controller) {
      if (matches) owned.push(candidate);
      else if (!owner.metadata.deletionTimestamp) await release(claim, candidate);
    } else if (matches && !owner.metadata.deletionTimestamp && !candidate.metadata.deletionTimestamp) {
      const adopted = await adopt(claim, candidate);
      if (adopted) owned.push(adopted);
    }
  }
  return owned;
}

async function adopt<T extends KubeObject>(claim: Claim<T>, orphan: T): Promise<T | undefined> {
  const { name, namespace, uid } = orphan.metadata;
  const ownerReferences = [controllerReference(claim.owner, claim.ownerType)];
  const adoption = claim.client.patch(name!, { metadata: { uid, ownerReferences } }, { namespace, type: 'strategic' });
  return ignoreNotFound(adoption);
}

async function release<T extends KubeObject>(claim: Claim<T>, stray: T): Promise<void> {
  const { name, namespace, uid } = stray.metadata;
  const drop = { $patch: 'delete', uid: claim.owner.metadata.uid };
  try {
    await claim.client.patch(name!, { metadata: { uid, ownerReferences: [drop] } }, { namespace, type: 'strategic' });
  } catch (error) {
    // Gone, or already another object under the same name: nothing to release.
    if (!isNotFound(error) && !isInvalid(error)) throw error;
  }
}
