// SPDX-License-Identifier: Apache-2.0
// The three controllers that write conditions of NodePools, alone and side by side.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { kwokNodeClassKind } from '../../api/kwok-node-class.ts';
import { capacityTypes, labels } from '../../api/labels.ts';
import { type NodePool, nodePoolKind } from '../../api/node-pool.ts';
import { nodePool } from '../../api/testing/objects.ts';
import type { KubeObject, ResourceType } from '../../kube/object.ts';
import { ControllerContext } from '../nodeclaim/context.ts';
import { type ClaimWorld, claimWorld } from '../nodeclaim/testing/claim-world.ts';
import { nodePoolControllers } from './index.ts';
import { registrationHealthController } from './registration-health/controller.ts';

const poolType = nodePoolKind as ResourceType<NodePool>;
const classType = kwokNodeClassKind as ResourceType<KubeObject>;

let w: ClaimWorld;
beforeEach(async () => {
  w = await claimWorld();
  for (const controller of nodePoolControllers(w.context)) w.world.run(controller);
  await w.run();
});
afterEach(() => w.world.close());

async function condition(type: string): Promise<string> {
  const pool = await w.world.find(poolType, 'default');
  const found = pool?.status?.conditions?.find((candidate) => candidate.type === type);
  return found ? `${found.status} ${found.reason}` : '';
}

async function apply(...objects: KubeObject[]): Promise<void> {
  await w.world.apply(...objects);
  await w.world.settle();
}

describe('a NodePool', () => {
  test('is ready when it is valid and its NodeClass is', async () => {
    await apply(nodePool());
    await w.world.advance(1000);
    expect(await condition('ValidationSucceeded')).toBe('True ValidationSucceeded');
    expect(await condition('NodeClassReady')).toBe('True NodeClassReady');
    expect(await condition('NodeRegistrationHealthy')).toBe('Unknown AwaitingReconciliation');
    expect(await condition('Ready')).toBe('True Ready');
  });

  test('is not ready without its NodeClass, and becomes so with it', async () => {
    const nodeClassRef = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'later' };
    await apply(nodePool({ template: { nodeClassRef } }));
    await w.world.advance(1000);
    expect(await condition('NodeClassReady')).toBe('False NodeClassNotFound');
    expect(await condition('Ready')).toBe('False UnhealthyDependents');
    await apply({ apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass', metadata: { name: 'later' } });
    await w.world.advance(1000);
    expect(await condition('Ready')).toBe('True Ready');
  });

  test('repeats why its NodeClass is not ready', async () => {
    await apply(nodePool());
    const say = async (status: string, reason: string): Promise<void> => {
      const lastTransitionTime = '2026-01-01T00:00:00Z';
      const conditions = [{ type: 'Ready', status, reason, message: 'words', lastTransitionTime }];
      await w.world.karpenter.resource(classType).patchStatus('default', { status: { conditions } });
      await w.world.advance(1000);
    };
    await say('False', 'NoSubnets');
    expect(await condition('NodeClassReady')).toBe('False NoSubnets');
    await say('Unknown', 'Checking');
    expect(await condition('NodeClassReady')).toBe('False NodeClassReadinessUnknown');
    await say('True', 'Ready');
    expect(await condition('NodeClassReady')).toBe('True NodeClassReady');
    await w.world.karpenter.resource(classType).patch('default', { metadata: { finalizers: ['example.com/hold'] } });
    await w.world.karpenter.resource(classType).delete('default');
    await w.world.advance(1000);
    expect(await condition('NodeClassReady')).toBe('False NodeClassTerminating');
    await w.world.karpenter.resource(classType).patch('default', { metadata: { finalizers: null } });
    await w.world.advance(1000);
    expect(await condition('NodeClassReady')).toBe('False NodeClassNotFound');
  });

  test('says what is wrong with it, and recovers', async () => {
    const wrong = { key: labels.capacityType, operator: 'In', values: ['free'] } as const;
    await apply(nodePool({ template: { requirements: [{ ...wrong, values: [...wrong.values] }] } }));
    await w.world.advance(1000);
    expect(await condition('ValidationSucceeded')).toBe('False NodePoolValidationFailed');
    expect(await condition('Ready')).toBe('False UnhealthyDependents');
    const right = [{ key: labels.capacityType, operator: 'In', values: ['free', capacityTypes.spot] }];
    await w.world.karpenter
      .resource(poolType)
      .patch('default', { spec: { template: { spec: { requirements: right } } } });
    await w.world.advance(1000);
    expect(await condition('Ready')).toBe('True Ready');
    expect(w.world.log.messages('warn')).toEqual(['nodepool has unusable values']);
  });

  test('of somebody else is left alone', async () => {
    await apply(nodePool({ template: { nodeClassRef: { group: 'other.sh', kind: 'Other', name: 'x' } } }));
    await w.world.advance(10_000);
    const pool = await w.world.find(poolType, 'default');
    expect(pool?.status?.conditions).toBeUndefined();
    expect(pool?.metadata.annotations).toBeUndefined();
  });
});

describe('the health of registrations', () => {
  async function uid(): Promise<string> {
    return (await w.world.find(poolType, 'default'))!.metadata.uid!;
  }

  async function judge(status: 'True' | 'False'): Promise<void> {
    const pool = (await w.world.find(poolType, 'default'))!;
    const conditions = pool.status!.conditions!.map((known) =>
      known.type === 'NodeRegistrationHealthy' ? { ...known, status, reason: 'Told' } : known,
    );
    await w.world.karpenter.resource(poolType).patchStatus('default', { status: { conditions } });
    await w.world.settle();
  }

  test('is remembered over a restart', async () => {
    await apply(nodePool());
    await w.world.advance(1000);
    await judge('False');
    const context = new ControllerContext(w.world);
    w.world.run(registrationHealthController(context));
    await w.world.advance(1000);
    expect(context.poolHealth.of(await uid())).toBe('unhealthy');
  });

  test('begins anew when the NodePool or its NodeClass changes', async () => {
    await apply(nodePool());
    await w.world.advance(1000);
    const { poolHealth } = w.context;
    for (const change of [
      () => w.world.karpenter.resource(poolType).patch('default', { spec: { weight: 5 } }),
      () => w.world.karpenter.resource(classType).patch('default', { spec: { nodeRegistrationDelay: '1s' } }),
    ]) {
      await judge('False');
      expect(poolHealth.of(await uid())).toBe('unhealthy');
      await change();
      await w.world.advance(1000);
      expect(await condition('NodeRegistrationHealthy')).toBe('Unknown AwaitingReconciliation');
      expect(poolHealth.of(await uid())).toBe('unknown');
    }
  });
});
