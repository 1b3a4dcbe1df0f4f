// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { capacityBufferKind } from '../../api/capacity-buffer.ts';
import { kwokNodeClassKind } from '../../api/kwok-node-class.ts';
import { labels, terminationFinalizer } from '../../api/labels.ts';
import { nodePool } from '../../api/testing/objects.ts';
import { kinds } from '../../kube/kinds.ts';
import { formatTime } from '../../kube/time.ts';
import { node } from '../../state/testing/objects.ts';
import { type ClaimWorld, claimWorld } from '../nodeclaim/testing/claim-world.ts';
import { statusControllers } from './index.ts';

let w: ClaimWorld;
beforeEach(async () => {
  w = await claimWorld({ lifecycle: true });
  w.world.run(...statusControllers(w.context));
});
afterEach(() => w.world.close());

const value = (name: string, series: Record<string, string> = {}): Promise<number | undefined> =>
  w.world.metrics.value(`operator_${name}`, series);

/** The kubelet reports a condition. */
async function report(type: string, status: string, reason: string, message = ''): Promise<void> {
  const lastTransitionTime = formatTime(w.world.clock.now());
  const conditions = [{ type, status, reason, message, lastTransitionTime }];
  await w.world.workload.resource(kinds.Node).patchStatus('n', { status: { conditions } });
  await w.world.settle();
}

describe('a condition', () => {
  test('that changes is told as an event with its name', async () => {
    await w.world.apply(node('n'));
    await report('Ready', 'True', 'KubeletReady');
    expect(await w.world.events('Ready')).toEqual([]);
    await report('Ready', 'False', 'KubeletNotReady', 'it sleeps');
    await report('Ready', 'True', 'KubeletReady');
    await report('Ready', 'False', 'KubeletNotReady', 'it sleeps');
    expect(await w.world.events('Ready')).toEqual([
      'Ready Node/n: Status condition transitioned, Type: Ready, Status: True -> False, Reason: KubeletNotReady, Message: it sleeps',
      'Ready Node/n: Status condition transitioned, Type: Ready, Status: False -> True, Reason: KubeletReady',
    ]);
    const { items } = await w.world.workload.resource(kinds.Event).list();
    expect(items.filter(({ reason }) => reason === 'Ready').map(({ count }) => count)).toEqual([2, 1]);
  });

  test('whose reason alone changes is no transition, but shows the new reason', async () => {
    await w.world.apply(node('n'));
    await report('Ready', 'True', 'KubeletReady');
    await report('Ready', 'True', 'Other');
    expect(await w.world.events('Ready')).toEqual([]);
    expect(await value('node_status_condition_count', { reason: 'KubeletReady' })).toBeUndefined();
    expect(await value('node_status_condition_count', { reason: 'Other', name: 'n', status: 'True' })).toBe(1);
    expect(await value('node_status_condition_transitions_total', { type: 'Ready', reason: 'KubeletReady' })).toBe(1);
  });

  test('shows for how long it is what it is, and how long it was what it was', async () => {
    const own = { [labels.nodePool]: 'default', [labels.initialized]: 'true', 'karpenter.kwok.sh/kwoknodeclass': 'x' };
    await w.world.apply(node('n', { labels: own }));
    await report('Ready', 'False', 'Booting');
    await w.world.advance(40_000);
    const shown = {
      karpenter_sh_nodepool: 'default',
      karpenter_sh_initialized: 'true',
      karpenter_kwok_sh_kwoknodeclass: 'x',
    };
    const series = { namespace: '', name: 'n', type: 'Ready', status: 'False', reason: 'Booting', ...shown };
    expect(await value('node_status_condition_current_status_seconds', series)).toBe(40);
    await report('Ready', 'True', 'Booted');
    expect(await value('node_status_condition_current_status_seconds', series)).toBeUndefined();
    const { namespace: _namespace, name: _name, reason: _reason, ...was } = series;
    expect(await value('node_status_condition_transition_seconds', was)).toBe(1);
    const text = await w.world.metrics.render();
    expect(text).toMatch(/^operator_node_status_condition_transition_seconds_sum\{[^}]*status="False"[^}]*\} 40$/m);
    expect(text).toMatch(/^operator_node_status_condition_transition_seconds_bucket\{le="64",[^}]*\} 1$/m);
    expect(text).not.toMatch(/^operator_status_condition_count\{[^}]*kind="Node"/m);
  });

  test('without a time is no reason to fail', async () => {
    await w.world.apply(node('n', { status: { conditions: [{ type: 'Odd', status: 'True' }] } }));
    await w.world.settle();
    expect(await value('node_status_condition_current_status_seconds', { type: 'Odd' })).toBe(0);
  });
});

