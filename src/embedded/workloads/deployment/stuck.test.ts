// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { VirtualClock } from '../../../base/clock.ts';
import { SeededRandom } from '../../../base/random.ts';
import { KubeClient } from '../../../kube/client.ts';
import { kinds } from '../../../kube/kinds.ts';
import { silentLogger } from '../../../runtime/logging.ts';
import { Metrics } from '../../../runtime/metrics.ts';
import { ApiServer } from '../../api-server.ts';
import { aNode } from '../../testing/objects.ts';
import { runControlPlane } from '../run-control-plane.ts';

test('a Deployment that was rolled out and waits for a pod is not looked at again and again', async () => {
  const [clock, random, metrics] = [new VirtualClock(), new SeededRandom(1), new Metrics()];
  const server = new ApiServer({ clock, random });
  const client = new KubeClient({ transport: server.transport(), clock, fieldManager: 'test' });
  const plane = await runControlPlane({
    client,
    clock,
    random,
    log: silentLogger,
    metrics,
    certificateAuthority: '',
    heartbeatMs: 0,
  });
  const node = aNode('one', { allocatable: { pods: '2' } });
  node.metadata.annotations = { 'kwok.x-k8s.io/node': 'fake' };
  delete node.status!.conditions;
  await client.resource(kinds.Node).create(node);
  const labels = { app: 'web' };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'app' }] } };
  await client.resource(kinds.Deployment).create({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default' },
    spec: { replicas: 2, selector: { matchLabels: labels }, template },
  });
  await clock.step(60_000);
  await client.resource(kinds.Deployment).updateScale('web', 3, { namespace: 'default' });
  // Past the deadline for progress, which was made once and for all.
  await clock.step(30 * 60_000);
  const looks = async (): Promise<number> => {
    const series = await metrics.series('controller_runtime_reconcile_total');
    return series.reduce((sum, { labels: of, value }) => sum + (of['controller'] === 'deployment' ? value : 0), 0);
  };
  const before = await looks();
  await clock.step(30 * 60_000);
  const { status } = await client.resource(kinds.Deployment).get('web', { namespace: 'default' });
  expect(status).toMatchObject({ readyReplicas: 2, unavailableReplicas: 1 });
  expect((await looks()) - before).toBe(0);
  await plane.stop();
  await server.close();
});
