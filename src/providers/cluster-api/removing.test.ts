// SPDX-License-Identifier: Apache-2.0
// From a Machine to nothing, over the model of Cluster API. Where a test stands for a mark of the specification it
// is named by it.
import { afterEach, describe, expect, test } from 'vitest';
import { isNodeClaimNotFound } from '../../cloud/errors.ts';
import { isWatchStream, type Transport } from '../../kube/transport.ts';
import { capi } from './names.ts';
import { CapiWorld, failure, type WorldOptions } from './testing/world.ts';

let w: CapiWorld;
afterEach(() => w.stop());

async function world(options?: WorldOptions): Promise<CapiWorld> {
  w = await CapiWorld.start(options);
  return w;
}

/** Changes of Machines are not told for as long as it is so. */
function lateMachines(transport: Transport, isLate: () => boolean): Transport {
  return {
    request: (request) => transport.request(request),
    close: () => transport.close(),
    watch: async (request) => {
      const stream = await transport.watch(request);
      if (!isWatchStream(stream) || !request.path.endsWith('/machines')) return stream;
      return {
        close: () => stream.close(),
        async *[Symbol.asyncIterator]() {
          for await (const event of stream) {
            while (isLate()) await w.clock.sleep(1000);
            yield event;
          }
        },
      };
    },
  };
}

