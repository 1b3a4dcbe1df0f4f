// SPDX-License-Identifier: Apache-2.0
// Machines without an owner: made straight from an infrastructure template and a bootstrap template that carry the member
// label. One NodeClaim, one Machine, under a name that follows from its UID: launching again finds it again.
import type { NodeClaim } from '../../api/node-claim.ts';
import { isAlreadyExists } from '../../kube/api-error.ts';
import { apiVersionOf, type KubeObject, type ResourceType, type UnstructuredObject } from '../../kube/object.ts';
import type { Hub } from './hub.ts';
import { groupOf, type Machine, type MachineSpec, type ObjectReference, type Scalable } from './kinds.ts';
import { annotations, capi, memberLabel } from './names.ts';
import { MemberError } from './shape.ts';

const templateSuffix = 'Template';
const keyPrefix = 'Template:';

/** Whether a member key names a template. */
export function isTemplateKey(key: string): boolean {
  return key.startsWith(keyPrefix);
}

/** The member key of an infrastructure template. */
export function templateKey(kind: string, { metadata }: KubeObject): string {
  return `${keyPrefix}${kind}/${metadata.namespace ?? ''}/${metadata.name ?? ''}`;
}

/** The kind that a member key of a template names. */
export function templateKindOf(key: string): string {
  return key.slice(keyPrefix.length).split('/', 1)[0]!;
}

/** An infrastructure template, read as if something scaled it: what it says about its machines stands in the same places. */
export function asScalable(type: ResourceType, template: UnstructuredObject): Scalable {
  const { metadata } = template;
  const inner = (template['spec'] as { template?: { metadata?: { labels?: Record<string, string> } } } | undefined)
    ?.template;
  const told = metadata.annotations ?? {};
  const bootstrap = bootstrapOf(told[annotations.bootstrapTemplate]);
  const version = told[annotations.version];
  return {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata,
    spec: {
      clusterName: metadata.labels?.[capi.clusterName] ?? '',
      replicas: 0,
      template: {
        metadata: { labels: inner?.metadata?.labels ?? {} },
        spec: {
          infrastructureRef: { apiVersion: apiVersionOf(type), kind: type.kind, name: metadata.name ?? '' },
          ...(bootstrap ? { bootstrap } : {}),
          ...(version ? { version } : {}),
          ...(told[annotations.failureDomain] ? { failureDomain: told[annotations.failureDomain]! } : {}),
        },
      },
    },
  };
}

/** `Secret/name` for user data that is there, else `group/version/Kind/name` of a bootstrap template. */
function bootstrapOf(text: string | undefined): { configRef?: ObjectReference; dataSecretName?: string } | undefined {
  const parts = text?.trim().split('/') ?? [];
  if (parts.length === 2 && parts[0] === 'Secret') return { dataSecretName: parts[1]! };
  if (parts.length !== 4 || !parts[2]!.endsWith(templateSuffix)) return undefined;
  return { configRef: { apiVersion: `${parts[0]}/${parts[1]}`, kind: parts[2]!, name: parts[3]! } };
}

/** What a template needs to be a member. Throws MemberError. */
export function checkTemplate({ spec, kind = '' }: Scalable): void {
  if (!kind.endsWith(templateSuffix)) throw new MemberError(`${kind} is not a template`);
  if (!spec?.clusterName) throw new MemberError(`the label ${capi.clusterName} must say for which Cluster`);
  if (!spec.template?.spec?.bootstrap) {
    throw new MemberError(
      `the annotation ${annotations.bootstrapTemplate} must name user data: Secret/name, or group/version/KindTemplate/name`,
    );
  }
}

export interface OrphanOptions {
  readonly hub: Hub;
  /** The member key of the template. */
  readonly key: string;
  /** The template, read as if something scaled it. */
  readonly template: Scalable;
  readonly claim: NodeClaim;
  /** What the templates look like inside, to notice when they change. */
  readonly hash: string | undefined;
}

