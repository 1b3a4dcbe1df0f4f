// SPDX-License-Identifier: Apache-2.0
// Claims get volumes: one that exists and fits, or a new one where the class has a provisioner.
import { compareStrings } from '../../base/order.ts';
import { ignoreNotFound, isAlreadyExists } from '../../kube/api-error.ts';
import { kinds, type PersistentVolume, type PersistentVolumeClaim, type StorageClass } from '../../kube/kinds.ts';
import { Quantity } from '../../kube/quantity.ts';
import { Controller, type Result } from '../../runtime/controller.ts';
import { isMatch, reaches } from '../scheduler/filter-volumes.ts';
import { type ControlPlane, vanishingIsFine } from './context.ts';

/** Set by the scheduler on a claim that waits for its first consumer. */
export const selectedNodeAnnotation = 'volume.kubernetes.io/selected-node';
const zone = 'topology.kubernetes.io/zone';

export function volumeBinder(plane: ControlPlane): Controller {
  const { PersistentVolumeClaim: claims, PersistentVolume: volumes } = kinds;
  const open = (): string[] =>
    plane.informers
      .of(claims)
      .list()
      .filter((claim) => claim.status?.phase !== 'Bound')
      .map((claim) => `${claim.metadata.namespace}/${claim.metadata.name}`);
  const reconciler = new VolumeBinder(plane);
  return (
    new Controller({
      ...plane,
      name: 'persistentvolume-binder',
      kind: claims.kind,
      reconciler: vanishingIsFine(reconciler),
    })
      .watch(plane.informers.of(claims))
      // A key without a namespace is a volume's.
      .watch(plane.informers.of(volumes), { keys: (volume) => [volume.metadata.name!, ...open()] })
      .watch(plane.informers.of(kinds.StorageClass), { keys: open })
  );
}

