// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { labels, terminationFinalizer } from '../../../api/labels.ts';
import { CreateError, InsufficientCapacityError, NodeClassNotReadyError } from '../../../cloud/errors.ts';
import { type ClaimWorld, claimWorld } from '../testing/claim-world.ts';

let w: ClaimWorld;
beforeEach(async () => {
  w = await claimWorld({ lifecycle: true });
  w.world.cloud.nodesAppear = false;
});
afterEach(() => w.world.close());

const disrupted = 'karpenter_nodeclaims_disrupted_total';

describe('launching a NodeClaim', () => {
  test('writes down what the cloud made, and holds on to it by a finalizer', async () => {
    await w.write('a', { labels: { team: 'red', [labels.zone]: 'asked-for' } });
    await w.world.settle();
    const claim = (await w.claim('a'))!;
    expect(claim.metadata.finalizers).toContain(terminationFinalizer);
    expect(claim.metadata.labels).toMatchObject({
      team: 'red',
      [labels.instanceType]: 'c-1x',
      // What the NodeClaim says about its labels stands.
      [labels.zone]: 'asked-for',
    });
    expect(claim.status).toMatchObject({ capacity: { cpu: '1' }, allocatable: { cpu: '1' } });
    expect(w.world.cloud.instances.has(claim.status!.providerID!)).toBe(true);
    expect(await w.condition('a', 'launched')).toBe('True Launched');
    expect(await w.condition('a', 'registered')).toBe('Unknown NodeNotFound');
    expect(await w.condition('a', 'Ready')).toBe('Unknown ReconcilingDependents');
    expect(w.world.log.messages()).toContain('launched nodeclaim');
  });

  test('has the finalizer before the cloud is asked', async () => {
    const { cloud } = w.world;
    const seen: unknown[] = [];
    const create = cloud.create.bind(cloud);
    cloud.create = async (claim, signal) => {
      seen.push((await w.claim('a'))?.metadata.finalizers);
      return create(claim, signal);
    };
    await w.write('a');
    await w.world.settle();
    expect(seen).toEqual([[terminationFinalizer]]);
  });

  test('asks the cloud once, however often it is looked at', async () => {
    await w.write('a');
    await w.world.advance(60_000);
    expect(w.world.cloud.calls.filter(({ method }) => method === 'create')).toHaveLength(1);
    expect(w.world.log.messages().filter((message) => message === 'launched nodeclaim')).toHaveLength(1);
  });

  test('is left alone when nobody serves its NodeClass', async () => {
    await w.write('a', { spec: { nodeClassRef: { group: 'other.sh', kind: 'OtherClass', name: 'x' } } });
    await w.world.advance(3_600_000);
    expect((await w.claim('a'))?.metadata.finalizers).toBeUndefined();
    expect(w.world.cloud.calls).toEqual([]);
  });

  test('gives up when there is no capacity', async () => {
    const pool = await w.world.pool();
    w.world.cloud.fail('create', new InsufficientCapacityError(`sold out ${'!'.repeat(400)}`));
    await w.write('a', { pool });
    await w.world.settle();
    expect(await w.claim('a')).toBeUndefined();
    const [event] = await w.world.events('InsufficientCapacityError');
    expect(event).toMatch(/^InsufficientCapacityError NodeClaim\/a: No machine can be had now: sold out !+\.\.\.$/);
    const labelled = { reason: 'insufficient_capacity', nodepool: 'default', termination_mode: 'graceful' };
    expect(await w.world.metrics.value(disrupted, labelled)).toBe(1);
    // Nothing was made, so nothing is searched for.
    expect(w.world.cloud.calls.map(({ method }) => method)).toEqual(['create']);
  });

  test('gives up when the NodeClass is not ready, and says so', async () => {
    w.world.cloud.fail('create', new NodeClassNotReadyError('no subnets'));
    await w.write('a');
    await w.world.settle();
    expect(await w.claim('a')).toBeUndefined();
    expect(await w.world.events('NodeClassNotReady')).toHaveLength(1);
    expect(await w.world.metrics.value(disrupted, { reason: 'nodeclass_not_ready', nodepool: '' })).toBe(1);
  });

  test('shows why it failed, and tries again', async () => {
    w.world.cloud.fail('create', new CreateError('no', { reason: 'QuotaExceeded', message: 'ask for more' }));
    await w.write('a');
    await w.world.settle();
    expect(await w.condition('a', 'launched')).toBe('Unknown QuotaExceeded');
    w.world.cloud.fail('create', new Error('the cloud is down'));
    await w.world.advance(1000);
    expect(await w.condition('a', 'launched')).toBe('Unknown LaunchFailed');
    await w.world.advance(2000);
    expect(await w.condition('a', 'launched')).toBe('True Launched');
  });

  test('keeps what others wrote meanwhile', async () => {
    const { cloud } = w.world;
    const create = cloud.create.bind(cloud);
    cloud.create = async (claim, signal) => {
      await w.world.karpenter
        .resource(w.context.claims.informer.type)
        .patch('a', { metadata: { labels: { mine: 'yes' }, finalizers: [terminationFinalizer, 'example.com/hold'] } });
      return create(claim, signal);
    };
    await w.write('a');
    await w.world.advance(1000);
    const claim = (await w.claim('a'))!;
    expect(claim.metadata.labels).toMatchObject({ mine: 'yes', [labels.instanceType]: 'c-1x' });
    expect(claim.metadata.finalizers).toEqual([terminationFinalizer, 'example.com/hold']);
    // The answer of the cloud was kept over the conflict.
    expect(cloud.calls.filter(({ method }) => method === 'create')).toHaveLength(1);
    expect(w.world.log.messages('error')).toEqual([]);
  });
});
