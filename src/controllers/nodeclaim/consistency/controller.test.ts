// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { kinds } from '../../../kube/kinds.ts';
import { type ClaimWorld, claimWorld } from '../testing/claim-world.ts';
import { consistencyController } from './controller.ts';

let w: ClaimWorld;
beforeEach(async () => {
  w = await claimWorld({ lifecycle: true });
  await w.run(consistencyController);
});
afterEach(() => w.world.close());

const requests = { cpu: '1', memory: '1Gi', 'vendor.com/none': '0' };

async function shrink(capacity: Record<string, string>): Promise<void> {
  const name = (await w.nodeOf('a'))!.metadata.name!;
  await w.world.workload.resource(kinds.Node).patchStatus(name, { status: { capacity } });
  await w.world.settle();
}

describe('the shape of a node', () => {
  test('is what was promised', async () => {
    await w.write('a', { spec: { resources: { requests } } });
    await w.world.advance(1000);
    expect(await w.condition('a', 'consistentStateFound')).toBe('True ConsistentStateFound');
  });

  test('is looked at every ten minutes, and told of when a tenth is missing', async () => {
    await w.write('a', { spec: { resources: { requests } } });
    await w.world.advance(1000);
    await shrink({ cpu: '890m' });
    await w.world.advance(590_000);
    expect(await w.condition('a', 'consistentStateFound')).toBe('True ConsistentStateFound');
    await w.world.advance(10_000);
    expect(await w.condition('a', 'consistentStateFound')).toBe('False ConsistencyCheckFailed');
    expect(await w.world.events('FailedConsistencyCheck')).toEqual([
      'FailedConsistencyCheck NodeClaim/a: expected 1 of resource cpu, but found 890m (89.0% of expected)',
    ]);
    await shrink({ cpu: '900m' });
    await w.world.advance(600_000);
    expect(await w.condition('a', 'consistentStateFound')).toBe('True ConsistentStateFound');
  });

  test('is told of for every resource that was asked for, however it is measured', async () => {
    await w.write('a', { spec: { resources: { requests } } });
    await w.world.advance(1000);
    await shrink({ memory: '1Gi' });
    await w.world.advance(600_000);
    expect(await w.world.events('FailedConsistencyCheck')).toEqual([
      'FailedConsistencyCheck NodeClaim/a: expected 2Gi of resource memory, but found 1Gi (50.0% of expected)',
    ]);
  });

  test('of a node that is still starting is not judged', async () => {
    await w.write('a', { spec: { resources: { requests }, startupTaints: [{ key: 'cni', effect: 'NoExecute' }] } });
    await w.world.advance(1_200_000);
    expect(await w.condition('a', 'consistentStateFound')).toBe('');
  });
});
