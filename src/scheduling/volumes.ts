// SPDX-License-Identifier: Apache-2.0
// Volumes tie pods to places: where a claim's volume is or may be made, and how many volumes a node can attach.
import { annotations, labels } from '../api/labels.ts';
import type { PersistentVolume, PersistentVolumeClaim, Pod, RequirementSpec, StorageClass, Volume } from './objects.ts';
import type { Problem } from './problem.ts';
import { compatible, mergeRequirements, Requirement, type Requirements, requirementsOf } from './requirements.ts';
import { allowedTopologiesShape, nodeTermsShape } from './shapes.ts';

/** In-tree drivers by the CSI driver that replaced them. */
const replaced: Readonly<Record<string, string>> = {
  'kubernetes.io/aws-ebs': 'ebs.csi.aws.com',
  'kubernetes.io/gce-pd': 'pd.csi.storage.gke.io',
  'kubernetes.io/azure-disk': 'disk.csi.azure.com',
  'kubernetes.io/azure-file': 'file.csi.azure.com',
  'kubernetes.io/cinder': 'cinder.csi.openstack.org',
  'kubernetes.io/vsphere-volume': 'csi.vsphere.vmware.com',
  'kubernetes.io/portworx-volume': 'pxd.portworx.com',
};

/** Places that serve all volumes of a pod, as alternatives. Empty: anywhere. */
export type VolumeAlternatives = readonly (readonly RequirementSpec[])[];

/** One attachment: which driver, which claim. */
export interface Attachment {
  readonly driver: string;
  readonly claim: string;
}

/** The storage objects of a problem, by name. */
export class VolumeIndex {
  readonly #claims = new Map<string, PersistentVolumeClaim>();
  readonly #volumes = new Map<string, PersistentVolume>();
  readonly #classes = new Map<string, StorageClass>();

  constructor(problem: Problem) {
    for (const claim of problem.persistentVolumeClaims ?? [])
      this.#claims.set(`${claim.metadata.namespace ?? 'default'}/${claim.metadata.name}`, claim);
    for (const volume of problem.persistentVolumes ?? []) this.#volumes.set(volume.metadata.name ?? '', volume);
    for (const storageClass of problem.storageClasses ?? [])
      this.#classes.set(storageClass.metadata.name ?? '', storageClass);
  }

  /** Why a pod's volumes keep it from being scheduled at all; undefined when nothing does. */
  problemOf(pod: Pod): string | undefined {
    for (const volume of pod.spec.volumes ?? []) {
      const name = claimName(pod, volume);
      if (name === undefined) continue;
      const claim = this.#claims.get(claimKey(pod, name));
      if (!claim) return `persistent volume claim ${name} does not exist`;
      const problem = this.#claimProblem(claim, name);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }

  #claimProblem(claim: PersistentVolumeClaim, name: string): string | undefined {
    if (claim.metadata.deletionTimestamp) return `persistent volume claim ${name} is being deleted`;
    if (claim.status?.phase === 'Lost') return `persistent volume claim ${name} has lost its volume`;
    const volumeName = claim.spec?.volumeName;
    if (volumeName) {
      const volume = this.#volumes.get(volumeName);
      if (!volume) return `persistent volume ${volumeName} of claim ${name} does not exist`;
      if (volume.metadata.deletionTimestamp) return `persistent volume ${volumeName} of claim ${name} is being deleted`;
      if (claim.metadata.annotations?.[annotations.volumeBindCompleted] === undefined)
        return `persistent volume claim ${name} is not fully bound yet`;
      const wrong = volumeProblem(volume);
      return wrong && `persistent volume ${volumeName} of claim ${name} cannot be used: ${wrong}`;
    }
    const className = claim.spec?.storageClassName;
    if (!className) return `persistent volume claim ${name} is unbound and names no storage class`;
    const storageClass = this.#classes.get(className);
    if (!storageClass) return `storage class ${className} of claim ${name} does not exist`;
    if ((storageClass.volumeBindingMode ?? 'Immediate') === 'Immediate')
      return `persistent volume claim ${name} waits for its volume: storage class ${className} binds immediately`;
    const wrong = allowedTopologiesShape(storageClass.allowedTopologies ?? []);
    return wrong && `storage class ${className} of claim ${name} cannot be used: ${wrong}`;
  }

  /** Where the pod's volumes allow it to run. */
  alternativesOf(pod: Pod): VolumeAlternatives {
    let all: VolumeAlternatives = [];
    for (const volume of pod.spec.volumes ?? []) {
      const name = claimName(pod, volume);
      const claim = name === undefined ? undefined : this.#claims.get(claimKey(pod, name));
      if (!claim) continue;
      const places = this.#places(claim);
      if (places.length > 0) all = all.length === 0 ? places : product(all, places);
    }
    return all;
  }

  #places(claim: PersistentVolumeClaim): VolumeAlternatives {
    const volumeName = claim.spec?.volumeName;
    if (volumeName) return placesOfVolume(this.#volumes.get(volumeName));
    const storageClass = this.#classes.get(claim.spec?.storageClassName ?? '');
    return (storageClass?.allowedTopologies ?? []).map((term) =>
      (term.matchLabelExpressions ?? []).map(({ key, values }) => ({ key, operator: 'In', values: values ?? [] })),
    );
  }

  /** What a pod attaches to its node, where the driver is known. */
  attachmentsOf(pod: Pod): Attachment[] {
    const found: Attachment[] = [];
    for (const volume of pod.spec.volumes ?? []) {
      const name = claimName(pod, volume);
      const key = name === undefined ? undefined : claimKey(pod, name);
      const claim = key === undefined ? undefined : this.#claims.get(key);
      if (key === undefined || !claim) continue;
      const driver = this.#driverOf(claim);
      if (driver !== undefined) found.push({ driver, claim: key });
    }
    return found;
  }

  #driverOf(claim: PersistentVolumeClaim): string | undefined {
    const volumeName = claim.spec?.volumeName;
    if (volumeName) {
      const spec = this.#volumes.get(volumeName)?.spec;
      if (spec?.csi) return spec.csi.driver;
      if (spec?.awsElasticBlockStore) return 'ebs.csi.aws.com';
      if (spec?.gcePersistentDisk) return 'pd.csi.storage.gke.io';
      if (spec?.azureDisk) return 'disk.csi.azure.com';
      return undefined;
    }
    const provisioner = this.#classes.get(claim.spec?.storageClassName ?? '')?.provisioner;
    return provisioner === undefined ? undefined : (replaced[provisioner] ?? provisioner);
  }
}

