// SPDX-License-Identifier: Apache-2.0
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { clusterApiNodeClassKind } from '../api/cluster-api-node-class.ts';
import { getCondition } from '../api/conditions.ts';
import { crdOf } from '../api/kind.ts';
import { commonLabelSet, labels } from '../api/labels.ts';
import { nodePool } from '../api/testing/objects.ts';
import type { CloudProvider } from '../cloud/provider.ts';
import { ControllerContext } from '../controllers/nodeclaim/context.ts';
import { nodePoolControllers } from '../controllers/nodepool/index.ts';
import { type TestWorld, testWorld } from '../controllers/testing/world.ts';
import { kinds } from '../kube/kinds.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '../kube/object.ts';
import { defaultSettings } from '../runtime/settings.ts';
import { type KnownProvider, knownProviders, type ProviderParts, type ProviderSettings } from './known-providers.ts';
import { programSettings } from './program-settings.ts';
import { loadProviders } from './providers.ts';

const kwok = knownProviders.filter(({ name }) => name === 'kwok');
/** Borrowed: any kind that has a CRD of its own will do. */
const nodeClass = clusterApiNodeClassKind as ResourceType<KubeObject>;
const crdName = `${nodeClass.plural}.${nodeClass.group}`;
const refOfMoon = { group: nodeClass.group, kind: nodeClass.kind, name: 'crater' };
const crater = { apiVersion: apiVersionOf(nodeClass), kind: nodeClass.kind, metadata: { name: 'crater' } };

/** A cloud that notes what is asked of it. */
function moon(options: { unconfigured?: string; shares?: readonly ['clusterName'] } = {}) {
  const asked: string[] = [];
  const noted =
    <T>(what: string, answer: T) =>
    (): Promise<T> => {
      asked.push(what);
      return Promise.resolve(answer);
    };
  const cloud: CloudProvider = {
    name: 'moon',
    nodeClasses: [nodeClass],
    labels: commonLabelSet,
    repairPolicies: [],
    create: () => Promise.reject(new Error('not in this test')),
    delete: noted('delete', undefined),
    get: () => Promise.reject(new Error('not in this test')),
    list: noted('list', []),
    instanceTypes: noted('instanceTypes', []),
    driftReason: noted('driftReason', ''),
  };
  let seen: ProviderSettings | undefined;
  const known: KnownProvider = {
    name: 'moon',
    nodeClass,
    ...(options.shares ? { shares: options.shares } : {}),
    unconfigured: () => options.unconfigured,
    load: ({ settings }) => {
      seen = settings;
      const runnable = { name: 'moon.prices', start: noted('prices', undefined) };
      return Promise.resolve({ provider: cloud, runnables: [runnable] });
    },
  };
  return {
    known,
    asked,
    get settings() {
      return seen;
    },
  };
}

let world: TestWorld;
beforeEach(async () => {
  world = await testWorld();
});
afterEach(() => world.close());

const partsWith = (settings: Partial<ProviderSettings> = {}): ProviderParts => ({
  clusters: world.clusters,
  clock: world.clock,
  log: world.log,
  metrics: world.metrics,
  settings: defaultSettings(programSettings, settings),
});

const removeCrd = async (): Promise<void> => {
  await world.karpenter.resource(kinds.CustomResourceDefinition).delete(crdName);
  await world.settle();
};
const installCrd = async (): Promise<void> => {
  await world.karpenter.resource(kinds.CustomResourceDefinition).create(crdOf(clusterApiNodeClassKind) as never);
  await world.settle();
};

describe('which clouds run', () => {
  test('all that are known, unless some are named', async () => {
    const all = [...kwok, moon().known];
    const names = async (...providers: string[]) =>
      (await loadProviders(partsWith({ providers }), all)).registry.providers.map(({ name }) => name);
    expect(await names()).toEqual(['kwok', 'moon']);
    expect(await names('moon')).toEqual(['moon']);
  });

  test('a name that nobody has is an error that says which there are', async () => {
    const loading = loadProviders(partsWith({ providers: ['mars'] }), [...kwok, moon().known]);
    await expect(loading).rejects.toThrow('no such provider: mars; there is kwok, moon');
  });
});

