// SPDX-License-Identifier: Apache-2.0
// Server-side apply as its clients see it.
import { expect, test } from 'vitest';
import { VirtualClock } from '../../base/clock.ts';
import { SeededRandom } from '../../base/random.ts';
import { ApiServer } from '../api-server.ts';

const deployments = '/apis/apps/v1/namespaces/default/deployments/web';

function deployment(spec: { replicas?: number; image?: string; sidecar?: boolean; labels?: Record<string, string> }) {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', ...(spec.labels ? { labels: spec.labels } : {}) },
    spec: {
      ...(spec.replicas === undefined ? {} : { replicas: spec.replicas }),
      selector: { matchLabels: { app: 'web' } },
      template: {
        metadata: { labels: { app: 'web' } },
        spec: {
          containers: [
            { name: 'web', image: spec.image ?? 'web:1' },
            ...(spec.sidecar ? [{ name: 'sidecar', image: 'sidecar:1' }] : []),
          ],
        },
      },
    },
  };
}

function world() {
  const clock = new VirtualClock();
  const server = new ApiServer({ clock, random: new SeededRandom(1) });
  const transport = server.transport();
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at answers of any kind
  const body = (answer: { body: unknown; status: number }): any => answer.body;
  const apply = async (fieldManager: string, object: unknown, force = false) =>
    body(
      await transport.request({
        method: 'PATCH',
        path: deployments,
        contentType: 'application/apply-patch+yaml',
        query: { fieldManager, ...(force ? { force: 'true' } : {}) },
        body: object,
      }),
    );
  const merge = async (fieldManager: string, patch: unknown) =>
    body(
      await transport.request({
        method: 'PATCH',
        path: deployments,
        contentType: 'application/merge-patch+json',
        query: { fieldManager },
        body: patch,
      }),
    );
  return { apply, merge, clock };
}

test('an apply creates, and owns exactly what it said', async () => {
  const { apply } = world();
  const created = await apply('alice', deployment({ replicas: 2 }));
  expect(created.spec.replicas).toBe(2);
  expect(created.metadata.managedFields).toEqual([
    {
      manager: 'alice',
      operation: 'Apply',
      apiVersion: 'apps/v1',
      time: '2026-01-01T00:00:00Z',
      fieldsType: 'FieldsV1',
      fieldsV1: {
        'f:spec': {
          'f:replicas': {},
          'f:selector': {},
          'f:template': {
            'f:metadata': { 'f:labels': { 'f:app': {} } },
            'f:spec': { 'f:containers': { 'k:{"name":"web"}': { '.': {}, 'f:image': {}, 'f:name': {} } } },
          },
        },
      },
    },
  ]);
});

test('the same apply again writes nothing', async () => {
  const { apply, clock } = world();
  const first = await apply('alice', deployment({ replicas: 2 }));
  await clock.step(60_000);
  const second = await apply('alice', deployment({ replicas: 2 }));
  expect(second.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
});

test('what another manager owns is not taken without force', async () => {
  const { apply } = world();
  await apply('alice', deployment({ replicas: 2 }));
  const refused = await apply('bob', deployment({ replicas: 5 }));
  expect(refused).toMatchObject({
    code: 409,
    reason: 'Conflict',
    message: 'Apply failed with 1 conflict: conflict with "alice": .spec.replicas',
    details: {
      causes: [{ reason: 'FieldManagerConflict', message: 'conflict with "alice"', field: '.spec.replicas' }],
    },
  });
  const forced = await apply('bob', deployment({ replicas: 5 }), true);
  expect(forced.spec.replicas).toBe(5);
  const back = await apply('alice', deployment({ replicas: 2 }));
  expect(back.message).toContain('conflict with "bob"');
});

test('what an applier stops mentioning goes, unless somebody else wants it too', async () => {
  const { apply } = world();
  await apply('alice', deployment({ labels: { a: '1', b: '1' }, sidecar: true }));
  await apply('bob', { ...deployment({ labels: { b: '1' } }) });
  const after = await apply('alice', deployment({}));
  expect(after.metadata.labels).toEqual({ b: '1' });
  expect(after.spec.template.spec.containers.map((container: { name: string }) => container.name)).toEqual(['web']);
});

test('an update takes over what it changes', async () => {
  const { apply, merge } = world();
  await apply('alice', deployment({ replicas: 2 }));
  const scaled = await merge('scaler', { spec: { replicas: 7 } });
  expect(scaled.metadata.managedFields.map((entry: { manager: string }) => entry.manager)).toEqual(['alice', 'scaler']);
  const refused = await apply('alice', deployment({ replicas: 2 }));
  expect(refused.message).toBe('Apply failed with 1 conflict: conflict with "scaler" using apps/v1: .spec.replicas');
  const without = await apply('alice', deployment({}));
  expect(without.spec.replicas).toBe(7);
});

test('an apply says who applies', async () => {
  const { apply } = world();
  const refused = await apply('', deployment({}));
  expect(refused).toMatchObject({
    code: 422,
    message: expect.stringContaining('fieldManager: Required value: is required for apply patch'),
  });
});
