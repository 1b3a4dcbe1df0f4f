// SPDX-License-Identifier: Apache-2.0
// Deletes: at once, with grace, or by marking the object until its finalizers are gone.
import { deepClone } from '../../base/freeze.ts';
import type { KubeObject, Status } from '../../kube/object.ts';
import { formatTime } from '../../kube/time.ts';
import { conflict } from '../status.ts';
import { encode, type RequestContext } from './context.ts';
import { selectNow } from './list.ts';
import { type DeleteOptions, parseDeleteOptions, parseListOptions } from './options.ts';
import type { ApiResponse } from './request.ts';
import { commitUpdate, requireObject } from './write.ts';

export const orphanFinalizer = 'orphan';
export const foregroundFinalizer = 'foregroundDeletion';

export function handleDelete(context: RequestContext): ApiResponse {
  const options = parseDeleteOptions(context.request.body, context.request.query);
  const { object, removed } = deleteObject(context, requireObject(context), options);
  if (removed && !context.resource.returnsDeleted) return { status: 200, body: successOf(context, object) };
  const accepted = !removed && options.orphanDependents === false;
  return { status: accepted ? 202 : 200, body: encode(context, object) };
}

export function handleDeleteCollection(context: RequestContext): ApiResponse {
  const selection = parseListOptions(context.request.query, false);
  const options = parseDeleteOptions(context.request.body, context.request.query);
  const items = selectNow(context, selection).map((object) =>
    encode(context, deleteObject(context, object, options).object),
  );
  return {
    status: 200,
    body: {
      kind: context.resource.listKind,
      apiVersion: items[0]?.apiVersion ?? context.version.name,
      metadata: { resourceVersion: String(context.store.revision) },
      items,
    },
  };
}

/** Deletes one object as far as its grace and finalizers allow; says what it is then and whether it is gone. */
export function deleteObject(
  context: RequestContext,
  old: KubeObject,
  options: DeleteOptions,
): { object: KubeObject; removed: boolean } {
  const { strategy } = context.resource;
  checkPreconditions(context, old, options);
  strategy.refuseDelete?.(old);
  const finalizers = finalizersFor(context, old, options);
  const grace = strategy.gracePeriod?.(old, options.gracePeriodSeconds);
  const waits = (grace ?? 0) > 0 || finalizers.length > 0 || strategy.heldBack?.(old) === true;
  if (waits) return { object: markDeleted(context, old, finalizers, grace, options.dryRun), removed: false };
  const final = grace === undefined ? old : withoutGrace(context, old);
  if (options.dryRun) return { object: final, removed: true };
  const { collection } = context;
  const [namespace, name] = [old.metadata.namespace ?? '', old.metadata.name!];
  // An object that might have waited is marked first: watchers see it end before it is gone.
  if (final !== old) collection.replace(namespace, name, final);
  return { object: collection.remove(namespace, name), removed: true };
}

/** Marks an object that cannot go yet, or brings its end nearer. A second delete that changes nothing writes nothing. */
function markDeleted(
  context: RequestContext,
  old: KubeObject,
  finalizers: string[],
  grace: number | undefined,
  dryRun: boolean,
): KubeObject {
  const { resource } = context;
  const marked = old.metadata.deletionTimestamp !== undefined;
  const oldGrace = old.metadata.deletionGracePeriodSeconds;
  const shortens = marked && grace !== undefined && oldGrace !== undefined && grace < oldGrace;
  const sameFinalizers = finalizers.join() === (old.metadata.finalizers ?? []).join();
  if (marked && !shortens && sameFinalizers) return old;
  const { onDeleting } = resource.strategy;
  const object = onDeleting ? deepClone(old) : { ...old, metadata: { ...old.metadata } };
  const { metadata } = object;
  if (!marked || shortens) {
    const seconds = grace ?? 0;
    metadata.deletionTimestamp = formatTime(context.clock.now() + seconds * 1000);
    metadata.deletionGracePeriodSeconds = seconds;
    if (resource.generation) metadata.generation = (old.metadata.generation ?? 0) + 1;
    onDeleting?.(object);
  }
  if (finalizers.length > 0) metadata.finalizers = finalizers;
  else delete metadata.finalizers;
  return dryRun ? object : commitUpdate(context, object);
}

/** The last state of an object that could have waited but need not. */
function withoutGrace(context: RequestContext, old: KubeObject): KubeObject {
  const metadata = {
    ...old.metadata,
    ...(context.resource.generation && old.metadata.deletionTimestamp === undefined
      ? { generation: (old.metadata.generation ?? 0) + 1 }
      : {}),
    deletionTimestamp: formatTime(context.clock.now()),
    deletionGracePeriodSeconds: 0,
  };
  return { ...old, metadata };
}

/** Whether the object is the one that is meant. */
export function checkPreconditions(context: RequestContext, old: KubeObject, options: DeleteOptions): void {
  const { uid, resourceVersion } = options.preconditions;
  const named = { group: context.resource.group, plural: context.resource.kind };
  const name = old.metadata.name!;
  if (uid !== undefined && uid !== null && uid !== old.metadata.uid) {
    throw conflict(
      named,
      name,
      `the UID in the precondition (${uid}) does not match the UID in record (${old.metadata.uid}). The object might have been deleted and then recreated`,
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== null && resourceVersion !== old.metadata.resourceVersion) {
    throw conflict(
      named,
      name,
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${old.metadata.resourceVersion}). The object might have been modified`,
    );
  }
}

const jobsOrphan =
  'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning';

/** The finalizers that make the garbage collector act as the options ask. */
function finalizersFor(context: RequestContext, old: KubeObject, options: DeleteOptions): string[] {
  const current = old.metadata.finalizers ?? [];
  const policy =
    options.propagationPolicy ??
    (options.orphanDependents === undefined ? undefined : options.orphanDependents ? 'Orphan' : 'Background');
  if (policy === undefined) {
    // No word from the client: what an earlier delete chose stays.
    const chosen = current.includes(orphanFinalizer) || current.includes(foregroundFinalizer);
    const orphans = context.resource.strategy.orphansByDefault === true && !chosen;
    if (orphans && context.resource.kind === 'Job') context.warnings.push(jobsOrphan);
    return orphans ? [...current, orphanFinalizer] : [...current];
  }
  const others = current.filter((finalizer) => finalizer !== orphanFinalizer && finalizer !== foregroundFinalizer);
  if (policy === 'Orphan') return [...others, orphanFinalizer];
  return policy === 'Foreground' ? [...others, foregroundFinalizer] : others;
}

function successOf(context: RequestContext, object: KubeObject): Status {
  const { group, plural } = context.resource;
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: {
      name: object.metadata.name!,
      ...(group === '' ? {} : { group }),
      kind: plural,
      uid: object.metadata.uid!,
    },
  };
}