describe('a file of instance types', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'karpenter-types-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const zone = (value: string) => [
    { key: labels.zone, operator: 'In', values: [value] },
    { key: labels.capacityType, operator: 'In', values: ['spot'] },
  ];
  const entry = (name: string, changes: object = {}) => ({
    name,
    architecture: 'amd64',
    operatingSystems: ['linux'],
    resources: { cpu: '4', memory: '8Gi' },
    offerings: [{ Price: 1, Requirements: zone('a') }],
    ...changes,
  });
  const load = (...entries: unknown[]) => {
    const instanceTypesFilePath = join(folder, 'types.json');
    writeFileSync(instanceTypesFilePath, JSON.stringify(entries));
    return loadProviders(partsWith({ instanceTypesFilePath }), kwok);
  };

  test('is sold without its broken entries, each of which has a line in the log', async () => {
    const broken = [entry('x', { offerings: [{ Price: 1, Requirements: [null] }] }), entry('y', { resources: {} }), 7];
    const { registry } = await load(entry('good'), ...broken);
    const sold = await registry.providers[0]!.instanceTypes(nodePool(), new AbortController().signal);
    expect(sold.map(({ name }) => name)).toEqual(['good']);
    const told = world.log.lines.filter(({ message }) => message === 'ignoring an instance type');
    expect(told.map(({ level, fields }) => [level, fields['problem']])).toEqual([
      ['error', '[1] x: offerings[0]: requirements must be a list of objects'],
      ['error', '[2] y: resources.cpu is missing'],
      ['error', '[3]: expected an object'],
    ]);
  });

  test('in which nothing can be used is an error that says why', async () => {
    await expect(load(entry(''))).rejects.toThrow('types.json: no usable instance type: [0] : name is missing');
  });
});

describe('a cloud whose NodeClass is not installed', () => {
  test('is asked nothing until it is, and then begins without a restart', async () => {
    await removeCrd();
    const { known, asked } = moon();
    const { registry, runnables } = await loadProviders(partsWith(), [known]);
    world.run(...runnables);
    expect(await registry.providers[0]!.list(world.signal)).toEqual([]);
    await world.advance(60_000);
    expect(asked).toEqual([]);
    expect(world.log.messages()).toContain('provider waits for its NodeClass to be installed');

    await installCrd();
    await world.advance(10_000);
    expect(asked).toEqual(['prices']);
    await registry.providers[0]!.list(world.signal);
    expect(asked).toEqual(['prices', 'list']);
  });
});

test('an API server that does not answer says nothing about what is installed', async () => {
  const { known, asked } = moon();
  const { runnables } = await loadProviders(partsWith(), [known]);
  world.doors.karpenter.failAll({ status: 500, reason: 'InternalError' });
  world.run(...runnables);
  await world.advance(60_000);
  expect(asked).toEqual([]);
  expect(world.log.messages()).not.toContain('provider waits for its NodeClass to be installed');
  world.doors.karpenter.failAll(undefined);
  await world.advance(60_000);
  expect(asked).toEqual(['prices']);
});

describe('a cloud without credentials', () => {
  const problem = 'MOON_TOKEN is not set';

  test('says so on its NodeClasses and in the log, and its NodePools are not ready; others go on', async () => {
    const { known } = moon({ unconfigured: problem });
    const parts = partsWith();
    const { registry, runnables } = await loadProviders(parts, [...kwok, known]);
    const context = new ControllerContext({ ...parts, settings: world.settings, registry, state: world.state });
    world.run(...runnables, ...nodePoolControllers(context));
    await world.karpenter.resource(nodeClass).create(crater);
    await world.apply(nodePool({ name: 'far', template: { nodeClassRef: refOfMoon } }), nodePool({ name: 'near' }));
    await world.settle();
    await world.advance(1000);

    const found = await world.find(nodeClass, 'crater');
    expect(getCondition(found as never, 'Ready')).toMatchObject({
      status: 'False',
      reason: 'ProviderNotConfigured',
      message: problem,
    });
    const [line] = world.log.lines.filter(({ message }) => message === 'provider is not configured');
    expect(line?.fields).toMatchObject({ provider: 'moon', problem });
    const [far, near] = ['far', 'near'].map((name) => context.pools.get(name)!);
    expect(getCondition(far!, 'NodeClassReady')).toMatchObject({ status: 'False', message: problem });
    expect(getCondition(near!, 'NodeClassReady')).toMatchObject({ status: 'True' });
  });

  test('launches nothing, and takes nothing for gone', async () => {
    const { registry } = await loadProviders(partsWith(), [moon({ unconfigured: problem }).known]);
    const [cloud] = registry.providers;
    const claim = {} as never;
    await expect(cloud!.create(claim, world.signal)).rejects.toMatchObject({ code: 'KRP_NODECLASS_NOT_READY' });
    await expect(cloud!.delete(claim, world.signal)).rejects.toMatchObject({ code: 'KRP_PROVIDER_UNCONFIGURED' });
    await expect(cloud!.get('moon://1', world.signal)).rejects.toMatchObject({ code: 'KRP_PROVIDER_UNCONFIGURED' });
    expect(await cloud!.list(world.signal)).toEqual([]);
  });

  test('that was named is warned about at once', async () => {
    const { known } = moon({ unconfigured: problem });
    await loadProviders(partsWith({ providers: ['moon'] }), [known]);
    expect(world.log.messages()).toContain('provider is not configured');
  });
});

test('a cloud sees its own value of a shared setting', async () => {
  const cloud = moon({ shares: ['clusterName'] });
  const settings = { clusterName: 'shared', 'moon.clusterName': 'its own' } as Partial<ProviderSettings>;
  await loadProviders(partsWith(settings), [cloud.known]);
  expect(cloud.settings?.clusterName).toBe('its own');
});
