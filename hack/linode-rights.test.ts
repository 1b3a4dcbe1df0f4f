// SPDX-License-Identifier: Apache-2.0
// The rights that the chart gives for Linode, next to those that its provider uses in the life of a machine: nothing that it
// asks for is missing, and nothing is given that it does not ask for. The other clouds: test/real/least-privilege.test.ts
// and cluster-api.test.ts, on real API servers; for Linode the nightly guide does it there.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { linodeNodeClassKind } from '../src/api/linode-node-class.ts';
import { nodeClaimKind } from '../src/api/node-claim.ts';
import { parseRequest } from '../src/embedded/rest/request.ts';
import { kinds } from '../src/kube/kinds.ts';
import type { KubeObject } from '../src/kube/object.ts';
import type { Transport, TransportRequest } from '../src/kube/transport.ts';
import { LinodeWorld } from '../src/providers/linode/testing/world.ts';
import { grantedBy } from '../test/real/audit.ts';
import { objectsIn } from '../test/real/helm.ts';

/** Given, and not to be seen in a run where nothing goes wrong. */
const reasons: Readonly<Record<string, string>> = {
  'get linodenodeclasses.karpenter.k8s.linode': 'read again after a conflict',
};

class Rights {
  readonly used = new Set<string>();
  readonly through = (transport: Transport): Transport => ({
    request: (request) => transport.request(this.#noted(request)),
    watch: (request) => transport.watch(this.#noted(request, { watch: 'true' })),
    close: () => transport.close(),
  });

  #noted(request: TransportRequest, more: Record<string, string> = {}): TransportRequest {
    const info = parseRequest(request.method, request.path, { ...request.query, ...more });
    const { verb, resource, group, subresource } = info;
    if (info.isResource) this.used.add(`${verb} ${resource}${group && `.${group}`}${subresource && `/${subresource}`}`);
    return request;
  }
}

/** A machine from its launch to its end, under a class that changes and goes. */
async function life(world: LinodeWorld): Promise<void> {
  const claims = world.client.resource(nodeClaimKind);
  const classes = world.client.resource(linodeNodeClassKind);
  await world.pass(60_000);
  const { uid: _, ...metadata } = world.claim('a').metadata;
  const claim = await claims.create({ ...world.claim('a'), metadata });
  // The first launch is not answered, and tried again.
  world.fault = ({ method, path }) =>
    method === 'POST' && /\/(?:pools|instances)$/.test(path) ? 'unreachable' : undefined;
  await world.failure(world.provider.create(claim, world.signal));
  world.fault = () => undefined;
  const { providerID } = await world.create(claim);
  const at = { reason: 'x', message: '', lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 1 };
  const conditions = [{ type: 'Initialized', status: 'True', ...at }];
  await claims.patchStatus('a', { status: { providerID, nodeName: 'a', conditions } } as never);
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' }, spec: { providerID } };
  await world.client.resource(kinds.Node).create(node);
  await world.pass(120_000);
  await classes.patch('default', { spec: { tags: ['changed'] } });
  await world.pass(120_000);
  await world.finish(world.provider.driftReason(claim, world.signal));
  await world.delete(claim, providerID);
  await world.pass(120_000);
  await claims.delete('a');
  await classes.delete('default');
  await world.pass(120_000);
}

test.each([
  ['lke', 'default'],
  ['instance', 'linode'],
] as const)('in mode %s the provider is allowed what it does, and does what it is allowed', async (mode, values) => {
  const rights = new Rights();
  const world = await LinodeWorld.start({ mode, withControllers: true, through: rights.through });
  try {
    await life(world);
  } finally {
    await world.stop();
  }
  const objects = objectsIn(readFileSync(`test/real/golden/${values}.yaml`, 'utf8'));
  const isLinodes = ({ metadata }: KubeObject): boolean => metadata.name?.endsWith('-linode') ?? false;
  const granted = grantedBy(objects.filter((object) => isLinodes(object)));
  const all = grantedBy(objects);
  expect([...rights.used].filter((right) => !all.has(right))).toEqual([]);
  expect([...granted].filter((right) => !rights.used.has(right) && !(right in reasons))).toEqual([]);
  expect(granted.size).toBeGreaterThan(4);
});
