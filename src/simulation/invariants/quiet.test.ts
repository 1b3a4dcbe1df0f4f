// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { StoreEvent } from '../../embedded/store.ts';
import { collections } from '../collections.ts';
import type { Change, Facts } from '../contract.ts';
import type { Fleet } from '../process/fleet.ts';
import { quietInvariants } from './quiet.ts';

const minute = 60_000;
const now = 120 * minute;

/**
 * What the judge of rest says when somebody, and then the autoscaler, wrote so many minutes ago; the autoscaler to a Node, or to mark a machine
 * of an age that is to go. A node may be consolidated since as many minutes as `ripe` says.
 */
function judged(
  others: number,
  ours: number,
  { ripe, markedAge }: { ripe?: number; markedAge?: number } = {},
): string[] {
  const said: string[] = [];
  const report = { violated: (message: string) => said.push(message), checked: () => undefined };
  const rest = quietInvariants({ fleet: {} as Fleet }).find(({ name }) => name === 'rest/no-writes')!;
  const at = (ago: number): string => new Date(now - ago * minute).toISOString();
  const conditions = [{ type: 'Consolidatable', status: 'True', lastTransitionTime: at(ripe ?? 0) }];
  const claims = ripe === undefined ? [] : [{ metadata: { name: 'claim' }, spec: {}, status: { conditions } }];
  const facts = { now, list: (of: string) => (of === collections.claims ? claims : []) } as unknown as Facts;
  const node = { kind: 'Node', metadata: { name: 'node' }, spec: {} };
  const wrote = (by: string, ago: number): Change => ({
    at: now - ago * minute,
    by,
    request: 'PATCH /api/v1/nodes/node',
    collection: collections.nodes,
    event: { type: 'MODIFIED', object: node, previous: node } as unknown as StoreEvent,
  });
  rest.onChange!(wrote('cluster', others), facts, report);
  rest.onChange!(wrote('karpenter-1', ours), facts, report);
  if (markedAge !== undefined) rest.onChange!(marked(ours, markedAge), facts, report);
  void rest.onQuiet!(facts, report);
  return said;
}

/** A machine that was so many minutes old is to go, since so many minutes. */
function marked(ago: number, age: number): Change {
  const at = now - ago * minute;
  const metadata = { name: 'claim', creationTimestamp: new Date(at - age * minute).toISOString() };
  const conditions = [{ type: 'DisruptionReason', status: 'True', reason: 'Underutilized' }];
  return {
    at,
    by: 'karpenter-1',
    request: 'PATCH /apis/karpenter.sh/v1/nodeclaims/claim/status',
    collection: collections.claims,
    event: {
      type: 'MODIFIED',
      object: { kind: 'NodeClaim', metadata, status: { conditions } },
      previous: { kind: 'NodeClaim', metadata, status: {} },
    } as unknown as StoreEvent,
  };
}

test('what follows from a change may take six minutes to begin, and no longer', () => {
  expect(judged(10, 4)).toEqual([]);
  expect(judged(12, 4)).toHaveLength(1);
  expect(judged(12, 6)).toEqual([]);
});

test('machines that were too young to be exchanged grow old, and those that came during the rest are none of them', () => {
  expect(judged(30, 4, { markedAge: 40 })).toEqual([]);
  expect(judged(30, 4, { markedAge: 65 })).toEqual([]);
  expect(judged(30, 4, { markedAge: 20 })).toHaveLength(1);
  expect(judged(30, 4, { markedAge: 90 })).toHaveLength(1);
});

test('what follows from a node that may be consolidated at last has as long', () => {
  expect(judged(40, 4, { ripe: 10 })).toEqual([]);
  expect(judged(40, 4, { ripe: 11 })).toHaveLength(1);
});

/** What the judge says of a process that keeps so much, in a cluster of ten pods and nodes. */
async function grown(keeps: {
  timers?: number;
  series?: number;
  queued?: number;
  busy?: number;
  machines?: number;
  events?: number;
}): Promise<string[]> {
  const { timers = 10, series = 10, queued = 0, busy = 0, machines = 5, events = 0 } = keeps;
  const values: Readonly<Record<string, number>> = {
    workqueue_depth: queued,
    workqueue_longest_running_processor_seconds: busy,
    karpenter_cluster_state_node_count: machines,
  };
  const metrics = {
    series: (name: string) => Promise.resolve([{ labels: {}, value: values[name] }]),
    async *chunks() {
      yield '# HELP x\n# TYPE x gauge\n\n';
      yield 'x 1\n'.repeat(series);
    },
  };
  const process = { name: 'karpenter-1', clock: { pendingTimers: timers }, metrics };
  const fleet = { alive: [process] } as unknown as Fleet;
  const said: string[] = [];
  const report = { violated: (message: string) => said.push(message), checked: () => undefined };
  const judge = quietInvariants({ fleet }).find(({ name }) => name === 'rest/nothing-grows')!;
  const facts = { now, list: () => Array.from({ length: 5 }, () => ({ spec: {} })) } as unknown as Facts;
  for (let i = 0; i < events; i++)
    judge.onChange!(
      {
        at: now - minute,
        by: 'karpenter-1',
        request: '',
        collection: collections.events,
        event: { type: 'MODIFIED' } as unknown as StoreEvent,
      },
      facts,
      report,
    );
  // The series are counted at every third rest.
  for (let i = 0; i < 3; i++) {
    said.length = 0;
    await judge.onQuiet!(facts, report);
  }
  return said;
}

test('what a process keeps is in proportion to the cluster', async () => {
  expect(await grown({})).toEqual([]);
  expect(await grown({ timers: 111 })).toEqual(['karpenter-1 has 111 timers for 10 pods and nodes']);
  expect(await grown({ series: 12_201 })).toEqual(['karpenter-1 has 12201 metric series for 10 pods and nodes']);
  expect(await grown({ queued: 21 })).toEqual(['21 keys wait for a worker of karpenter-1']);
  expect(await grown({ busy: 901 })).toEqual(['a worker of karpenter-1 has been busy for 901 s']);
  expect(await grown({ machines: 11 })).toEqual(['karpenter-1 knows 11 machines of 5 Nodes and 5 NodeClaims']);
  expect(await grown({ events: 31 })).toEqual(['31 events were told in the last 5 minutes of a rest']);
});