describe('a NodeClaim', () => {
  test('starts with conditions nobody knows, and tells each step', async () => {
    await w.write('a', { pool: await w.world.pool() });
    await w.world.until(() => w.world.state.nodeByClaim('a')?.initialized === true);
    const told = await w.world.events();
    for (const type of ['Launched', 'Registered', 'Initialized', 'Ready']) {
      expect(told).toContain(
        `${type} NodeClaim/a: Status condition transitioned, Type: ${type}, Status: Unknown -> True, Reason: ${type}`,
      );
    }
    const ready = { type: 'Ready', status: 'True', reason: 'Ready' };
    expect(await value('nodeclaim_status_condition_transitions_total', ready)).toBe(1);
    expect(await value('nodeclaim_status_condition_count', { ...ready, karpenter_sh_nodepool: 'default' })).toBe(1);
    expect(await value('nodeclaim_status_condition_transition_seconds', { type: 'Ready', status: 'Unknown' })).toBe(1);
  });

  test('is also counted under the names without a kind', async () => {
    await w.write('a', { pool: await w.world.pool() });
    await w.world.until(() => w.world.state.nodeByClaim('a')?.initialized === true);
    const kind = { group: 'karpenter.sh', kind: 'NodeClaim' };
    const ready = { type: 'Ready', status: 'True', reason: 'Ready', ...kind };
    expect(await value('status_condition_count', { ...ready, name: 'a' })).toBe(1);
    expect(await value('status_condition_transitions_total', ready)).toBe(1);
    expect(await value('status_condition_count', { kind: 'NodePool', type: 'Ready', name: 'default' })).toBe(1);
  });

  test('of somebody else is not spoken about', async () => {
    await w.write('a', { spec: { nodeClassRef: { group: 'other.sh', kind: 'X', name: 'x' } } });
    await w.world.settle();
    expect(await value('nodeclaim_status_condition_count', { name: 'a' })).toBeUndefined();
  });

  test('that goes away shows how long that takes, and which finalizers are done', async () => {
    w.world.cloud.deletesAtOnce = false;
    w.world.cloud.nodesAppear = false;
    await w.write('a', { pool: await w.world.pool() });
    await w.world.until(() => w.world.state.nodeByClaim('a') !== undefined);
    await w.world.delete((await w.claim('a'))!);
    await w.world.advance(30_000);
    const series = { name: 'a', namespace: '', karpenter_sh_nodepool: 'default' };
    expect(await value('nodeclaim_termination_current_time_seconds', series)).toBe(30);
    expect(await value('termination_current_time_seconds', { name: 'a', kind: 'NodeClaim' })).toBe(30);
    w.world.cloud.finishDeletions();
    await w.world.advance(10_000);
    expect(await w.claim('a')).toBeUndefined();
    expect(await value('nodeclaim_termination_current_time_seconds')).toBeUndefined();
    expect(await value('nodeclaim_termination_duration_seconds', { karpenter_sh_nodepool: 'default' })).toBe(1);
    expect(await value('termination_duration_seconds', { kind: 'NodeClaim', group: 'karpenter.sh' })).toBe(1);
    expect(await w.world.metrics.render()).not.toContain('name="a"');
    expect(await w.world.events('Finalized')).toEqual([`Finalized NodeClaim/a: Finalized ${terminationFinalizer}`]);
  });
});

