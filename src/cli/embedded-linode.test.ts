// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { RealClock } from '../base/clock.ts';
import { SystemRandom } from '../base/random.ts';
import { EmbeddedCluster } from '../embedded/cluster.ts';
import { perform } from './demo/perform.ts';
import { startEmbeddedAutoscaler } from './embedded-autoscaler.ts';
import { cloudsNamed } from './embedded-clouds.ts';

test.each([
  ['lke', false],
  ['lke', true],
  ['instance', false],
  ['instance', true],
])(
  'the demo of the guides plays on Linode in mode %s, and leaves nothing (two clusters: %s)',
  async (mode, twoClusters) => {
    const clouds = cloudsNamed('linode', mode);
    const [scenario] = clouds[0]!.scenarios;
    const { signal } = new AbortController();
    const show = (): void => undefined;
    const summary = await perform({ scenario: scenario!, clouds, show, signal, virtual: {}, twoClusters });
    expect(summary).toMatchObject({ succeeded: true, left: { pods: 0, machines: 0, pricePerHour: 0 } });
    // Five plans with one CPU are the cheapest way to five; the guide's six-CPU plan is the dearest that makes sense.
    const paid = summary.bought.reduce((sum, { pricePerHour }) => sum + pricePerHour, 0);
    expect(paid).toBeGreaterThanOrEqual(5 * 0.018 - 1e-9);
    expect(paid).toBeLessThanOrEqual(0.144);
  },
  120_000,
);

test('a mode that nobody knows is refused, with those there are', () => {
  expect(() => cloudsNamed('linode', 'metal')).toThrow('no such mode of linode: metal; there are: lke, instance');
  expect(() => cloudsNamed('kwok', 'lke')).toThrow('there are none');
});

test('with a port, the cloud is open to its own tools: by a token of this run, down to the kubeconfig', async () => {
  const [clock, random] = [new RealClock(), new SystemRandom()];
  const cluster = await EmbeddedCluster.start({ clock, random, port: 0 });
  const log = { write: () => undefined };
  const onFailure = (): void => undefined;
  const clouds = cloudsNamed('linode');
  const autoscaler = await startEmbeddedAutoscaler({ cluster, clock, random, log, clouds, node: 'base-1', onFailure });
  const { LINODE_URL: url, LINODE_TOKEN: token, CLUSTER_NAME: name } = autoscaler.environment;
  const ask = async (path: string, authorization = `Bearer ${token}`): Promise<Response> =>
    fetch(`${url}/v4beta${path}`, { headers: { authorization } });
  const { data } = (await (await ask('/lke/clusters')).json()) as { data: { id: number; label: string }[] };
  const { kubeconfig } = (await (await ask(`/lke/clusters/${data[0]!.id}/kubeconfig`)).json()) as {
    kubeconfig: string;
  };
  const stranger = await ask('/lke/clusters', 'Bearer linode-token');
  await autoscaler.stop();
  await cluster.close();
  expect(data.map(({ label }) => label)).toEqual([name]);
  expect(Buffer.from(kubeconfig, 'base64').toString()).toContain(cluster.url);
  expect(stranger.status).toBe(401);
}, 60_000);
