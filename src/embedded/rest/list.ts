// SPDX-License-Identifier: Apache-2.0
// Lists: by namespace, labels and fields, in pages, of one moment.
import type { KubeObject } from '../../kube/object.ts';
import { apiVersionOf } from '../../kube/object.ts';
import type { Resource } from '../resource.ts';
import { badRequest, expired, tooLargeResourceVersion } from '../status.ts';
import type { FieldIndexer } from '../store.ts';
import { encode, type RequestContext, storageNamespace } from './context.ts';
import { type ListOptions, parseListOptions } from './options.ts';
import { presentationOf } from './present.ts';
import type { ApiResponse } from './request.ts';
import { continueExpired, decodeContinue, encodeContinue } from './snapshots.ts';

/** Whether an object is in the selection of a list or watch; undefined when all are. */
export type Selection = ((object: KubeObject) => boolean) | undefined;

/** The selection of a request. Throws on fields this kind cannot be selected by. */
export function selectionOf(context: RequestContext, options: ListOptions): Selection {
  const getters = new Map<string, FieldIndexer>();
  for (const { field } of options.fields?.requirements ?? []) getters.set(field, getter(context.resource, field));
  const byName = context.info.name;
  const { labels, fields } = options;
  const checksLabels = labels.requirements.length > 0;
  const checksFields = fields !== undefined && fields.requirements.length > 0;
  if (!checksLabels && !checksFields && byName === '') return undefined;
  return (object) =>
    (byName === '' || object.metadata.name === byName) &&
    (!checksLabels || labels.matches(object.metadata.labels)) &&
    (!checksFields || fields.matches((path) => getters.get(path)!(object)));
}

function getter(resource: Resource, field: string): FieldIndexer {
  if (field === 'metadata.name') return (object) => object.metadata.name ?? '';
  if (field === 'metadata.namespace' && resource.namespaced) return (object) => object.metadata.namespace ?? '';
  const known = resource.fields[field];
  if (!known) {
    const own = resource.custom || Object.keys(resource.fields).length > 0;
    throw badRequest(
      own
        ? `field label not supported: ${field}`
        : `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
    );
  }
  return known;
}

/** The objects a list starts from: by index where a field selector names an indexed field, all of them otherwise. */
function candidates(context: RequestContext, options: ListOptions): readonly KubeObject[] {
  const namespace = storageNamespace(context);
  const within = context.resource.namespaced && namespace === '' ? undefined : namespace;
  for (const { field, operator, value } of options.fields?.requirements ?? []) {
    if (operator !== '=') continue;
    if (field === 'metadata.name' && within !== undefined) {
      const object = context.collection.get(within, value);
      return object ? [object] : [];
    }
    const indexed = context.collection.listByIndex(field, value);
    if (!indexed) continue;
    return within === undefined
      ? indexed.items
      : indexed.items.filter((object) => (object.metadata.namespace ?? '') === within);
  }
  return context.collection.list(within).items;
}

/** The selected objects as they are now, in key order, in storage form. */
export function selectNow(context: RequestContext, options: ListOptions): readonly KubeObject[] {
  const selection = selectionOf(context, options);
  const all = candidates(context, options);
  return selection ? all.filter(selection) : all;
}

export function handleList(context: RequestContext): ApiResponse {
  const options = parseListOptions(context.request.query, false);
  const current = context.store.revision;
  const asked = options.resourceVersion;
  if (asked !== undefined && asked > current) throw tooLargeResourceVersion(asked, current);
  if (options.continue !== '') return continueList(context, options);
  if (options.resourceVersionMatch === 'Exact' && asked !== current) return exactList(context, options, asked!);
  return page(context, options, selectNow(context, options), current, 0);
}

/** What a past version selected, as far back as the history goes. */
function selectAt(context: RequestContext, options: ListOptions, revision: number): readonly KubeObject[] | undefined {
  const all = context.collection.listAt(revision);
  if (!all) return undefined;
  const namespace = storageNamespace(context);
  const selection = selectionOf(context, options);
  return all.filter(
    (object) => (namespace === '' || object.metadata.namespace === namespace) && (!selection || selection(object)),
  );
}

/** The past is kept only where a list in pages needs it; other exact versions are answered as after a compaction. */
function exactList(context: RequestContext, options: ListOptions, revision: number): ApiResponse {
  const items = context.snapshots.find(scopeOf(context), revision) ?? selectAt(context, options, revision);
  if (!items) throw expired(`The resourceVersion for the provided list is too old.`);
  return page(context, options, items, revision, 0);
}

function continueList(context: RequestContext, options: ListOptions): ApiResponse {
  const token = decodeContinue(options.continue);
  if (options.resourceVersion !== undefined && options.resourceVersion !== 0) {
    throw badRequest('specifying resource version is not allowed when using continue');
  }
  const now = token.revision === -1;
  const items = now ? selectNow(context, options) : context.snapshots.find(scopeOf(context), token.revision);
  if (!items) throw continueExpired(token);
  let start = 0;
  let end = items.length;
  while (start < end) {
    const middle = (start + end) >> 1;
    if (orderKey(items[middle]!) <= token.after) start = middle + 1;
    else end = middle;
  }
  return page(context, options, items, now ? context.store.revision : token.revision, start);
}

function page(
  context: RequestContext,
  options: ListOptions,
  items: readonly KubeObject[],
  revision: number,
  start: number,
): ApiResponse {
  const end = options.limit > 0 ? Math.min(items.length, start + options.limit) : items.length;
  const whole = start === 0 && end === items.length;
  const shown = whole ? items : items.slice(start, end);
  const metadata: Record<string, unknown> = { resourceVersion: String(revision) };
  if (end < items.length) {
    context.snapshots.keep(scopeOf(context), revision, items);
    metadata['continue'] = encodeContinue({ revision, after: orderKey(items[end - 1]!) });
    // The API server cannot count what a selector leaves, so it does not say.
    const selecting = options.labels.requirements.length > 0 || (options.fields?.requirements.length ?? 0) > 0;
    if (!selecting) metadata['remainingItemCount'] = items.length - end;
  }
  return {
    status: 200,
    body: {
      kind: context.resource.listKind,
      apiVersion: apiVersionOf({ group: context.resource.group, version: context.version.name }),
      metadata,
      // Frozen here: going through a long list to find every object frozen already would take longer than making it.
      items: Object.freeze(itemsOf(context, shown)),
    },
  };
}

/** On the wire, items of a built-in list do not repeat its kind; in process they are the stored objects themselves. */
function itemsOf(context: RequestContext, objects: readonly KubeObject[]): readonly KubeObject[] {
  if (context.version.encode) return objects.map((object) => encode(context, object));
  if (context.resource.custom || !context.request.onWire || presentationOf(context)) return objects;
  return objects.map(({ kind: _kind, apiVersion: _apiVersion, ...rest }) => rest as KubeObject);
}

function scopeOf(context: RequestContext): string {
  const { labelSelector = '', fieldSelector = '' } = context.request.query as Record<string, string | undefined>;
  return JSON.stringify([context.resource.id, context.info.namespace, labelSelector, fieldSelector]);
}

function orderKey(object: KubeObject): string {
  return `${object.metadata.namespace ?? ''}/${object.metadata.name ?? ''}`;
}
