// SPDX-License-Identifier: Apache-2.0
// What our client promises, asked of any API server: the embedded one in process and over HTTP, and a real one.
import { describe, expect, test } from 'vitest';
import { RealClock } from '../../../src/base/clock.ts';
import { deepClone } from '../../../src/base/freeze.ts';
import { SystemRandom } from '../../../src/base/random.ts';
import { isAlreadyExists, isConflict, isInvalid, isNotFound, isTooManyRequests } from '../../../src/kube/api-error.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { EventRecorder } from '../../../src/kube/event-recorder.ts';
import { Informer } from '../../../src/kube/informer.ts';
import { type ConfigMap, type Deployment, kinds, type Node, type Pod } from '../../../src/kube/kinds.ts';
import { LeaderElector } from '../../../src/kube/lease.ts';
import { keyOf } from '../../../src/kube/object.ts';
import { groupPath } from '../../../src/kube/paths.ts';

const clock = new RealClock();
const at = { namespace: 'default' };
const configMap = (name: string, data: Record<string, string> = { a: '1' }): ConfigMap => ({
  metadata: { name, ...at },
  data,
});
const pod = (name: string, more: Partial<Pod['spec']> = {}): Pod => ({
  metadata: { name, ...at, labels: { app: name } },
  spec: {
    containers: [{ name: 'c', image: 'i', resources: { requests: { cpu: '100m' } } }],
    automountServiceAccountToken: false,
    ...more,
  },
});

/** Awaits a state that the server reaches in its own time. */
export async function eventually(check: () => void | Promise<void>): Promise<void> {
  const deadline = clock.monotonic() + 10_000;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (clock.monotonic() > deadline) throw error;
      await clock.sleep(50);
    }
  }
}

