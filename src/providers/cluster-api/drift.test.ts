// SPDX-License-Identifier: Apache-2.0
// When a Machine is not what its member would make now, over the model of Cluster API.
import { afterEach, describe, expect, test } from 'vitest';
import { capacityAnnotations, memberLabel } from './names.ts';
import { CapiWorld, type WorldOptions } from './testing/world.ts';

let w: CapiWorld;
afterEach(() => w.stop());

async function world(options?: WorldOptions): Promise<CapiWorld> {
  w = await CapiWorld.start(options);
  return w;
}

describe('drift', () => {
  const change = (spec: object): Promise<unknown> =>
    w.hub.resource(w.kinds.machineDeployment).patch('md', { spec }, { namespace: 'default' });

  async function one(strategy: string): Promise<Awaited<ReturnType<CapiWorld['launch']>>> {
    await w.member('md', { spec: { strategy: { type: strategy } } });
    await w.pass();
    const claim = await w.launch(await w.claim('a'));
    await w.pass(20_000);
    expect(await w.finish(w.provider.driftReason(claim, w.signal))).toBe('');
    return claim;
  }

  test.each([
    ['InfrastructureTemplateDrifted', { infrastructureRef: { name: 'other' } }],
    ['BootstrapTemplateDrifted', { bootstrap: { dataSecretName: 'other' } }],
    ['VersionDrifted', { version: 'v1.36.1' }],
    ['FailureDomainDrifted', { failureDomain: 'elsewhere' }],
  ])('§6.9 GAP: %s where Cluster API leaves replacing to others', async (reason, spec) => {
    await world();
    const claim = await one('OnDelete');
    await change({ template: { spec } });
    await w.pass();
    expect(await w.finish(w.provider.driftReason(claim, w.signal))).toBe(reason);
  });

  test('§15 (61): is left to Cluster API where it rolls out by itself', async () => {
    await world();
    const claim = await one('RollingUpdate');
    await change({ template: { spec: { version: 'v2' } } });
    await w.pass(100);
    expect(await w.finish(w.provider.driftReason(claim, w.signal))).toBe('');
  });

  test('is left to it always when the NodeClass says so', async () => {
    await world({ nodeClass: { drift: 'Defer' } });
    const claim = await one('OnDelete');
    await change({ template: { spec: { version: 'v2' } } });
    await w.pass();
    expect(await w.finish(w.provider.driftReason(claim, w.signal))).toBe('');
  });

  test('comes from a template that was changed under its name: user data, kubelet settings', async () => {
    await world();
    const template = {
      apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta1',
      kind: 'EmbeddedMachineTemplate',
      metadata: { name: 'md-template', namespace: 'default' },
      spec: { template: { spec: { disk: '20Gi' } } },
    };
    const type = {
      group: 'infrastructure.cluster.x-k8s.io',
      version: 'v1beta1',
      kind: 'EmbeddedMachineTemplate',
      plural: 'embeddedmachinetemplates',
      namespaced: true,
    };
    await w.hub.resource(type).create(template as never);
    const claim = await one('RollingUpdate');
    await w.hub
      .resource(type)
      .patch('md-template', { spec: { template: { spec: { disk: '40Gi' } } } }, { namespace: 'default' });
    await w.pass(61_000);
    expect(await w.finish(w.provider.driftReason(claim, w.signal))).toBe('TemplateContentDrifted');
  });

  test('comes from labels that the member tells otherwise now; those of the template change in place', async () => {
    await world();
    const told = (labels: string): Promise<unknown> =>
      w.hub
        .resource(w.kinds.machineDeployment)
        .patch('md', { metadata: { annotations: { [capacityAnnotations.labels]: labels } } }, { namespace: 'default' });
    const before = 'kubernetes.io/arch=amd64,topology.kubernetes.io/zone=zone-a';
    const claim = await one('RollingUpdate');
    await change({ template: { metadata: { labels: { 'node.cluster.x-k8s.io/team': 'red' } } } });
    await told(`${before},node.kubernetes.io/instance-type=large`);
    await w.pass(100);
    expect(await w.finish(w.provider.driftReason(claim, w.signal))).toBe('');
    await told(`${before},example.com/disk=fast`);
    await w.pass(100);
    expect(await w.finish(w.provider.driftReason(claim, w.signal))).toBe('LabelsDrifted');
  });

  test('comes from a member that the NodeClass no longer selects', async () => {
    await world();
    const claim = await one('RollingUpdate');
    await w.hub
      .resource(w.kinds.machineDeployment)
      .patch('md', { metadata: { labels: { [memberLabel]: null } } }, { namespace: 'default' });
    await w.pass(100);
    expect(await w.finish(w.provider.driftReason(claim, w.signal))).toBe('MemberDrifted');
  });
});