/** The Machine of a NodeClaim, made or found. What it refers to is made after it, and goes with it. */
export async function makeMachine(options: OrphanOptions, signal: AbortSignal): Promise<Machine> {
  const { hub, template } = options;
  const machine = await createOrGet(hub, hub.view.kinds.machine, machineFor(options));
  const { infrastructureRef, bootstrap } = template.spec?.template?.spec ?? {};
  for (const ref of [infrastructureRef, bootstrap?.configRef]) {
    if (ref) await cloneTemplate(hub, ref, machine, signal);
  }
  return machine;
}

function machineFor({ hub, key, template, claim, hash }: OrphanOptions): Machine {
  const { namespace = '', name: base = '' } = template.metadata;
  const { uid = '', name: claimName = '' } = claim.metadata;
  const name = `${base.slice(0, 40)}-${uid.replaceAll('-', '').slice(0, 12)}`;
  const { clusterName = '', template: wanted } = template.spec ?? {};
  const type = hub.view.kinds.machine;
  return {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: {
      name,
      namespace,
      labels: { ...wanted?.metadata?.labels, [capi.clusterName]: clusterName, [memberLabel]: '' },
      annotations: {
        [annotations.claimUid]: uid,
        [annotations.claimName]: claimName,
        [annotations.claimCluster]: hub.identity,
        [annotations.member]: key,
        ...(hash === undefined ? {} : { [annotations.templateHash]: hash }),
      },
    },
    spec: { ...machineSpec(wanted?.spec ?? {}, type.version, name, namespace), clusterName },
  };
}

/** What a Machine says, given what its templates are: it refers to what is made from them, under its own name. */
function machineSpec(wanted: MachineSpec, version: string, name: string, namespace: string): MachineSpec {
  const made = (ref: ObjectReference): ObjectReference => ({
    ...(version === 'v1beta1' ? { apiVersion: ref.apiVersion ?? '', namespace } : { apiGroup: groupOf(ref) }),
    kind: ref.kind!.slice(0, -templateSuffix.length),
    name,
  });
  const { configRef, dataSecretName = '' } = wanted.bootstrap ?? {};
  return {
    bootstrap: configRef ? { configRef: made(configRef) } : { dataSecretName },
    infrastructureRef: made(wanted.infrastructureRef!),
    ...(wanted.version ? { version: wanted.version } : {}),
    ...(wanted.failureDomain ? { failureDomain: wanted.failureDomain } : {}),
  };
}

/** What a template describes, owned by the Machine: the garbage collector of the hub removes it with its owner. */
async function cloneTemplate(hub: Hub, ref: ObjectReference, machine: Machine, signal: AbortSignal): Promise<void> {
  const { namespace = '', name = '', uid = '' } = machine.metadata;
  const template = await hub.template(ref, namespace, signal);
  const type = await hub.kindOf(groupOf(ref), ref.kind!.slice(0, -templateSuffix.length), signal);
  if (!template || !type) throw new MemberError(`${ref.kind} ${namespace}/${ref.name} cannot be read`);
  const inner = (template.spec as { template?: { metadata?: KubeObject['metadata']; spec?: unknown } } | undefined)
    ?.template;
  const clone: UnstructuredObject = {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: {
      name,
      namespace,
      labels: { ...inner?.metadata?.labels, [capi.clusterName]: machine.spec?.clusterName ?? '' },
      annotations: {
        ...inner?.metadata?.annotations,
        [capi.clonedFromName]: ref.name ?? '',
        [capi.clonedFromKind]: `${ref.kind}.${groupOf(ref)}`,
      },
      ownerReferences: [{ apiVersion: apiVersionOf(hub.view.kinds.machine), kind: 'Machine', name, uid }],
    },
    spec: inner?.spec ?? {},
  };
  await createOrGet(hub, type as ResourceType<UnstructuredObject>, clone);
}

async function createOrGet<T extends KubeObject>(hub: Hub, type: ResourceType<T>, object: T): Promise<T> {
  const client = hub.cluster.client.resource(type);
  try {
    return await client.create(object);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return client.get(object.metadata.name ?? '', { namespace: object.metadata.namespace });
  }
}
