// SPDX-License-Identifier: Apache-2.0
// Claims in use by pods, and volumes in use by claims, stay until they are not: their finalizers go last.
import { ignoreNotFound } from '../../kube/api-error.ts';
import { kinds, type Pod } from '../../kube/kinds.ts';
import type { KubeObject } from '../../kube/object.ts';
import { Controller } from '../../runtime/controller.ts';
import { type ControlPlane, vanishingIsFine } from './context.ts';

const claimFinalizer = 'kubernetes.io/pvc-protection';
const volumeFinalizer = 'kubernetes.io/pv-protection';

/** Keys with a namespace are claims, those without are volumes. */
export function volumeProtection(plane: ControlPlane): Controller {
  const { PersistentVolumeClaim: claims, PersistentVolume: volumes } = kinds;
  const pods = plane.informers.of(kinds.Pod);
  pods.addIndex('claim', claimsOf);
  const isLeaving = (object: KubeObject): boolean => object.metadata.deletionTimestamp !== undefined;
  return new Controller({
    ...plane,
    name: 'volume-protection',
    reconciler: vanishingIsFine(new VolumeProtection(plane)),
  })
    .watch(plane.informers.of(claims), {
      when: isLeaving,
      keys: (claim) => [
        `${claim.metadata.namespace}/${claim.metadata.name}`,
        ...(claim.spec.volumeName ? [claim.spec.volumeName] : []),
      ],
    })
    .watch(plane.informers.of(volumes), { when: isLeaving })
    .watch(pods, { keys: claimsOf, when: (pod) => isLeaving(pod) || hasEnded(pod) });
}

function claimsOf(pod: Pod): string[] {
  const { namespace, name } = pod.metadata;
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    if (volume.persistentVolumeClaim) return [`${namespace}/${volume.persistentVolumeClaim.claimName}`];
    return volume.ephemeral ? [`${namespace}/${name}-${volume.name}`] : [];
  });
}

function hasEnded(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}

class VolumeProtection {
  readonly #plane: ControlPlane;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
  }

  async reconcile(key: string): Promise<void> {
    const { client, informers } = this.#plane;
    if (key.includes('/')) {
      const claim = informers.of(kinds.PersistentVolumeClaim).get(key);
      const finalizers = remaining(claim, claimFinalizer);
      const used = informers
        .of(kinds.Pod)
        .byIndex('claim', key)
        .some((pod) => !hasEnded(pod));
      if (!claim || !finalizers || used) return;
      const metadata = { ...claim.metadata, finalizers };
      await ignoreNotFound(client.resource(kinds.PersistentVolumeClaim).update({ ...claim, metadata }));
      return;
    }
    const volume = informers.of(kinds.PersistentVolume).get(key);
    const finalizers = remaining(volume, volumeFinalizer);
    const claimRef = volume?.spec.claimRef;
    const claim = claimRef
      ? informers.of(kinds.PersistentVolumeClaim).get(`${claimRef.namespace}/${claimRef.name}`)
      : undefined;
    if (!volume || !finalizers || (claim && claim.metadata.uid === claimRef?.uid)) return;
    const metadata = { ...volume.metadata, finalizers };
    await ignoreNotFound(client.resource(kinds.PersistentVolume).update({ ...volume, metadata }));
  }
}

/** The finalizers without ours, when the object is leaving and still has it. */
function remaining(object: KubeObject | undefined, finalizer: string): string[] | undefined {
  const { deletionTimestamp, finalizers = [] } = object?.metadata ?? {};
  return deletionTimestamp && finalizers.includes(finalizer) ? finalizers.filter((f) => f !== finalizer) : undefined;
}