/** Why it is not known where a volume is. */
function volumeProblem({ spec }: PersistentVolume): string | undefined {
  const required = spec?.nodeAffinity?.required;
  if (!required) return undefined;
  const wrong = nodeTermsShape(required);
  if (wrong !== undefined) return wrong;
  for (const { matchExpressions } of required.nodeSelectorTerms ?? [])
    for (const expression of matchExpressions ?? [])
      if (!Requirement.parse(expression))
        return `${JSON.stringify(expression.key)} ${expression.operator} in its node affinity cannot be read`;
  return undefined;
}

function claimName(pod: Pod, volume: Volume): string | undefined {
  if (volume.persistentVolumeClaim) return volume.persistentVolumeClaim.claimName;
  if (volume.ephemeral) return `${pod.metadata.name}-${volume.name}`;
  return undefined;
}

function claimKey(pod: Pod, name: string): string {
  return `${pod.metadata.namespace ?? 'default'}/${name}`;
}

function placesOfVolume(volume: PersistentVolume | undefined): VolumeAlternatives {
  const terms = volume?.spec?.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  // A local volume's node may be gone, and with it the hostname: its other labels still say where it would be made again.
  const local = volume?.spec?.local !== undefined || volume?.spec?.hostPath !== undefined;
  const places: (readonly RequirementSpec[])[] = [];
  for (const term of terms) {
    const expressions = (term.matchExpressions ?? []).filter(({ key }) => !(local && key === labels.hostname));
    if (expressions.length === 0) return [];
    places.push(expressions);
  }
  return places;
}

/** Pairs that can hold together; when none can, all of them, so that the pod fails with a reason instead of running anywhere. */
function product(a: VolumeAlternatives, b: VolumeAlternatives): VolumeAlternatives {
  const all: (readonly RequirementSpec[])[] = [];
  const good: (readonly RequirementSpec[])[] = [];
  for (const left of a) {
    const given: Requirements = requirementsOf(left);
    for (const right of b) {
      const both = [...left, ...right];
      const asked = requirementsOf(right);
      all.push(both);
      if (compatible(given, asked, new Set(asked.keys())) && mergeRequirements(given, asked).size > 0) good.push(both);
    }
  }
  return good.length > 0 ? good : all;
}

/** Whether a node may attach these volumes too. A claim counts once, however often it is mounted. */
export function canAttach(
  limits: ReadonlyMap<string, number>,
  attached: ReadonlyMap<string, ReadonlySet<string>>,
  wanted: readonly { readonly driver: string; readonly claim: string }[] | undefined,
): boolean {
  if (limits.size === 0 || !wanted) return true;
  const more = new Map<string, Set<string>>();
  for (const { driver, claim } of wanted) {
    if (attached.get(driver)?.has(claim)) continue;
    const claims = more.get(driver) ?? new Set();
    more.set(driver, claims.add(claim));
  }
  for (const [driver, claims] of more) {
    const limit = limits.get(driver);
    if (limit !== undefined && (attached.get(driver)?.size ?? 0) + claims.size > limit) return false;
  }
  return true;
}
