// SPDX-License-Identifier: Apache-2.0
// `pods/log`: the API server's checks, then the kubelet's, then the log of whoever really runs the container.
import type { Pod } from '../../kube/kinds.ts';
import type { RequestContext } from '../rest/context.ts';
import type { ApiResponse } from '../rest/request.ts';
import { requireObject } from '../rest/write.ts';
import { badRequest, StatusError } from '../status.ts';
import { followLog, readLog } from './follow.ts';
import type { LogSource } from './log-buffer.ts';
import { parseLogOptions } from './log-options.ts';

/** The log behind a container; undefined: nothing runs there that could write one. */
export type LogSources = (pod: Pod, container: string) => LogSource | undefined;

/** Answers with the log, and with `follow` over HTTP with what is written from then on. */
export function handleLog(context: RequestContext): ApiResponse {
  const { request, info } = context;
  const options = parseLogOptions(request.query, info.name, context.clock.now());
  const pod = requireObject(context) as Pod;
  const container = containerOf(pod, request.query['container']);
  if (!pod.spec.nodeName) return { status: 204, text: '' };
  const problem = containerProblem(pod, container, options.previous);
  if (problem !== undefined) throw badRequest(problem);
  const source = context.logs?.(pod, container);
  if (!source) throw withoutLog(pod, container);
  const headers = { 'content-type': 'text/plain' };
  // In process a request has one answer: what is there now.
  if (!options.follow || !request.onWire) return { status: 200, text: readLog(source, options), headers };
  return { status: 200, follow: followLog(source, options), headers };
}

/** The container that is meant. Throws in the API server's words when there is none, or more than one. */
function containerOf(pod: Pod, asked: string | undefined): string {
  const { containers, initContainers = [], ephemeralContainers = [] } = pod.spec;
  const names = [...initContainers, ...containers, ...ephemeralContainers].map(({ name }) => name);
  if (asked) {
    if (names.includes(asked)) return asked;
    throw badRequest(`container ${asked} is not valid for pod ${pod.metadata.name}`);
  }
  const [only, other] = containers;
  if (only && !other) return only.name;
  throw badRequest(
    `a container name must be specified for pod ${pod.metadata.name}, choose one of: [${names.join(' ')}]`,
  );
}

/** Why the kubelet would not read a log; undefined: it would. */
function containerProblem(pod: Pod, container: string, previous: boolean): string | undefined {
  const { containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] } = pod.status ?? {};
  const status = [...containerStatuses, ...initContainerStatuses, ...ephemeralContainerStatuses].find(
    ({ name }) => name === container,
  );
  const where = `container "${container}" in pod "${pod.metadata.name}"`;
  if (!status) return `${where} is not available`;
  const { state = {}, lastState = {} } = status;
  if (previous) return lastState.terminated?.containerID ? undefined : `previous terminated ${where} not found`;
  if (state.running || state.terminated) return undefined;
  return state.waiting
    ? `${where} is waiting to start: ${state.waiting.reason}`
    : `${where} is waiting to start - no logs yet`;
}

/** Made-up lines would be taken for the container's own: better to say what is the case. */
function withoutLog(pod: Pod, container: string): StatusError {
  const message = `container "${container}" in pod "${pod.metadata.name}" has no log: the embedded cluster only pretends to run it`;
  return new StatusError(501, 'NotImplemented', message);
}
