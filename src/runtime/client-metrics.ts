// SPDX-License-Identifier: Apache-2.0
// The metrics of API server clients, named as client-go names them.
import type { RequestReport } from '../kube/client.ts';
import { counter, histogram, type MetricDeclaration, type Metrics } from './metrics.ts';

const requestDuration = histogram({
  name: 'client_go_request_duration_seconds',
  help: 'How long an API server took to answer.',
  labels: ['verb', 'group', 'version', 'kind', 'subresource'],
});
const requestTotal = counter({
  name: 'client_go_request_total',
  help: 'Requests to API servers by method and the code of the answer.',
  labels: ['code', 'method'],
});

/**
 * Every metric of a client, for the reference, which finds it by loading the file.
 * @public
 */
export const clientMetrics: readonly MetricDeclaration[] = [requestDuration, requestTotal];

/** What a `KubeClient` calls after each request. */
export function requestObserver(metrics: Metrics): (report: RequestReport) => void {
  const durations = metrics.histogram(requestDuration);
  const totals = metrics.counter(requestTotal);
  /** By method, then by code. */
  const answers = new Map<string, Map<string, Readonly<Record<'code' | 'method', string>>>>();
  const answerOf = (method: string, code: string): Readonly<Record<'code' | 'method', string>> => {
    let byCode = answers.get(method);
    if (!byCode) answers.set(method, (byCode = new Map()));
    let labels = byCode.get(code);
    if (!labels) byCode.set(code, (labels = Object.freeze({ code, method })));
    return labels;
  };
  /** There are few verbs and kinds: the same labels each time. */
  const known = new Map<string, Readonly<Record<(typeof requestDuration.labels)[number], string>>>();
  return ({ verb, group, version, kind, subresource, code, method, durationMs }) => {
    totals.inc(answerOf(method, code));
    // A watch lasts as long as it lasts: its duration says nothing about the server.
    if (verb === 'watch') return;
    const key = `${verb} ${group} ${version} ${kind} ${subresource}`;
    let labels = known.get(key);
    if (!labels) {
      labels = Object.freeze({ verb, group, version, kind, subresource });
      known.set(key, labels);
    }
    durations.observe(labels, durationMs / 1000);
  };
}
