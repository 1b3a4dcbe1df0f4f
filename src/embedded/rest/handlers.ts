// SPDX-License-Identifier: Apache-2.0
// The verbs on objects: get, create, update, patch.
import { deepClone } from '../../base/freeze.ts';
import { applyJsonPatch } from '../../kube/json-patch.ts';
import { applyMergePatch } from '../../kube/merge-patch.ts';
import type { KubeObject } from '../../kube/object.ts';
import { onCopy, PatchError } from '../../kube/patch-error.ts';
import { patchSchemaFor } from '../../kube/patch-schemas.ts';
import { goValue } from '../../kube/schema/go-format.ts';
import { applyStrategicMergePatch } from '../../kube/strategic-merge-patch.ts';
import { badRequest, invalid, patchRejected, StatusError, unsupportedMediaType } from '../status.ts';
import { handleApply } from './apply.ts';
import { encode, type RequestContext, sharesParts } from './context.ts';
import { isRecord, jsonType } from './metadata.ts';
import { parseWriteOptions, versionProblem, type WriteOptions } from './options.ts';
import type { ApiResponse } from './request.ts';
import { createObject, decodeBody, findObject, requireObject, updateObject } from './write.ts';

export function handleGet(context: RequestContext): ApiResponse {
  const asked = context.request.query['resourceVersion'];
  const problem = asked === undefined || asked === '' ? undefined : versionProblem(asked);
  if (problem !== undefined)
    throw new StatusError(500, undefined, `resourceVersion: Invalid value: ${JSON.stringify(asked)}: ${problem}`);
  return { status: 200, body: encode(context, requireObject(context)) };
}

export function handleCreate(context: RequestContext): ApiResponse {
  const options = parseWriteOptions(context.request.query, 'CreateOptions');
  const object = decodeBody(context, context.request.body, context.request.ownsBody, options);
  return { status: 201, body: encode(context, createObject(context, object, options)) };
}

export function handleUpdate(context: RequestContext): ApiResponse {
  const options = parseWriteOptions(context.request.query, 'UpdateOptions');
  const object = decodeBody(context, context.request.body, context.request.ownsBody, options);
  checkName(context, object);
  const main = context.info.subresource === '';
  if (main && context.resource.createOnUpdate && !findObject(context)) {
    object.metadata.name ??= context.info.name;
    delete object.metadata.resourceVersion;
    return { status: 201, body: encode(context, createObject(context, object, options)) };
  }
  return { status: 200, body: encode(context, updateObject(context, requireObject(context), object, options)) };
}

/** The object of an update must be the one of its path. */
function checkName({ info }: RequestContext, { metadata }: KubeObject): void {
  if (metadata.name === undefined || metadata.name === '') {
    throw badRequest(`the name of the object (${info.name} based on URL) was undeterminable: name must be provided`);
  }
  if (metadata.name !== info.name) {
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${info.name})`);
  }
}

export function handlePatch(context: RequestContext): ApiResponse {
  const options = parseWriteOptions(context.request.query, 'PatchOptions');
  const type = (context.request.contentType ?? '').split(';')[0]!.trim();
  if (type === 'application/apply-patch+yaml') return handleApply(context, options);
  if (options.force) {
    throw invalid('meta.k8s.io', 'PatchOptions', '', [
      { field: 'force', type: 'Forbidden', detail: 'may not be specified for non-apply patch' },
    ]);
  }
  const old = requireObject(context);
  const current = encode(context, old);
  const patched = applyPatch(context, type, current);
  const object = decodePatched(context, patched, options);
  // Schemas of definitions are read further in.
  const updated = readingPatched(context, () => updateObject(context, old, object, options));
  return { status: 200, body: encode(context, updated) };
}

/** A patched object is decoded as if the client had sent all of it. It is ours, but for the frozen parts it shares with what is stored. */
export function decodePatched(context: RequestContext, patched: unknown, options: WriteOptions): KubeObject {
  return readingPatched(context, () => decodeBody(context, patched, true, options));
}

/** A patch that makes an object which cannot be read is not a bad request but an invalid patch. */
function readingPatched<T>(context: RequestContext, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const misfit =
      error instanceof StatusError &&
      error.status.code === 400 &&
      / in version ".*?" cannot be handled as a \w+: (.*)$/s.exec(error.message);
    throw misfit && isRecord(context.request.body)
      ? invalid('', '', '', [
          { field: 'patch', type: 'Invalid', value: goValue(context.request.body), detail: misfit[1]! },
        ])
      : error;
  }
}

/** The object after a patch. Bodies that are no patch of the type they claim are refused. */
export function applyPatch(context: RequestContext, type: string, current: unknown): unknown {
  if (context.request.bodyProblem !== undefined) {
    throw badRequest(`error decoding patch: ${context.request.bodyProblem}`);
  }
  const { body: patch, ownsBody } = context.request;
  try {
    switch (type) {
      case 'application/json-patch+json':
        return applyJsonPatch(current, requireOperations(ownsBody ? patch : deepClone(patch)));
      case 'application/merge-patch+json':
        return applyMergePatch(patchable(context, current), requireRecord(patch));
      case 'application/strategic-merge-patch+json': {
        const { group, kind, custom } = context.resource;
        const schema = custom ? undefined : patchSchemaFor(group, context.version.name, kind);
        if (!schema) throw unsupportedMediaType(noStrategicPatch);
        return applyStrategicMergePatch(patchable(context, current), requireRecord(patch), schema);
      }
      default:
        throw unsupportedMediaType();
    }
  } catch (error) {
    throw error instanceof PatchError ? refusalOf(error, type) : error;
  }
}

/** What a patch may share parts of: the stored object itself, unless its kind will change what comes out. */
function patchable(context: RequestContext, current: unknown): unknown {
  return sharesParts(context) ? current : onCopy(current, (copy) => copy);
}

const noStrategicPatch =
  'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml';

function refusalOf(error: PatchError, type: string): StatusError {
  switch (error.status) {
    case 413:
      return new StatusError(413, 'RequestEntityTooLarge', `Request entity too large: ${error.message}`);
    case 415:
      return unsupportedMediaType(error.message);
    case 422:
      return type === 'application/json-patch+json' ? patchRejected() : patchInvalid(error.message);
    case 500:
      return new StatusError(500, undefined, error.message);
    case 400:
      return badRequest(error.message);
  }
}

function patchInvalid(message: string): StatusError {
  return invalid('', '', '', [{ field: 'patch', type: 'Invalid', detail: message }]);
}

function requireOperations(patch: unknown): unknown[] {
  if (Array.isArray(patch)) {
    for (const operation of patch.filter(isRecord)) {
      for (const field of ['op', 'path', 'from']) {
        const value = operation[field];
        if (value === undefined || value === null || typeof value === 'string') continue;
        throw badRequest(
          `error decoding patch: json: cannot unmarshal ${jsonType(value)} into Go struct field jsonPatchOp.${field} of type string`,
        );
      }
    }
    return patch;
  }
  throw badRequest('error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp');
}

function requireRecord(patch: unknown): Record<string, unknown> {
  if (isRecord(patch)) return patch;
  const type = jsonType(patch);
  throw badRequest(
    `error decoding patch: json: cannot unmarshal ${type} into Go value of type map[string]interface {}`,
  );
}