/** The tests, for the client of an API server without controllers and with an empty "default" namespace. */
export function clientSuite(client: () => KubeClient): void {
  describe('verbs', () => {
    test('create, get, update, patch, delete', async () => {
      const maps = client().resource(kinds.ConfigMap);
      const created = await maps.create(configMap('verbs'));
      expect(created).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap', data: { a: '1' } });
      await expect(maps.create(configMap('verbs'))).rejects.toSatisfy(isAlreadyExists);
      const updated = await maps.update({ ...created, data: { a: '2' } });
      expect(updated.metadata.resourceVersion).not.toBe(created.metadata.resourceVersion);
      await expect(maps.update({ ...created, data: { a: '3' } })).rejects.toSatisfy(isConflict);
      expect((await maps.patch('verbs', { data: { b: 'x' } }, at)).data).toEqual({ a: '2', b: 'x' });
      expect((await maps.patch('verbs', [{ op: 'remove', path: '/data/a' }], { ...at, type: 'json' })).data).toEqual({
        b: 'x',
      });
      expect(
        (await maps.patch('verbs', { data: { c: 'y' } }, { ...at, type: 'strategic', dryRun: true })).data,
      ).toEqual({
        b: 'x',
        c: 'y',
      });
      expect((await maps.get('verbs', at)).data).toEqual({ b: 'x' });
      await expect(maps.delete('verbs', { ...at, preconditions: { uid: 'other' } })).rejects.toSatisfy(isConflict);
      await maps.delete('verbs', { ...at, preconditions: { uid: created.metadata.uid! } });
      await expect(maps.get('verbs', at)).rejects.toSatisfy(isNotFound);
      await expect(maps.create(configMap('Not_Valid'))).rejects.toSatisfy(isInvalid);
    });

    test('server-side apply owns fields and refuses to take them by default', async () => {
      const maps = client().resource(kinds.ConfigMap);
      await maps.apply(configMap('applied', { a: '1' }), { fieldManager: 'first' });
      await expect(maps.apply(configMap('applied', { a: '2' }), { fieldManager: 'second' })).rejects.toSatisfy(
        isConflict,
      );
      expect(
        (await maps.apply(configMap('applied', { a: '2' }), { fieldManager: 'second', force: true })).data,
      ).toEqual({
        a: '2',
      });
      await maps.deleteCollection({ ...at, labelSelector: '', fieldSelector: 'metadata.name=applied' });
      await eventually(() => expect(maps.get('applied', at)).rejects.toSatisfy(isNotFound));
    });

    test('strict validation names the field', async () => {
      const wrong = { ...configMap('strict'), dta: {} } as unknown as ConfigMap;
      await expect(client().resource(kinds.ConfigMap).create(wrong, { fieldValidation: 'Strict' })).rejects.toThrow(
        'unknown field "dta"',
      );
    });

    test('status, scale, binding and eviction', async () => {
      const nodes = client().resource(kinds.Node);
      const pods = client().resource(kinds.Pod);
      const node: Node = { metadata: { name: 'n1' } };
      const created = await nodes.create(node);
      const withStatus = deepClone(created);
      withStatus.status = { ...withStatus.status, allocatable: { cpu: '4' } };
      expect((await nodes.updateStatus(withStatus)).status?.allocatable).toEqual({ cpu: '4' });
      expect((await nodes.patchStatus('n1', { status: { capacity: { cpu: '4' } } })).status?.capacity).toEqual({
        cpu: '4',
      });

      const bound = await pods.create(pod('bound'));
      await pods.bind('bound', 'n1', { ...at, uid: bound.metadata.uid! });
      expect((await pods.get('bound', at)).spec.nodeName).toBe('n1');
      await client()
        .resource(kinds.PodDisruptionBudget)
        .create({
          metadata: { name: 'budget', ...at },
          spec: { minAvailable: 1, selector: { matchLabels: { app: 'bound' } } },
        });
      await pods.patchStatus(
        'bound',
        { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } },
        { ...at, type: 'strategic' },
      );
      // Nobody computes the budget's status here, so the server asks to wait: the client must not.
      const started = clock.monotonic();
      await expect(pods.evict('bound', at)).rejects.toSatisfy(isTooManyRequests);
      expect(clock.monotonic() - started).toBeLessThan(2000);
      await client().resource(kinds.PodDisruptionBudget).delete('budget', at);
      await pods.evict('bound', { ...at, gracePeriodSeconds: 0 });

      const deployments = client().resource(kinds.Deployment);
      const deployment: Deployment = {
        metadata: { name: 'd', ...at },
        spec: {
          replicas: 1,
          selector: { matchLabels: { app: 'd' } },
          template: { metadata: { labels: { app: 'd' } }, spec: pod('d').spec },
        },
      };
      await deployments.create(deployment);
      expect((await deployments.updateScale('d', 5, at)).spec?.replicas).toBe(5);
      expect((await deployments.getScale('d', at)).status?.selector).toBe('app=d');
      expect((await deployments.delete('d', { ...at, propagationPolicy: 'Foreground' }))?.metadata.finalizers).toEqual([
        'foregroundDeletion',
      ]);
      expect(await client().serves(kinds.ResourceClaim)).toBe(true);
      expect(await client().serves({ ...kinds.Pod, group: 'karpenter.sh' })).toBe(false);
    });
  });

  test('every kind in the table is served where and as the table says', async () => {
    const wrong: string[] = [];
    for (const type of Object.values(kinds)) {
      const { resources } = (await client().request({ method: 'GET', path: groupPath(type) })) as {
        resources: { name: string; kind: string; namespaced: boolean }[];
      };
      const served = resources.find((resource) => resource.name === type.plural);
      if (served?.kind !== type.kind || served.namespaced !== type.namespaced) wrong.push(type.kind);
    }
    expect(wrong).toEqual([]);
  });

  test('pages through a collection, as a whole and one by one', async () => {
    const maps = client().resource(kinds.ConfigMap);
    const names = Array.from({ length: 12 }, (_, i) => `page-${String(i).padStart(2, '0')}`);
    await Promise.all(
      names.map((name) => maps.create({ ...configMap(name), metadata: { name, ...at, labels: { set: 'pages' } } })),
    );
    const all = await maps.listAll({ ...at, labelSelector: 'set=pages', limit: 5 });
    expect(all.items.map((item) => item.metadata.name)).toEqual(names);
    const seen: string[] = [];
    for await (const item of maps.iterate({ ...at, labelSelector: 'set=pages', limit: 5 }))
      seen.push(item.metadata.name!);
    expect(seen).toEqual(names);
    await maps.deleteCollection({ ...at, labelSelector: 'set=pages' });
  });

  test('an informer follows a live collection', async () => {
    const stop = new AbortController();
    const maps = client().resource(kinds.ConfigMap);
    const informer = new Informer({
      client: client(),
      type: kinds.ConfigMap,
      ...at,
      indexes: { value: (map) => map.data?.['a'] },
    });
    const events: string[] = [];
    informer.addHandler({
      added: (map) => events.push(`+${map.metadata.name}`),
      updated: (map) => events.push(`~${map.metadata.name}`),
      deleted: (map) => events.push(`-${map.metadata.name}`),
    });
    informer.start(stop.signal);
    await informer.waitForSync();
    await maps.create(configMap('live'));
    await maps.patch('live', { data: { a: '2' } }, at);
    await eventually(() => expect(informer.byIndex('value', '2').map(keyOf)).toEqual(['default/live']));
    expect(informer.get('default/live')?.metadata.managedFields).toBeUndefined();
    await maps.delete('live', at);
    await eventually(() =>
      expect(events.filter((event) => event.endsWith('live'))).toEqual(['+live', '~live', '-live']),
    );
    stop.abort();
    await informer.stopped();
  });

  test('one candidate leads, and hands over', async () => {
    const story: string[] = [];
    const candidate = (identity: string) => {
      const stop = new AbortController();
      const elector = new LeaderElector({
        client: client(),
        name: 'election',
        ...at,
        identity,
        clock,
        random: new SystemRandom(),
        leaseDurationMs: 2000,
        renewDeadlineMs: 1000,
        retryPeriodMs: 50,
        onStartedLeading: () => story.push(identity),
      });
      return { stop, done: elector.run(stop.signal), elector };
    };
    const a = candidate('a');
    await eventually(() => expect(a.elector.isLeader).toBe(true));
    const b = candidate('b');
    await clock.sleep(300);
    expect(story).toEqual(['a']);
    a.stop.abort();
    await a.done;
    await eventually(() => expect(b.elector.isLeader).toBe(true));
    b.stop.abort();
    await b.done;
    const lease = await client().resource(kinds.Lease).get('election', at);
    expect(lease.spec).toMatchObject({ holderIdentity: '', leaseTransitions: 1 });
  });

  test('events are accepted and counted up', async () => {
    const recorder = new EventRecorder({ client: client(), clock });
    const object = await client().resource(kinds.Node).get('n1');
    const event = { object, type: 'Normal', reason: 'Tested', message: 'again', dedupeMs: 0 } as const;
    recorder.publish(event, event);
    await recorder.flush();
    recorder.publish(event);
    await recorder.flush();
    const events = await client()
      .resource(kinds.Event)
      .list({ ...at, fieldSelector: 'reason=Tested' });
    expect(events.items.map(({ count, message, source }) => ({ count, message, source }))).toEqual([
      { count: 3, message: 'again', source: { component: 'karpenter' } },
    ]);
  });
}
