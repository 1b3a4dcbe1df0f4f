// SPDX-License-Identifier: Apache-2.0
// ControllerRevisions: the templates a DaemonSet or StatefulSet has had, which `kubectl rollout` reads and restores.
import { deepEqual } from '../../base/freeze.ts';
import { isAlreadyExists } from '../../kube/api-error.ts';
import { type ControllerRevision, kinds, type Pod, type PodTemplateSpec } from '../../kube/kinds.ts';
import type { KubeObject, ResourceType } from '../../kube/object.ts';
import type { ControlPlane } from './context.ts';
import { type OwnerIndex, ownerIndex } from './owner-index.ts';
import { controllerReference } from './ownership.ts';
import { templateHash } from './template-hash.ts';

/** Says on a pod which revision it was made from. */
export const revisionLabel = 'controller-revision-hash';

export class RevisionHistory {
  readonly #plane: ControlPlane;
  readonly #ownerType: ResourceType;
  readonly #revisions: OwnerIndex<ControllerRevision>;

  constructor(plane: ControlPlane, ownerType: ResourceType) {
    this.#plane = plane;
    this.#ownerType = ownerType;
    this.#revisions = ownerIndex(plane.informers.of(kinds.ControllerRevision));
  }

  /** The hash of the current template. Records it as the newest revision, and drops old ones that no pod uses. */
  async current(owner: KubeObject, template: PodTemplateSpec, limit: number, pods: readonly Pod[]): Promise<string> {
    const known = this.#revisions.ownedBy(owner.metadata.uid!).sort((a, b) => a.revision - b.revision);
    const data = { spec: { template: { ...template, $patch: 'replace' } } };
    const newest = known.at(-1)?.revision ?? 0;
    const same = known.find((revision) => isOf(revision, template, data));
    const client = this.#plane.client.resource(kinds.ControllerRevision);
    if (same) {
      // Rolled back to: it becomes the newest again.
      if (same.revision < newest) await client.update({ ...same, revision: newest + 1 });
      await this.#prune(known, limit, hashOf(same), pods);
      return hashOf(same);
    }
    const hash = templateHash(template);
    const { name, namespace } = owner.metadata;
    try {
      await client.create({
        apiVersion: 'apps/v1',
        kind: 'ControllerRevision',
        metadata: {
          name: `${name}-${hash}`,
          namespace: namespace!,
          labels: { ...template.metadata?.labels, [revisionLabel]: hash },
          ownerReferences: [controllerReference(owner, this.#ownerType)],
        },
        revision: newest + 1,
        data,
      });
    } catch (error) {
      // The cache lags behind; the name is the template's, so it is the same revision.
      if (!isAlreadyExists(error)) throw error;
    }
    return hash;
  }

  async #prune(known: readonly ControllerRevision[], limit: number, live: string, pods: readonly Pod[]): Promise<void> {
    if (known.length <= limit) return;
    // Pods of StatefulSets carry the name of their revision, those of DaemonSets its hash.
    const used = new Set([live, ...pods.map((pod) => pod.metadata.labels?.[revisionLabel])]);
    const idle = known.filter((revision) => !used.has(hashOf(revision)) && !used.has(revision.metadata.name));
    for (const revision of idle.slice(0, Math.max(0, idle.length - limit))) {
      const { name, namespace } = revision.metadata;
      await this.#plane.client.resource(kinds.ControllerRevision).delete(name!, { namespace });
    }
  }
}

/** The template that a revision was last found to be of. */
const foundBefore = new WeakMap<ControllerRevision, PodTemplateSpec>();

/** Neither changes once it is in a cache, and every change of a pod asks. */
function isOf(revision: ControllerRevision, template: PodTemplateSpec, data: unknown): boolean {
  if (foundBefore.get(revision) === template) return true;
  if (!deepEqual(revision.data, data)) return false;
  if (Object.isFrozen(revision) && Object.isFrozen(template)) foundBefore.set(revision, template);
  return true;
}

function hashOf(revision: ControllerRevision): string {
  return revision.metadata.labels?.[revisionLabel] ?? '';
}