test('a NodePool starts with conditions nobody knows', async () => {
  await w.world.apply(nodePool({ name: 'fresh' }));
  await w.world.settle();
  for (const type of ['ValidationSucceeded', 'NodeClassReady', 'Ready'])
    expect(await value('nodepool_status_condition_count', { name: 'fresh', type, status: 'Unknown' })).toBe(1);
});

test('a NodeClass tells what becomes of it', async () => {
  const classes = w.world.karpenter.resource(kwokNodeClassKind);
  const set = async (status: string): Promise<void> => {
    const lastTransitionTime = formatTime(w.world.clock.now());
    const conditions = [{ type: 'Ready', status, reason: 'Found', message: '', lastTransitionTime }];
    await classes.patchStatus('default', { status: { conditions } } as never);
    await w.world.settle();
  };
  await set('False');
  await set('True');
  expect(await value('kwoknodeclass_status_condition_count', { name: 'default', type: 'Ready', status: 'True' })).toBe(
    1,
  );
  expect(await w.world.events('Ready')).toEqual([
    'Ready KWOKNodeClass/default: Status condition transitioned, Type: Ready, Status: True -> False, Reason: Found',
    'Ready KWOKNodeClass/default: Status condition transitioned, Type: Ready, Status: False -> True, Reason: Found',
  ]);
});

test('events are where their objects are', async () => {
  const apart = await claimWorld({ lifecycle: true, apart: true });
  apart.world.run(...statusControllers(apart.context));
  await apart.write('a', { pool: await apart.world.pool() });
  await apart.world.until(() => apart.world.state.nodeByClaim('a')?.initialized === true);
  await apart.setReady(apart.world.state.nodeByClaim('a')?.node?.metadata.name ?? '', 'False');
  const kindsIn = async (client: typeof apart.world.karpenter): Promise<string[]> => {
    const { items } = await client.resource(kinds.Event).list();
    return [...new Set(items.map(({ involvedObject }) => involvedObject.kind ?? ''))].sort();
  };
  await apart.world.events();
  expect(await kindsIn(apart.world.karpenter)).toEqual(['NodeClaim', 'NodePool']);
  expect(await kindsIn(apart.world.workload)).toEqual(['Node']);
  await apart.world.close();
});

test('a finalizer that goes while its object stays is told', async () => {
  const plain = node('n');
  await w.world.apply({ ...plain, metadata: { ...plain.metadata, finalizers: ['one.example/x', 'two.example/x'] } });
  await w.world.settle();
  await w.world.apply({ ...plain, metadata: { ...plain.metadata, finalizers: ['two.example/x'] } });
  await w.world.settle();
  expect(await w.world.events('Finalized')).toEqual(['Finalized Node/n: Finalized one.example/x']);
});

test('CapacityBuffers are shown where they are in use', async () => {
  expect(statusControllers(w.context).map(({ name }) => name)).toEqual([
    'operatorpkg.nodeclaim.status',
    'operatorpkg.nodepool.status',
    'operatorpkg.node.status',
    'operatorpkg.kwoknodeclass.status',
  ]);
  w.world.run(statusControllers(w.context, { capacityBuffers: true }).at(-1)!);
  const { group, version, kind } = capacityBufferKind;
  const lastTransitionTime = formatTime(w.world.clock.now());
  const conditions = [
    { type: 'ReadyForProvisioning', status: 'True', reason: 'Fine', message: '', lastTransitionTime },
  ];
  const buffers = w.world.workload.resource(capacityBufferKind);
  const metadata = { name: 'spare', namespace: 'default' };
  const spec = { podTemplateRef: { name: 'web' }, replicas: 1 };
  await buffers.create({ apiVersion: `${group}/${version}`, kind, metadata, spec } as never);
  await buffers.patchStatus('spare', { status: { conditions } }, { namespace: 'default' });
  await w.world.settle();
  const series = { name: 'spare', namespace: 'default', type: 'ReadyForProvisioning', status: 'True' };
  expect(await value('capacitybuffer_status_condition_count', series)).toBe(1);
  expect(await value('status_condition_count', { ...series, kind, group })).toBe(1);
});
