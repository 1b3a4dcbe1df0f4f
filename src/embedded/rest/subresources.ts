// SPDX-License-Identifier: Apache-2.0
// The subresources that are more than a part of their object.
import { deepClone } from '../../base/freeze.ts';
import type { Namespace, Pod } from '../../kube/kinds.ts';
import type { KubeObject } from '../../kube/object.ts';
import { formatTime } from '../../kube/time.ts';
import { handleLog } from '../logs/pod-log.ts';
import { badRequest, conflict, StatusError } from '../status.ts';
import { encode, type RequestContext } from './context.ts';
import { handleEviction } from './eviction.ts';
import { handleGet, handlePatch, handleUpdate } from './handlers.ts';
import { isRecord } from './metadata.ts';
import { parseWriteOptions } from './options.ts';
import type { ApiResponse } from './request.ts';
import { success } from './status-success.ts';
import { commitUpdate, decodeBody, requireObject } from './write.ts';

/** Handlers by `resource/subresource`. */
export const specialSubresources: Readonly<Record<string, (context: RequestContext) => ApiResponse>> = {
  'pods/binding': handleBinding,
  'pods/eviction': handleEviction,
  'pods/log': handleLog,
  'pods/ephemeralcontainers': handleWholeObject,
  'pods/resize': handleWholeObject,
  'pods/exec': notPossible,
  'pods/attach': notPossible,
  'pods/portforward': notPossible,
  'pods/proxy': notPossible,
  'nodes/proxy': notPossible,
  'services/proxy': notPossible,
  'namespaces/finalize': handleFinalize,
  'serviceaccounts/token': handleToken,
};

/** The older form of a binding: in a collection of its own, for the pod of its name. */
export function handleBindingByName(context: RequestContext): ApiResponse {
  const { body } = context.request;
  const metadata = isRecord(body) && isRecord(body['metadata']) ? body['metadata'] : {};
  const name = typeof metadata['name'] === 'string' ? metadata['name'] : '';
  const pods = context.registry.find('', 'v1', 'pods')!;
  const info = { ...context.info, resource: 'pods', name, subresource: 'binding' };
  return handleBinding({ ...context, ...pods, info, collection: context.store.collection('pods') });
}

/** Assigns a pod to a node. */
function handleBinding(context: RequestContext): ApiResponse {
  const options = parseWriteOptions(context.request.query, 'CreateOptions');
  const { body } = context.request;
  if (!isRecord(body)) throw badRequest('the object provided is unrecognized (must be of type Binding)');
  const metadata = isRecord(body['metadata']) ? body['metadata'] : {};
  if (metadata['name'] !== context.info.name) throw badRequest('name in URL does not match name in Binding object');
  const target = isRecord(body['target']) ? body['target'] : {};
  const kind = target['kind'] ?? '';
  const node = target['name'];
  // The API server answers these two with 500 and no reason.
  if (kind !== '' && kind !== 'Node') {
    throw new StatusError(
      500,
      undefined,
      `target.kind: Unsupported value: ${JSON.stringify(kind)}: supported values: "Node", "<empty>"`,
    );
  }
  if (typeof node !== 'string' || node === '') throw new StatusError(500, undefined, 'target.name: Required value');
  const old = requireObject(context) as Pod;
  refuseBinding(context, old, body);
  const { annotations } = metadata;
  const others = (old.status?.conditions ?? []).filter((condition) => condition.type !== 'PodScheduled');
  const placed = {
    type: 'PodScheduled',
    status: 'True',
    lastProbeTime: null as unknown as string,
    lastTransitionTime: formatTime(context.clock.now()),
  };
  const pod: Pod = {
    ...old,
    metadata: {
      ...old.metadata,
      ...(isRecord(annotations)
        ? { annotations: { ...old.metadata.annotations, ...(annotations as Record<string, string>) } }
        : {}),
    },
    spec: { ...old.spec, nodeName: node },
    status: { ...old.status, conditions: [...others, placed] },
  };
  if (!options.dryRun) commitUpdate(context, pod);
  return { status: 201, body: success };
}

function refuseBinding(context: RequestContext, pod: Pod, body: Record<string, unknown>): void {
  const name = context.info.name;
  const uid = isRecord(body['metadata']) ? body['metadata']['uid'] : undefined;
  if (typeof uid === 'string' && uid !== '' && uid !== pod.metadata.uid) {
    throw conflict(
      context.resource,
      name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${pod.metadata.uid}`,
    );
  }
  const bindings = { group: '', plural: 'pods/binding' };
  if (pod.metadata.deletionTimestamp !== undefined) {
    throw conflict(bindings, name, `pod ${name} is being deleted, cannot be assigned to a host`);
  }
  if (pod.spec?.nodeName) {
    throw conflict(bindings, name, `pod ${name} is already assigned to node "${pod.spec.nodeName}"`);
  }
  if ((pod.spec?.schedulingGates ?? []).length > 0) {
    throw conflict(bindings, name, `pod ${name} has non-empty .spec.schedulingGates`);
  }
}

/** Writes that go through a subresource but concern the whole object. */
function handleWholeObject(context: RequestContext): ApiResponse {
  if (context.info.verb === 'get') return handleGet(context);
  return context.info.verb === 'patch' ? handlePatch(context) : handleUpdate(context);
}

/** Replaces the finalizers of a namespace's spec: how the namespace controller lets one go. */
function handleFinalize(context: RequestContext): ApiResponse {
  const options = parseWriteOptions(context.request.query, 'UpdateOptions');
  const old = requireObject(context) as Namespace;
  const sent =
    context.info.verb === 'patch'
      ? undefined
      : (decodeBody(context, context.request.body, context.request.ownsBody, options) as Namespace);
  if (!sent) throw badRequest('a patch of finalize is not served; use an update');
  const version = sent.metadata.resourceVersion;
  if (version !== undefined && version !== '' && version !== old.metadata.resourceVersion) {
    throw conflict(
      context.resource,
      context.info.name,
      'the object has been modified; please apply your changes to the latest version and try again',
    );
  }
  const namespace = deepClone(old);
  namespace.spec = { ...namespace.spec, finalizers: sent.spec?.finalizers ?? [] };
  if (options.dryRun) return { status: 200, body: namespace };
  return { status: 200, body: encode(context, commitUpdate(context, namespace as KubeObject)) };
}

/** What a container that does not run cannot do. */
function notPossible(context: RequestContext): ApiResponse {
  requireObject(context);
  throw new StatusError(
    501,
    'NotImplemented',
    `${context.resource.plural}/${context.info.subresource.split('/')[0]} needs a running container; the embedded cluster only pretends to run them`,
  );
}

/** Tokens of service accounts: known to the server, bound to nothing, valid as long as the server runs. */
function handleToken(context: RequestContext): ApiResponse {
  const account = requireObject(context);
  const { body } = context.request;
  const spec = isRecord(body) && isRecord(body['spec']) ? body['spec'] : {};
  const seconds = typeof spec['expirationSeconds'] === 'number' ? spec['expirationSeconds'] : 3600;
  const token = context.issueToken({
    username: `system:serviceaccount:${account.metadata.namespace}:${account.metadata.name}`,
    uid: account.metadata.uid!,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${account.metadata.namespace}`, 'system:authenticated'],
  });
  return {
    status: 201,
    body: {
      kind: 'TokenRequest',
      apiVersion: 'authentication.k8s.io/v1',
      metadata: { name: account.metadata.name, namespace: account.metadata.namespace },
      spec: { ...spec, expirationSeconds: seconds },
      status: { token, expirationTimestamp: formatTime(context.clock.now() + seconds * 1000) },
    },
  };
}
