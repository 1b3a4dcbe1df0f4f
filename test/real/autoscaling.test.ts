// SPDX-License-Identifier: Apache-2.0
// The main job as a newcomer sees it: `karpenter up`, the real kubectl, pods that need machines, machines that go again.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startUp, type UpCluster } from './embedded-cluster.ts';

let up: UpCluster;
beforeAll(async () => {
  up = await startUp();
});
afterAll(() => up?.stop());

const kubectl = (line: string): Promise<string> => up.kubectl(line);

const count = async (what: string): Promise<number> =>
  (await kubectl(`get ${what} -o name`)).split('\n').filter(Boolean).length;

test('two hundred replicas get the machines they need, and the machines go with them', async () => {
  expect(await kubectl('get nodepool kwok -o jsonpath={.metadata.name}')).toBe('kwok');
  const following = up.start('logs -f -n kube-system -l app.kubernetes.io/name=karpenter -c controller');
  await kubectl('create deployment nginx --replicas=200 --image=nginx');
  await kubectl('rollout status deployment/nginx --timeout=60s');
  const claims = await count('nodeclaims');
  expect(claims).toBeGreaterThan(0);
  expect(await count('nodes')).toBe(2 + claims);
  await kubectl('wait --for=condition=Ready nodeclaim --all --timeout=20s');
  expect(await kubectl('get nodeclaims')).toMatch(
    /TYPE\s+CAPACITY\s+ZONE\s+NODE\s+READY[^\n]*\n\S+\s+\S+-linux\s+spot\s+test-zone-/,
  );
  const log = await kubectl('logs -n kube-system -l app.kubernetes.io/name=karpenter -c controller --tail=-1');
  for (const message of [
    'found provisionable pod(s)',
    'created nodeclaim',
    'launched nodeclaim',
    'initialized nodeclaim',
  ]) {
    expect(log).toContain(`"message":"${message}"`);
    // Who follows sees it as it comes.
    await following.until(() => following.output.includes(`"message":"${message}"`), 10_000);
  }
  await kubectl('delete deployment nginx');
  await up.program.until(async () => (await count('nodeclaims')) === 0, 90_000);
  expect(await count('nodes')).toBe(2);
  await following.until(() => following.output.includes('"message":"deleted nodeclaim"'), 10_000);
  await following.stop();
});

test('a container that nothing runs behind says so when it is asked for its log', async () => {
  await kubectl('run quiet --image=pause');
  await kubectl('wait --for=condition=Ready pod/quiet --timeout=20s');
  const { code, stderr } = await up.attempt('logs quiet');
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining('(NotImplemented): container "quiet" in pod "quiet" has no log'),
  ]);
  await kubectl('delete pod quiet --now');
});

test('a machine that is deleted by hand drains, and its pods find another', async () => {
  await kubectl('create deployment inflate --image=pause --replicas=0');
  await kubectl('set resources deployment inflate --requests=cpu=1');
  await kubectl('scale deployment inflate --replicas=6');
  await kubectl('rollout status deployment/inflate --timeout=60s');
  const [first] = (await kubectl('get nodeclaims -o name')).trim().split('\n');
  await kubectl(`delete ${first} --timeout=60s`);
  await kubectl('rollout status deployment/inflate --timeout=60s');
  expect(await count('nodeclaims')).toBeGreaterThan(0);
  await kubectl('delete deployment inflate');
});
