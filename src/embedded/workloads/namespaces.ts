// SPDX-License-Identifier: Apache-2.0
// Namespaces: what a new one is born with, and how one that goes is emptied before it may.
import { deepEqual } from '../../base/freeze.ts';
import { apiErrorOf, ignoreNotFound, isAlreadyExists, isNotFound } from '../../kube/api-error.ts';
import { kinds, type Namespace } from '../../kube/kinds.ts';
import type { KubeObject, ResourceType } from '../../kube/object.ts';
import { formatTime } from '../../kube/time.ts';
import { Controller, type Result } from '../../runtime/controller.ts';
import { withCondition } from './conditions.ts';
import { type ControlPlane, vanishingIsFine } from './context.ts';

/** Pods and finalizers take their time: how often a namespace that is not empty yet is looked at. */
const recheckMs = 1000;

export function namespaceController(plane: ControlPlane, certificateAuthority: string): Controller {
  const reconciler = new Namespaces(plane, certificateAuthority);
  return new Controller({
    ...plane,
    name: 'namespace',
    kind: 'Namespace',
    reconciler: vanishingIsFine(reconciler),
    maxConcurrent: 5,
  })
    .watch(plane.informers.of(kinds.Namespace))
    .watch(plane.informers.of(kinds.ServiceAccount), {
      keys: (account) => [account.metadata.namespace!],
      when: (account) => account.metadata.name === 'default',
    })
    .watch(plane.informers.of(kinds.ConfigMap), {
      keys: (map) => [map.metadata.namespace!],
      when: (map) => map.metadata.name === rootCertificates,
    });
}

const rootCertificates = 'kube-root-ca.crt';

interface ApiResource {
  readonly name: string;
  readonly namespaced: boolean;
  readonly kind: string;
  readonly verbs: readonly string[];
}

class Namespaces {
  readonly #plane: ControlPlane;
  readonly #certificateAuthority: string;

  constructor(plane: ControlPlane, certificateAuthority: string) {
    this.#plane = plane;
    this.#certificateAuthority = certificateAuthority;
  }

  async reconcile(name: string): Promise<Result | void> {
    const namespace = this.#plane.informers.of(kinds.Namespace).get(name);
    if (!namespace) return;
    return namespace.metadata.deletionTimestamp ? this.#empty(namespace) : this.#furnish(name);
  }

  /** The service account and the certificates every namespace has. */
  async #furnish(namespace: string): Promise<void> {
    const { client, informers } = this.#plane;
    if (!informers.of(kinds.ServiceAccount).get(`${namespace}/default`)) {
      const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace } };
      await ignoreExisting(client.resource(kinds.ServiceAccount).create(account));
    }
    const data = { 'ca.crt': this.#certificateAuthority };
    const map = informers.of(kinds.ConfigMap).get(`${namespace}/${rootCertificates}`);
    if (!map) {
      const metadata = {
        name: rootCertificates,
        namespace,
        annotations: { 'kubernetes.io/description': 'Contains a CA bundle that verifies the API server.' },
      };
      await ignoreExisting(
        client.resource(kinds.ConfigMap).create({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data }),
      );
    } else if (!deepEqual(map.data, data)) {
      await client.resource(kinds.ConfigMap).update({ ...map, data });
    }
  }

  async #empty(namespace: Namespace): Promise<Result | void> {
    const name = namespace.metadata.name!;
    if ((namespace.spec?.finalizers ?? []).length === 0) return;
    const remaining: string[] = [];
    for (const type of await this.#namespacedTypes()) {
      const count = await this.#deleteAll(type, name);
      if (count > 0) remaining.push(`${type.plural}.${type.group} has ${count} resource instances`);
    }
    if (remaining.length > 0) {
      await this.#report(namespace, `Some resources are remaining: ${remaining.join(', ')}`);
      return { requeueAfterMs: recheckMs };
    }
    await this.#finalize(name);
  }

  /** Asks for everything of a kind to go; how much of it is still there. */
  async #deleteAll(type: ResourceType, namespace: string): Promise<number> {
    const resource = this.#plane.client.resource(type);
    try {
      await resource.deleteCollection({ namespace, propagationPolicy: 'Background' });
      return (await resource.list({ namespace })).items.length;
    } catch (error) {
      // A kind that was served a moment ago and is gone, or that cannot be deleted as a collection.
      if (isNotFound(error) || apiErrorOf(error)?.status === 405) return 0;
      throw error;
    }
  }

  async #report(namespace: Namespace, message: string): Promise<void> {
    const conditions = withCondition(namespace.status?.conditions, {
      type: 'NamespaceContentRemaining',
      status: 'True',
      reason: 'SomeResourcesRemain',
      message,
      lastTransitionTime: formatTime(this.#plane.clock.now()),
    });
    const status = { phase: 'Terminating', conditions };
    if (deepEqual(status, namespace.status)) return;
    await ignoreNotFound(this.#plane.client.resource(kinds.Namespace).updateStatus({ ...namespace, status }));
  }

  async #finalize(name: string): Promise<void> {
    const client = this.#plane.client.resource(kinds.Namespace);
    const latest = await ignoreNotFound(client.get(name));
    if (!latest?.metadata.deletionTimestamp) return;
    const finalizers = (latest.spec?.finalizers ?? []).filter((finalizer) => finalizer !== 'kubernetes');
    await ignoreNotFound(
      client.update({ ...latest, spec: { ...latest.spec, finalizers } }, { subresource: 'finalize' }),
    );
  }

  /** Every namespaced kind the server serves that can be listed and deleted, one version each. */
  async #namespacedTypes(): Promise<ResourceType[]> {
    const { groups } = (await this.#get('/apis')) as {
      groups: { name: string; preferredVersion: { version: string } }[];
    };
    const served = [{ name: '', version: 'v1', path: '/api/v1' }].concat(
      groups.map((group) => ({
        name: group.name,
        version: group.preferredVersion.version,
        path: `/apis/${group.name}/${group.preferredVersion.version}`,
      })),
    );
    const types: ResourceType[] = [];
    for (const { name: group, version, path } of served) {
      const { resources } = (await this.#get(path)) as { resources: ApiResource[] };
      for (const { name, kind, namespaced, verbs } of resources) {
        const usable = namespaced && !name.includes('/') && verbs.includes('list') && verbs.includes('delete');
        if (usable) types.push({ group, version, kind, plural: name, namespaced });
      }
    }
    return types;
  }

  #get(path: string): Promise<unknown> {
    return this.#plane.client.request({ method: 'GET', path });
  }
}

async function ignoreExisting<T extends KubeObject>(creation: Promise<T>): Promise<void> {
  try {
    await creation;
  } catch (error) {
    // Somebody else was first, or the namespace went away meanwhile.
    if (!isAlreadyExists(error) && !isNotFound(error)) throw error;
  }
}
