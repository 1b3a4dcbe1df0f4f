// SPDX-License-Identifier: Apache-2.0
// How much a process keeps: what must not grow for ever, however long it lives.
import type { ControllerProcess } from './controller-process.ts';

export interface Sizes {
  readonly timers: number;
  /** Lines that a scrape of its metrics gives; 0 when nobody wants to know. */
  readonly series: number;
  /** Keys that wait in its work queues. */
  readonly queued: number;
  /** How long the slowest worker has been busy with one key. */
  readonly busySeconds: number;
  /** Machines in its picture of the cluster. */
  readonly machines: number;
}

export async function sizesOf(
  { clock, metrics }: Pick<ControllerProcess, 'clock' | 'metrics'>,
  countsSeries: boolean,
): Promise<Sizes> {
  const values = async (name: string): Promise<number[]> => (await metrics.series(name)).map(({ value }) => value);
  let series = 0;
  if (countsSeries) for await (const chunk of metrics.chunks()) series += linesOf(chunk);
  const depths = await values('workqueue_depth');
  return {
    timers: clock.pendingTimers,
    series,
    queued: depths.reduce((sum, depth) => sum + depth, 0),
    busySeconds: Math.max(0, ...(await values('workqueue_longest_running_processor_seconds'))),
    machines: Math.max(0, ...(await values('karpenter_cluster_state_node_count'))),
  };
}

/** Those that are no comments. */
function linesOf(text: string): number {
  let lines = 0;
  for (let from = 0, end = 0; from < text.length; from = end + 1) {
    end = text.indexOf('\n', from);
    if (end < 0) end = text.length;
    if (end > from && text[from] !== '#') lines++;
  }
  return lines;
}
