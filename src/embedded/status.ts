// SPDX-License-Identifier: Apache-2.0
// Refusals as the API server words them: each function gives the error whose Status a client gets back.
import { KarpenterError } from '../base/errors.ts';
import type { Status } from '../kube/object.ts';
import { type FieldError, fieldErrorBody, fieldErrorReason, formatFieldErrors } from '../kube/schema/field-error.ts';

type Details = NonNullable<Status['details']>;

/** A request that is answered with a Status instead of an object. */
export class StatusError extends KarpenterError {
  readonly status: Status;

  constructor(code: number, reason: string | undefined, message: string, details?: Details) {
    // A refusal is an answer: nobody looks at where it was made, and that is the dearest part of an error.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(`KRP_EMBEDDED_${code}`, message);
    Error.stackTraceLimit = stackTraceLimit;
    this.status = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      ...(reason === undefined ? {} : { reason }),
      ...(details === undefined ? {} : { details }),
      code,
    };
  }
}

/** How a resource is named in refusals: `deployments.apps`, or `pods` for the core group. */
export interface ResourceName {
  readonly group: string;
  readonly plural: string;
}

function qualified(resource: ResourceName): string {
  return resource.group === '' ? resource.plural : `${resource.plural}.${resource.group}`;
}

function detailsOf(resource: ResourceName, name: string): Details {
  return {
    ...(name === '' ? {} : { name }),
    ...(resource.group === '' ? {} : { group: resource.group }),
    kind: resource.plural,
  };
}

export function badRequest(message: string): StatusError {
  return new StatusError(400, 'BadRequest', message);
}

export function unauthorized(): StatusError {
  return new StatusError(401, 'Unauthorized', 'Unauthorized');
}

export function forbidden(resource: ResourceName, name: string, why: string, causes?: Details['causes']): StatusError {
  return new StatusError(403, 'Forbidden', `${qualified(resource)} "${name}" is forbidden: ${why}`, {
    ...detailsOf(resource, name),
    ...(causes ? { causes } : {}),
  });
}

export function notFound(resource: ResourceName, name: string): StatusError {
  return new StatusError(404, 'NotFound', `${qualified(resource)} "${name}" not found`, detailsOf(resource, name));
}

/** No such resource (as opposed to no such object). */
export function unknownResource(): StatusError {
  return new StatusError(404, 'NotFound', 'the server could not find the requested resource', {});
}

export function methodNotAllowed(): StatusError {
  return new StatusError(
    405,
    'MethodNotAllowed',
    'the server does not allow this method on the requested resource',
    {},
  );
}

export function notAcceptable(accepted: readonly string[]): StatusError {
  return new StatusError(
    406,
    'NotAcceptable',
    `only the following media types are accepted: ${accepted.join(', ')}`,
    {},
  );
}

/** No media type in common at all: refused before a handler is asked. */
export function notRepresentable(): StatusError {
  const available =
    'application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch';
  return new StatusError(406, 'NotAcceptable', `406: Not Acceptable\n\nAvailable representations: ${available}`, {});
}

export function alreadyExists(resource: ResourceName, name: string, beingDeleted = false): StatusError {
  const message = `${qualified(resource)} "${name}" already exists`;
  return new StatusError(
    409,
    'AlreadyExists',
    beingDeleted ? `object is being deleted: ${message}` : message,
    detailsOf(resource, name),
  );
}

export function conflict(resource: ResourceName, name: string, why: string): StatusError {
  return new StatusError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`,
    detailsOf(resource, name),
  );
}

/** The writer worked on an old version. */
export function modified(resource: ResourceName, name: string): StatusError {
  return conflict(
    resource,
    name,
    'the object has been modified; please apply your changes to the latest version and try again',
  );
}

export function expired(message: string): StatusError {
  return new StatusError(410, 'Expired', message);
}

export function tooLarge(limit: number): StatusError {
  return new StatusError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${limit}`);
}

export function unsupportedMediaType(message?: string): StatusError {
  return message === undefined
    ? new StatusError(415, 'UnsupportedMediaType', '415: Unsupported Media Type', {})
    : new StatusError(415, 'UnsupportedMediaType', message);
}

/** An object that breaks the rules of its kind; `kind` and `group` as in `NodePool.karpenter.sh`. */
export function invalid(group: string, kind: string, name: string, errors: readonly FieldError[]): StatusError {
  const qualifiedKind = group === '' ? kind : `${kind}.${group}`;
  return new StatusError(422, 'Invalid', `${qualifiedKind} "${name}" is invalid: ${formatFieldErrors(errors)}`, {
    ...(name === '' ? {} : { name }),
    ...(group === '' ? {} : { group }),
    ...(kind === '' ? {} : { kind }),
    causes: errors.map((error) => ({
      reason: fieldErrorReason(error.type),
      message: fieldErrorBody(error),
      field: error.field,
    })),
  });
}

/** A request whose query or body options break the rules: `ListOptions.meta.k8s.io`. */
export function invalidOptions(kind: string, errors: readonly FieldError[]): StatusError {
  return invalid('meta.k8s.io', kind, '', errors);
}

/** A patch that cannot be applied to what is stored; the API server does not say more. */
export function patchRejected(): StatusError {
  return new StatusError(422, 'Invalid', 'the server rejected our request due to an error in our request', {});
}

export function tooManyRequests(message: string, retryAfterSeconds: number, causes?: Details['causes']): StatusError {
  return new StatusError(429, 'TooManyRequests', message, {
    ...(causes ? { causes } : {}),
    ...(retryAfterSeconds > 0 ? { retryAfterSeconds } : {}),
  });
}

export function internalError(message: string): StatusError {
  return new StatusError(500, 'InternalError', `Internal error occurred: ${message}`, {
    causes: [{ message }],
  });
}

/** A list or watch asks for a future that has not come. */
export function tooLargeResourceVersion(asked: number, current: number): StatusError {
  return new StatusError(504, 'Timeout', `Timeout: Too large resource version: ${asked}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  });
}