class VolumeBinder {
  readonly #plane: ControlPlane;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
  }

  async reconcile(key: string): Promise<Result | void> {
    if (!key.includes('/')) return this.#offer(key);
    const claim = this.#plane.informers.of(kinds.PersistentVolumeClaim).get(key);
    if (!claim) return this.#release(key);
    if (claim.metadata.deletionTimestamp || claim.status?.phase === 'Bound') return;
    const volume = await this.#volumeFor(claim);
    if (volume) await this.#bind(claim, volume);
  }

  /** A volume nobody has claimed is there for the taking. */
  async #offer(name: string): Promise<void> {
    const volume = this.#plane.informers.of(kinds.PersistentVolume).get(name);
    if (!volume || volume.spec.claimRef || !['Pending', undefined].includes(volume.status?.phase)) return;
    await this.#plane.client.resource(kinds.PersistentVolume).patchStatus(name, { status: { phase: 'Available' } });
  }

  async #volumeFor(claim: PersistentVolumeClaim): Promise<PersistentVolume | undefined> {
    const volumes = this.#plane.informers.of(kinds.PersistentVolume);
    if (claim.spec.volumeName) return volumes.get(claim.spec.volumeName);
    const own = volumes.list().find((volume) => volume.spec.claimRef?.uid === claim.metadata.uid);
    if (own) return own;
    const className = claim.spec.storageClassName;
    const storageClass = className ? this.#plane.informers.of(kinds.StorageClass).get(className) : undefined;
    const nodeName = claim.metadata.annotations?.[selectedNodeAnnotation];
    const waits = storageClass?.volumeBindingMode === 'WaitForFirstConsumer' && !nodeName;
    if (waits) return undefined;
    const node = nodeName ? this.#plane.informers.of(kinds.Node).get(nodeName) : undefined;
    const [fitting] = volumes
      .list()
      .filter((volume) => isMatch(volume, claim) && (!node || reaches(volume, node)))
      .sort(bySize);
    if (fitting) return fitting;
    const provisions = storageClass && storageClass.provisioner !== 'kubernetes.io/no-provisioner';
    return provisions ? this.#provision(claim, storageClass, nodeName) : undefined;
  }

  async #provision(
    claim: PersistentVolumeClaim,
    storageClass: StorageClass,
    nodeName: string | undefined,
  ): Promise<PersistentVolume> {
    const name = `pvc-${claim.metadata.uid}`;
    const node = nodeName ? this.#plane.informers.of(kinds.Node).get(nodeName) : undefined;
    const zoneName = node?.metadata.labels?.[zone];
    const volume: PersistentVolume = {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name, annotations: { 'pv.kubernetes.io/provisioned-by': storageClass.provisioner } },
      spec: {
        capacity: { storage: claim.spec.resources?.requests?.['storage'] ?? '1Gi' },
        accessModes: claim.spec.accessModes ?? ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: storageClass.reclaimPolicy ?? 'Delete',
        storageClassName: storageClass.metadata.name!,
        csi: { driver: storageClass.provisioner, volumeHandle: name },
        claimRef: claimReference(claim),
        ...(zoneName
          ? {
              nodeAffinity: {
                required: {
                  nodeSelectorTerms: [{ matchExpressions: [{ key: zone, operator: 'In', values: [zoneName] }] }],
                },
              },
            }
          : {}),
      },
    };
    const client = this.#plane.client.resource(kinds.PersistentVolume);
    try {
      const created = await client.create(volume);
      this.#plane.events.normal(claim, 'ProvisioningSucceeded', `Successfully provisioned volume ${name}`);
      return created;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return client.get(name);
    }
  }

  async #bind(claim: PersistentVolumeClaim, volume: PersistentVolume): Promise<void> {
    if (volume.spec.claimRef && volume.spec.claimRef.uid !== claim.metadata.uid) return;
    const volumes = this.#plane.client.resource(kinds.PersistentVolume);
    const claims = this.#plane.client.resource(kinds.PersistentVolumeClaim);
    const { name, namespace } = claim.metadata;
    const bound = { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } };
    if (!volume.spec.claimRef) {
      await volumes.update({ ...volume, spec: { ...volume.spec, claimRef: claimReference(claim) } });
    }
    await volumes.patchStatus(volume.metadata.name!, { status: { phase: 'Bound' } });
    await claims.patch(name!, { metadata: bound, spec: { volumeName: volume.metadata.name } }, { namespace });
    const status = { phase: 'Bound', accessModes: volume.spec.accessModes, capacity: volume.spec.capacity };
    await claims.patchStatus(name!, { status }, { namespace });
  }

  /** The volume of a claim that is gone goes too, or waits for somebody to look at it. */
  async #release(key: string): Promise<void> {
    const volume = this.#plane.informers
      .of(kinds.PersistentVolume)
      .list()
      .find(({ spec: { claimRef } }) => claimRef && `${claimRef.namespace}/${claimRef.name}` === key);
    if (!volume) return;
    const client = this.#plane.client.resource(kinds.PersistentVolume);
    const name = volume.metadata.name!;
    if (volume.spec.persistentVolumeReclaimPolicy === 'Delete') await ignoreNotFound(client.delete(name));
    else await ignoreNotFound(client.patchStatus(name, { status: { phase: 'Released' } }));
  }
}

/** The smallest first: a claim takes no more than it needs. */
function bySize(a: PersistentVolume, b: PersistentVolume): number {
  const size = (volume: PersistentVolume): Quantity =>
    Quantity.tryParse(volume.spec.capacity?.['storage']) ?? Quantity.zero;
  return size(a).cmp(size(b)) || compareStrings(a.metadata.name!, b.metadata.name!);
}

function claimReference(claim: PersistentVolumeClaim): NonNullable<PersistentVolume['spec']['claimRef']> {
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    name: name!,
    namespace: namespace!,
    uid: uid!,
    ...(resourceVersion ? { resourceVersion } : {}),
  };
}
