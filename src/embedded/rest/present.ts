// SPDX-License-Identifier: Apache-2.0
// The forms an answer may take besides the object itself: Tables for kubectl, bare metadata for those who need no more.
import type { KubeObject, WatchEventType } from '../../kube/object.ts';
import { badRequest, notAcceptable, notRepresentable } from '../status.ts';
import type { RequestContext } from './context.ts';
import type { ApiResponse } from './request.ts';

/** One alternative form, as asked for by an Accept header. */
export interface Presentation {
  readonly form: string;
  /** The form depends on more than the object (ages), so lines of it are not shared. */
  readonly perWatch: boolean;
  object(object: KubeObject): unknown;
  list(list: KubeObject & { readonly items: readonly KubeObject[] }): unknown;
  watched(object: KubeObject, type: WatchEventType): unknown;
}

const accepted = ['application/json', 'application/yaml'];

const readableMedia = ['application/json', 'application/*', '*/*', 'application/yaml'];

/** Whether an Accept header leaves us a way to answer. */
export function isAcceptable(header: string | undefined): boolean {
  if (header === undefined || header === '') return true;
  return header.split(',').some((alternative) => readableMedia.includes(alternative.split(';')[0]!.trim()));
}

/** The form a request asks for; undefined: the object as it is. Throws when it accepts nothing we can make. */
export function presentationOf(context: RequestContext): Presentation | undefined {
  const header = context.request.accept;
  if (header === undefined || header === '' || header === 'application/json') return undefined;
  let known = false;
  for (const alternative of header.split(',')) {
    const [media = '', ...parameters] = alternative.split(';').map((part) => part.trim());
    if (!readableMedia.includes(media)) continue;
    known = true;
    const asked = Object.fromEntries(parameters.map((parameter) => parameter.split('=', 2) as [string, string]));
    if (asked['as'] === undefined) return undefined;
    if (asked['g'] !== 'meta.k8s.io' || (asked['v'] !== 'v1' && asked['v'] !== 'v1beta1')) continue;
    if (asked['as'] === 'Table') return tableOf(context);
    if (asked['as'] === 'PartialObjectMetadata' || asked['as'] === 'PartialObjectMetadataList') return partialMetadata;
  }
  throw known ? notAcceptable(accepted) : notRepresentable();
}

/** The answer in the form that was asked for; Statuses stay as they are. */
export function present(context: RequestContext, response: ApiResponse): ApiResponse {
  const presentation = presentationOf(context);
  const body = response.body as (KubeObject & { items?: readonly KubeObject[] }) | undefined;
  if (!presentation || !body || body.kind === 'Status') return response;
  if (body.items && body.kind === context.resource.listKind) {
    return { ...response, body: presentation.list({ ...body, items: body.items }) };
  }
  return body.kind === context.resource.kind ? { ...response, body: presentation.object(body) } : response;
}

const partialMetadata: Presentation = {
  form: 'metadata',
  perWatch: false,
  object: partial,
  list: (list) => ({
    kind: 'PartialObjectMetadataList',
    apiVersion: 'meta.k8s.io/v1',
    metadata: list.metadata,
    items: list.items.map(partial),
  }),
  watched: partial,
};

function partial(object: KubeObject): KubeObject {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata };
}

function tableOf(context: RequestContext): Presentation {
  const includes = context.request.query['includeObject'] ?? 'Metadata';
  if (!['None', 'Metadata', 'Object'].includes(includes)) {
    throw badRequest(`unrecognized includeObject value: ${JSON.stringify(includes)}`);
  }
  const columns = context.version.columns;
  const row = (object: KubeObject): unknown => ({
    cells: columns.map((column) => column.cell(object, context.clock.now()) ?? null),
    object: includes === 'None' ? null : includes === 'Object' ? object : partial(object),
  });
  const table = (metadata: object, rows: unknown[], withColumns = true): unknown => ({
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: withColumns
      ? columns.map(({ name, type, format = '', description, priority }) => ({
          name,
          type,
          format,
          description,
          priority,
        }))
      : null,
    rows,
  });
  // A watch sends the columns once.
  let first = true;
  const version = (object: KubeObject): object => ({ resourceVersion: object.metadata.resourceVersion });
  return {
    form: 'Table',
    perWatch: true,
    object: (object) => table(version(object), [row(object)]),
    list: (list) => table(list.metadata, list.items.map(row)),
    // A bookmark has no cells; its row carries the annotations that reflectors look for.
    watched: (object, type) => {
      const rows = [type === 'BOOKMARK' ? bookmarkRow(object, columns.length) : row(object)];
      const shown = table(version(object), rows, first);
      first = false;
      return shown;
    },
  };
}

function bookmarkRow(object: KubeObject, width: number): unknown {
  return { cells: Array.from({ length: width }, () => ''), object: partial(object) };
}