describe('removing', () => {
  async function launched(count: number): Promise<Awaited<ReturnType<CapiWorld['launch']>>[]> {
    const claims = await Promise.all(Array.from({ length: count }, (_, i) => w.claim(`c${i}`)));
    const done = await Promise.all(claims.map((claim) => w.launch(claim)));
    await w.pass(20_000);
    return done;
  }

  test('§6.4 BUG: lowers replicas once, however long Cluster API stands still', async () => {
    await world();
    await w.running('md', 1);
    const [a, b] = await launched(2);
    await w.stopManagers();
    for (let i = 0; i < 20; i++) {
      await w.finish(w.provider.delete(a!, w.signal));
      await w.pass(5000);
    }
    expect(await w.replicas('md')).toBe(2);
    await w.startManagers();
    await w.remove(a!);
    const left = await w.machines();
    expect(left).toHaveLength(2);
    expect(left.map(({ spec }) => spec?.providerID)).toContain(b?.status?.providerID);
  });

  test('lowers replicas once although Machines are told of late', async () => {
    let isLate = false;
    await world({ door: (transport) => lateMachines(transport, () => isLate) });
    await w.running('md', 1);
    const [a, b] = await launched(2);
    await w.stopManagers();
    isLate = true;
    for (let i = 0; i < 3; i++) await w.finish(w.provider.delete(a!, w.signal));
    expect(await w.replicas('md')).toBe(2);
    isLate = false;
    await w.startManagers();
    await w.remove(a!);
    expect((await w.machines()).map(({ spec }) => spec?.providerID)).toContain(b?.status?.providerID);
  });

  test('takes the right Machine out of many, all at once', async () => {
    await world();
    await w.running('md', 3);
    const claims = await launched(6);
    const writes = w.writes.length;
    await Promise.all(claims.slice(0, 4).map((claim) => w.remove(claim)));
    expect(await w.replicas('md')).toBe(5);
    const left = (await w.machines()).map(({ spec }) => spec?.providerID);
    expect(left).toHaveLength(5);
    for (const claim of claims.slice(4)) expect(left).toContain(claim.status?.providerID);
    // Four marks and one write to the member.
    expect(w.writes.length - writes).toBe(5);
  });

  test('goes on after a crash between the mark and the replicas', async () => {
    await world();
    await w.member('md');
    await w.pass();
    const [claim] = await launched(1);
    let member = 0;
    w.fault = ({ path }) =>
      path.includes('/machinedeployments/') && member++ < 1 ? { status: 500, body: 'no' } : undefined;
    expect(await failure(w.finish(w.provider.delete(claim!, w.signal)))).toBeDefined();
    await w.restart();
    await w.remove(claim!);
    expect(await w.replicas('md')).toBe(0);
    expect(await w.machines()).toEqual([]);
  });

  test('works while somebody else scales', async () => {
    await world();
    await w.running('md', 2);
    const [a] = await launched(1);
    await w.scale('md', 5);
    await w.remove(a!);
    expect(await w.replicas('md')).toBe(4);
    expect(await w.machines()).toHaveLength(4);
  });

  test('§6.4 TRAP: waits for a rollout instead of lowering on the wrong side of it', async () => {
    await world();
    await w.member('md');
    await w.pass();
    const claims = await launched(3);
    await w.hub
      .resource(w.kinds.machineDeployment)
      .patch('md', { spec: { template: { spec: { version: 'v2' } } } }, { namespace: 'default' });
    await w.pass(3000);
    await w.finish(w.provider.delete(claims[0]!, w.signal));
    expect(await w.replicas('md')).toBe(3);
    await w.pass(120_000);
    // Cluster API has replaced all three; each NodeClaim lost its Machine and gives its place back.
    for (const claim of claims) await w.remove(claim);
    await w.pass(30_000);
    expect(await w.replicas('md')).toBe(0);
    expect(await w.machines()).toEqual([]);
  });

  test('a Machine that was deleted under us is replaced by Cluster API; the replacement goes, nobody else', async () => {
    await world();
    await w.running('md', 2);
    const base = (await w.machines()).map(({ metadata }) => metadata.name);
    const [a, b] = await launched(2);
    const machine = (await w.machines()).find(({ spec }) => spec?.providerID === a?.status?.providerID);
    await w.hub.resource(w.kinds.machine).delete(machine!.metadata.name!, { namespace: 'default' });
    await w.pass(60_000);
    expect(await w.machines()).toHaveLength(4);
    expect(await w.remove(a!)).toBe(1);
    await w.pass(30_000);
    expect(await w.replicas('md')).toBe(3);
    const left = await w.machines();
    expect(left.map(({ metadata }) => metadata.name)).toEqual(expect.arrayContaining(base));
    expect(left.map(({ spec }) => spec?.providerID)).toContain(b?.status?.providerID);
  });

  test('when the wrong Machine was chosen, notices and removes the right one', async () => {
    await world();
    await w.running('md', 1);
    const [a] = await launched(1);
    await w.stopManagers();
    await w.finish(w.provider.delete(a!, w.signal));
    expect(await w.replicas('md')).toBe(1);
    // Somebody deletes the stranger by hand before Cluster API acts: the count is right, the Machine is not.
    const stranger = (await w.machines()).find(({ spec }) => spec?.providerID !== a?.status?.providerID);
    await w.hub
      .resource(w.kinds.machine)
      .patch(stranger!.metadata.name!, { metadata: { finalizers: [] } }, { namespace: 'default' });
    await w.hub.resource(w.kinds.machine).delete(stranger!.metadata.name!, { namespace: 'default' });
    const [set] = (await w.hub.resource(w.kinds.machineSet).list()).items;
    const lowered = { spec: { replicas: 1 } };
    await w.hub.resource(w.kinds.machineSet).patch(set!.metadata.name!, lowered, { namespace: 'default' });
    await w.startManagers();
    await w.pass(5000);
    await w.remove(a!);
    await w.pass(60_000);
    expect(await w.replicas('md')).toBe(1);
    const left = await w.machines();
    expect(left).toHaveLength(1);
    expect(left[0]?.spec?.providerID).not.toBe(a?.status?.providerID);
  });

  test('§2 GAP: keeps the minimum size; the Machine goes all the same', async () => {
    await world();
    await w.member('md', { annotations: { [capi.minSize]: '1' } });
    await w.pass();
    const [a] = await launched(1);
    await w.remove(a!);
    await w.pass(60_000);
    expect(await w.replicas('md')).toBe(1);
    expect((await w.machines()).map(({ spec }) => spec?.providerID)).not.toContain(a?.status?.providerID);
  });

  test('counts once although the record was taken off the member', async () => {
    await world();
    await w.running('md', 1);
    const [a] = await launched(1);
    const object = await w.hub.resource(w.kinds.machineDeployment).get('md', { namespace: 'default' });
    const key = Object.keys(object.metadata.annotations!).find((name) => name.includes('/nodeclaims.'))!;
    await w.hub
      .resource(w.kinds.machineDeployment)
      .patch('md', { metadata: { annotations: { [key]: null } } }, { namespace: 'default' });
    await w.pass(100);
    await w.remove(a!);
    expect(await w.replicas('md')).toBe(1);
    expect(await w.machines()).toHaveLength(1);
  });

  test("never touches a stranger's Machine", async () => {
    await world();
    await w.running('md', 1);
    const [stranger] = await w.machines();
    const claim = await w.claim('a');
    const wrong = { ...claim, status: { providerID: stranger!.spec!.providerID! } };
    expect(isNodeClaimNotFound(await failure(w.finish(w.provider.delete(wrong, w.signal))))).toBe(true);
    expect(isNodeClaimNotFound(await failure(w.provider.get(stranger!.spec!.providerID!, w.signal)))).toBe(true);
    expect(w.writes).toEqual([]);
  });

  test('a Machine whose MachineDeployment is gone is deleted itself', async () => {
    await world();
    await w.member('md');
    await w.pass();
    const [a] = await launched(1);
    await w.stopManagers();
    await w.hub.resource(w.kinds.machineDeployment).delete('md', { namespace: 'default', propagationPolicy: 'Orphan' });
    await w.pass();
    await w.startManagers();
    await w.remove(a!);
    expect(isNodeClaimNotFound(await failure(w.provider.get(a!.status!.providerID!, w.signal)))).toBe(true);
  });
});
