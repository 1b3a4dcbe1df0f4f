// SPDX-License-Identifier: Apache-2.0
// The scale subresource: replicas of any kind that has some, read and written in one form.
import { deepClone } from '../../base/freeze.ts';
import { compileLabelSelector, type LabelSelector, SelectorError } from '../../kube/labels.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { ScalePaths } from '../resource.ts';
import { badRequest, internalError, invalid, modified } from '../status.ts';
import { encode, type RequestContext } from './context.ts';
import { applyPatch } from './handlers.ts';
import { isRecord } from './metadata.ts';
import { parseWriteOptions } from './options.ts';
import type { ApiResponse } from './request.ts';
import { requireObject, updateObject } from './write.ts';

export function handleScale(context: RequestContext, paths: ScalePaths): ApiResponse {
  const old = requireObject(context);
  if (context.info.verb === 'get') return { status: 200, body: scaleOf(context, old, paths) };
  const options = parseWriteOptions(context.request.query, 'UpdateOptions');
  const type = (context.request.contentType ?? '').split(';')[0]!.trim();
  const sent =
    context.info.verb === 'patch'
      ? applyPatch(scaleContext(context), type, scaleOf(context, old, paths))
      : context.request.body;
  const replicas = replicasOf(sent, context.info.name, context.resource.custom);
  const version = isRecord(sent) && isRecord(sent['metadata']) ? sent['metadata']['resourceVersion'] : undefined;
  if (version !== undefined && version !== '' && version !== old.metadata.resourceVersion) {
    throw modified(context.resource, context.info.name);
  }
  const object = deepClone(old);
  setAt(object, paths.specReplicas, replicas);
  // The write is one to the object itself: its generation moves, its status stays.
  const updated = updateObject({ ...context, info: { ...context.info, subresource: '' } }, old, object, options);
  return { status: 200, body: scaleOf(context, updated, paths) };
}

function scaleContext(context: RequestContext): RequestContext {
  const resource = { ...context.resource, group: 'autoscaling', kind: 'Scale', custom: false };
  return { ...context, resource };
}

function replicasOf(sent: unknown, name: string, custom: boolean): number {
  if (!isRecord(sent)) throw badRequest('the object provided is unrecognized (must be of type Scale)');
  const spec = isRecord(sent['spec']) ? sent['spec'] : {};
  const replicas = spec['replicas'] ?? 0;
  if (!Number.isInteger(replicas)) {
    throw badRequest(
      `Scale in version "v1" cannot be handled as a Scale: json: cannot unmarshal ${typeof replicas} into Go struct field ScaleSpec.spec.replicas of type int32`,
    );
  }
  if ((replicas as number) < 0) {
    const detail = custom ? 'should be a non-negative integer' : 'must be greater than or equal to 0';
    throw invalid('autoscaling', 'Scale', name, [{ field: 'spec.replicas', type: 'Invalid', value: replicas, detail }]);
  }
  return replicas as number;
}

function scaleOf(context: RequestContext, object: KubeObject, paths: ScalePaths): unknown {
  const shown = encode(context, object);
  const replicas = getAt(shown, paths.specReplicas);
  if (replicas === undefined && context.resource.custom) {
    throw internalError(`the spec replicas field ${JSON.stringify(paths.specReplicas)} does not exist`);
  }
  const { name, namespace, uid, resourceVersion, creationTimestamp } = shown.metadata;
  const selector = selectorText(paths.selector === undefined ? undefined : getAt(shown, paths.selector));
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), uid, resourceVersion, creationTimestamp },
    spec: { replicas: replicas ?? 0 },
    status: {
      replicas: getAt(shown, paths.statusReplicas) ?? 0,
      ...(selector === undefined ? {} : { selector }),
    },
  };
}

function selectorText(selector: unknown): string | undefined {
  if (selector === undefined || typeof selector === 'string') return selector;
  try {
    return compileLabelSelector(selector as LabelSelector).toString();
  } catch (error) {
    if (error instanceof SelectorError) return undefined;
    throw error;
  }
}

function getAt(object: unknown, path: string): unknown {
  let at = object;
  for (const key of path.split('.').slice(1)) at = isRecord(at) ? at[key] : undefined;
  return at;
}

function setAt(object: KubeObject, path: string, value: unknown): void {
  const keys = path.split('.').slice(1);
  let at = object as unknown as Record<string, unknown>;
  for (const key of keys.slice(0, -1)) {
    if (!isRecord(at[key])) at[key] = {};
    at = at[key] as Record<string, unknown>;
  }
  at[keys.at(-1)!] = value;
}
