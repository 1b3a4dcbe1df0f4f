// SPDX-License-Identifier: Apache-2.0
// The log of a process that does not exist: enough for `kubectl logs` to say something true.
import type { Pod } from '../../kube/kinds.ts';

/** What the container has logged, from its status alone; undefined while it has not started. */
export function podLog(pod: Pod, container: string): string | undefined {
  const status = [...(pod.status?.containerStatuses ?? []), ...(pod.status?.initContainerStatuses ?? [])].find(
    (candidate) => candidate.name === container,
  );
  const started = status?.state?.running?.startedAt ?? status?.state?.terminated?.startedAt;
  if (!started) return undefined;
  const lines = [`${started} container ${container} of pod ${pod.metadata.namespace}/${pod.metadata.name} started`];
  const { terminated } = status?.state ?? {};
  if (terminated) lines.push(`${terminated.finishedAt} container ended with exit code ${terminated.exitCode}`);
  else lines.push(`${started} nothing runs behind it: this cluster's nodes are simulated`);
  return `${lines.join('\n')}\n`;
}
