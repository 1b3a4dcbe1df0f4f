// SPDX-License-Identifier: Apache-2.0
// Eviction: a delete that asks the disruption budgets first.
import { deepClone } from '../../base/freeze.ts';
import type { Pod, PodCondition, PodDisruptionBudget } from '../../kube/kinds.ts';
import { compileLabelSelector } from '../../kube/labels.ts';
import { formatTime } from '../../kube/time.ts';
import { badRequest, forbidden, StatusError, tooManyRequests } from '../status.ts';
import type { RequestContext } from './context.ts';
import { checkPreconditions, deleteObject } from './delete.ts';
import { isRecord } from './metadata.ts';
import { parseDeleteOptions, parseWriteOptions } from './options.ts';
import type { ApiResponse } from './request.ts';
import { success } from './status-success.ts';
import { requireObject } from './write.ts';

const budgets = 'poddisruptionbudgets.policy';
/** Evictions whose pods have not gone yet; more than this means the budget's controller is not keeping up. */
const mostUnconfirmed = 2000;

export function handleEviction(context: RequestContext): ApiResponse {
  const { body, query } = context.request;
  if (!isRecord(body)) throw badRequest('the object provided is unrecognized (must be of type Eviction)');
  const metadata = isRecord(body['metadata']) ? body['metadata'] : {};
  const { name } = context.info;
  if (metadata['name'] !== undefined && metadata['name'] !== '' && metadata['name'] !== name) {
    throw badRequest('name in URL does not match name in Eviction object');
  }
  const write = parseWriteOptions(query, 'CreateOptions');
  const given = isRecord(body['deleteOptions']) ? body['deleteOptions'] : {};
  const options = parseDeleteOptions({ ...given, kind: 'DeleteOptions' }, {});
  const dryRun = write.dryRun || options.dryRun;
  const pod = requireObject(context) as Pod;
  if (!ignoresBudgets(pod)) askBudgets(context, pod, dryRun);
  checkPreconditions(context, pod, options);
  // The mark changes what a precondition was about.
  const going = dryRun ? pod : marked(context, pod);
  deleteObject(context, going, { ...options, preconditions: {}, dryRun });
  return { status: 201, body: success };
}

/** Whoever watches the pod sees why it goes. */
function marked(context: RequestContext, old: Pod): Pod {
  const condition: PodCondition = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
    lastTransitionTime: formatTime(context.clock.now()),
  };
  const others = old.status?.conditions?.filter(({ type }) => type !== condition.type) ?? [];
  const pod: Pod = {
    ...old,
    metadata: { ...old.metadata },
    status: { ...old.status, conditions: [...others, condition] },
  };
  return context.store.collection('pods').replace(pod.metadata.namespace!, pod.metadata.name!, pod) as Pod;
}

/** Pods that do not serve anybody: their end disrupts nothing. */
function ignoresBudgets(pod: Pod): boolean {
  const phase = pod.status?.phase;
  return (
    phase === 'Succeeded' || phase === 'Failed' || phase === 'Pending' || pod.metadata.deletionTimestamp !== undefined
  );
}

function askBudgets(context: RequestContext, pod: Pod, dryRun: boolean): void {
  const namespace = pod.metadata.namespace!;
  const collection = context.store.collection(budgets);
  const matching = (collection.list(namespace).items as readonly PodDisruptionBudget[]).filter((budget) =>
    compileLabelSelector(budget.spec?.selector).matches(pod.metadata.labels),
  );
  if (matching.length > 1) {
    throw new StatusError(
      500,
      undefined,
      'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
    );
  }
  const budget = matching[0];
  if (!budget || passesUnhealthy(pod, budget)) return;
  const name = budget.metadata.name!;
  const status = budget.status;
  const allowed = status?.disruptionsAllowed ?? 0;
  if ((status?.observedGeneration ?? 0) < (budget.metadata.generation ?? 0)) {
    throw tooManyRequests(cannotEvict, 10, [
      { reason: 'DisruptionBudget', message: `The disruption budget ${name} is still being processed by the server.` },
    ]);
  }
  if (allowed < 0) throw forbidden(budgetName, name, 'pdb disruptions allowed is negative');
  if (Object.keys(status?.disruptedPods ?? {}).length > mostUnconfirmed) {
    throw forbidden(budgetName, name, 'DisruptedPods map too big - too many evictions not confirmed by PDB controller');
  }
  if (allowed === 0) {
    throw tooManyRequests(cannotEvict, 0, [{ reason: 'DisruptionBudget', message: needsHealthy(budget) }]);
  }
  if (!dryRun) countEviction(context, budget, pod);
}

const cannotEvict = "Cannot evict pod as it would violate the pod's disruption budget.";
const budgetName = { group: 'policy', plural: 'poddisruptionbudgets' };

function needsHealthy(budget: PodDisruptionBudget): string {
  const { desiredHealthy = 0, currentHealthy = 0, conditions = [] } = budget.status ?? {};
  const failed = conditions.find((condition) => condition.reason === 'SyncFailed' && condition.status === 'False');
  if (failed) {
    return `The disruption budget ${budget.metadata.name} does not allow evicting pods currently because it failed sync: ${failed.message}`;
  }
  return `The disruption budget ${budget.metadata.name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
}

/** A pod that is not ready anyway may go without being counted, by the budget's own policy. */
function passesUnhealthy(pod: Pod, budget: PodDisruptionBudget): boolean {
  const ready = pod.status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True');
  if (ready) return false;
  if (budget.spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true;
  const { currentHealthy = 0, desiredHealthy = 0 } = budget.status ?? {};
  return currentHealthy >= desiredHealthy && desiredHealthy > 0;
}

function countEviction(context: RequestContext, old: PodDisruptionBudget, pod: Pod): void {
  const budget = deepClone(old);
  // It allows one: it has a status.
  const status = budget.status!;
  status.disruptionsAllowed = (status.disruptionsAllowed ?? 0) - 1;
  status.disruptedPods = { ...status.disruptedPods, [pod.metadata.name!]: formatTime(context.clock.now()) };
  for (const condition of status.conditions ?? []) {
    if (condition.type !== 'DisruptionAllowed' || status.disruptionsAllowed > 0) continue;
    if (condition.status !== 'False') condition.lastTransitionTime = formatTime(context.clock.now());
    condition.status = 'False';
    condition.reason = 'InsufficientPods';
  }
  context.store.collection(budgets).replace(budget.metadata.namespace!, budget.metadata.name!, budget);
}
