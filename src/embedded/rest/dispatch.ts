// SPDX-License-Identifier: Apache-2.0
// From a request for a resource to the handler of its verb.

import type { Resource, ServedVersion } from '../resource.ts';
import { methodNotAllowed, unknownResource } from '../status.ts';
import type { RequestContext } from './context.ts';
import { handleDelete, handleDeleteCollection } from './delete.ts';
import { handleCreate, handleGet, handlePatch, handleUpdate } from './handlers.ts';
import { handleList } from './list.ts';
import { present, presentationOf } from './present.ts';
import type { ApiResponse } from './request.ts';
import { handleScale } from './scale.ts';
import { handleBindingByName, specialSubresources } from './subresources.ts';
import { handleWatch } from './watch.ts';

type Handler = (context: RequestContext) => ApiResponse;

const onObjects: Readonly<Record<string, Handler>> = {
  get: handleGet,
  list: handleList,
  watch: handleWatch,
  create: handleCreate,
  update: handleUpdate,
  patch: handlePatch,
  delete: handleDelete,
  deletecollection: handleDeleteCollection,
};

/** Verbs that do not look at a body. */
const readers = new Set(['get', 'list', 'watch']);
/** Verbs on objects by their names. */
const onNamed: readonly string[] = ['get', 'update', 'patch', 'delete'];

/** Answers a request for a resource or subresource that is served. Throws StatusError to refuse. */
export function dispatch(context: RequestContext): ApiResponse {
  const handler = handlerFor(context);
  // Before anything else is looked at: an answer that cannot be given, then a question that cannot be read.
  presentationOf(context);
  const { bodyRefusal } = context.request;
  if (bodyRefusal !== undefined && !readers.has(context.info.verb)) throw bodyRefusal;
  const response = handler(context);
  return response.body === undefined ? response : present(context, response);
}

function handlerFor(context: RequestContext): Handler {
  const { info, resource, version } = context;
  const { subresource, verb } = info;
  if (subresource === '') return mainHandler(context);
  if (subresource === 'status') {
    if (!version.status) throw unknownResource();
    const handler = ['get', 'update', 'patch'].includes(verb) ? onObjects[verb] : undefined;
    if (!handler) throw methodNotAllowed();
    return handler;
  }
  if (subresource === 'scale' && version.scale) {
    const scale = version.scale;
    if (!['get', 'update', 'patch'].includes(verb)) throw methodNotAllowed();
    return () => handleScale(context, scale);
  }
  return specialHandler(resource, version, subresource, verb);
}

function mainHandler(context: RequestContext): Handler {
  const { info, resource } = context;
  if (info.name !== '' && !resource.verbs.some((verb) => onNamed.includes(verb))) throw unknownResource();
  const served = (resource.verbs as readonly string[]).includes(info.verb);
  const handler = onObjects[info.verb];
  if (!served || !handler) throw methodNotAllowed();
  if (resource.id === 'bindings') return handleBindingByName;
  const { bodyRefusal } = context.request;
  // Custom kinds look at the type of a patch before they ask what it is for.
  if (resource.custom && info.verb === 'patch' && bodyRefusal !== undefined) throw bodyRefusal;
  const onCollection = info.verb === 'create' || info.verb === 'list' || info.verb === 'deletecollection';
  if (info.verb !== 'watch' && onCollection !== (info.name === '')) throw methodNotAllowed();
  // Objects of a namespaced kind are created and reached in their namespace only.
  const reachesAll = info.verb === 'list' || info.verb === 'watch';
  if (resource.namespaced && info.namespace === '' && !reachesAll) throw methodNotAllowed();
  return handler;
}

function specialHandler(resource: Resource, _version: ServedVersion, subresource: string, verb: string): Handler {
  const served = resource.subresources.find((candidate) => candidate.name === subresource.split('/')[0]);
  if (!served) throw unknownResource();
  const handler = specialSubresources[`${resource.plural}/${served.name}`];
  if (!handler || !(served.verbs as readonly string[]).includes(verb)) throw methodNotAllowed();
  return handler;
}
