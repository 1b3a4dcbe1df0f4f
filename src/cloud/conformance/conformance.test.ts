// SPDX-License-Identifier: Apache-2.0
// The suite itself: a provider that keeps the contract passes all of it, and each way to break the contract is caught by
// the case that is there for it.
import { describe, expect, test } from 'vitest';
import { labels } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import { InsufficientCapacityError, NodeClaimNotFoundError } from '../errors.ts';
import type { CloudProvider, Instance, InstanceType } from '../provider.ts';
import { conformanceCases, runConformance, testConformance } from './run.ts';
import { type SmallCloud, SmallHarness, SmallProvider } from './testing/small-cloud.ts';

testConformance('a sound provider', async () => new SmallHarness(), { describe, test: test as never });

/** The sound provider with one part replaced. */
function broken(replace: (sound: SmallProvider, cloud: SmallCloud) => Partial<SmallProvider & CloudProvider>) {
  return async () =>
    new SmallHarness((cloud, state) => {
      const replaced = replace(new SmallProvider(cloud, state), cloud);
      return Object.assign(new SmallProvider(cloud, state), replaced);
    });
}

let launches = 0;
const withTypes = (change: (type: InstanceType) => InstanceType) =>
  broken((sound) => ({ types: sound.types.map(change) }));

/** A defect, and cases that must find it. Others may, too. */
const mutants: Readonly<Record<string, { harness: ReturnType<typeof broken>; caughtBy: readonly string[] }>> = {
  'launches twice for the same NodeClaim': {
    harness: broken(() => ({ tokenOf: () => `token-${++launches}` })),
    caughtBy: [
      'create/again',
      'create/at-once',
      'create/after-crash',
      'create/answer-lost',
      'create/crash-in-the-middle',
    ],
  },
  'takes the name of a NodeClaim for its identity': {
    harness: broken(() => ({ tokenOf: ({ metadata }: NodeClaim) => metadata.name ?? '' })),
    caughtBy: ['create/same-name'],
  },
  'remembers launches only in memory': {
    harness: broken((sound) => {
      const made = new Map<string, Promise<Instance>>();
      const forgetful = Object.assign(sound, { tokenOf: () => `token-${++launches}` });
      return {
        create: (claim, signal) => {
          const key = claim.metadata.uid ?? '';
          const known = made.get(key) ?? forgetful.create(claim, signal);
          made.set(key, known);
          known.catch(() => made.delete(key));
          return known;
        },
      };
    }),
    caughtBy: ['create/after-crash'],
  },
  'cannot launch without a NodePool': {
    harness: broken((sound) => ({
      create: (claim, signal) => {
        if (!claim.metadata.labels?.[labels.nodePool]) return Promise.reject(new Error('no NodePool'));
        return sound.create(claim, signal);
      },
    })),
    caughtBy: ['create/standalone', 'is-drifted/standalone'],
  },
  'takes every failure of a launch for missing capacity': {
    harness: broken(() => ({ launchError: () => new InsufficientCapacityError('no') })),
    caughtBy: ['create/throttled', 'create/unreachable', 'create/failing', 'create/launch-refused'],
  },
  'does not say that it is sold out': {
    harness: broken(() => ({ launchError: (error: unknown) => error })),
    caughtBy: ['create/sold-out', 'create/launch-refused'],
  },
  'launches without looking at the NodeClass': {
    harness: broken(() => ({ nodeClassState: () => 'ready' as const })),
    caughtBy: ['create/node-class-not-ready', 'create/node-class-missing'],
  },
  'changes the NodeClaim it is given': {
    harness: broken((sound) => ({
      create: async (claim, signal) => {
        (claim.metadata as { annotations?: object }).annotations = { launched: 'true' };
        return sound.create(claim, signal);
      },
    })),
    caughtBy: ['create/launches'],
  },
  'launches although it was cancelled': {
    harness: broken((sound) => ({ create: (claim) => sound.create(claim, new AbortController().signal) })),
    caughtBy: ['create/cancelled'],
  },
  'deletes although it was cancelled': {
    harness: broken((sound) => ({ delete: (claim) => sound.delete(claim, new AbortController().signal) })),
    caughtBy: ['delete/cancelled'],
  },
  'cannot be asked to delete again': {
    harness: broken((sound) => ({
      delete: async (claim, signal) => {
        await sound.delete(claim, signal).catch(() => Promise.reject(new Error('InvalidInstanceID')));
      },
    })),
    caughtBy: ['delete/removes', 'delete/again', 'delete/never'],
  },
  'never says that a machine is gone': {
    harness: broken((sound) => ({ delete: (claim, signal) => sound.delete(claim, signal).catch(() => undefined) })),
    caughtBy: ['delete/removes', 'delete/never', 'delete/never-launched'],
  },
  'says that a machine is gone when the cloud cannot be asked': {
    harness: broken((sound) => ({
      delete: (claim, signal) =>
        sound.delete(claim, signal).catch(() => Promise.reject(new NodeClaimNotFoundError('gone'))),
      get: (id, signal) => sound.get(id, signal).catch(() => Promise.reject(new NodeClaimNotFoundError('gone'))),
    })),
    caughtBy: ['delete/throttled', 'delete/failing', 'delete/unreachable', 'get/failing'],
  },
  'deletes nothing and says it is done': {
    harness: broken(() => ({ delete: () => Promise.reject(new NodeClaimNotFoundError('gone')) })),
    caughtBy: ['delete/removes', 'delete/truthful'],
  },
  'deletes everything': {
    harness: broken((sound, cloud) => ({
      delete: async (claim, signal) => {
        await sound.delete(claim, signal);
        cloud.machines.clear();
      },
    })),
    caughtBy: ['delete/only-this'],
  },
  'needs the NodeClass to delete': {
    harness: broken((sound) => ({
      delete: (claim, signal) =>
        claim.spec.nodeClassRef.name === 'missing'
          ? Promise.reject(new Error('NodeClass not found'))
          : sound.delete(claim, signal),
    })),
    caughtBy: ['delete/node-class-gone'],
  },
  'fails with an error of its own for a machine that is gone': {
    harness: broken((sound) => ({
      get: (id, signal) => sound.get(id, signal).catch(() => Promise.reject(new Error('404'))),
    })),
    caughtBy: ['get/gone', 'get/foreign'],
  },
  'lists nothing when the cloud cannot be asked': {
    harness: broken((sound) => ({ list: (signal) => sound.list(signal).catch(() => []) })),
    caughtBy: ['list/failing', 'list/throttled'],
  },
  'lists a machine twice': {
    harness: broken((sound) => ({
      list: async (signal) => {
        const all = await sound.list(signal);
        return [...all, ...all.slice(0, 1)];
      },
    })),
    caughtBy: ['list/complete'],
  },
  'lists only the first page': {
    harness: broken((sound) => ({ list: async (signal) => (await sound.list(signal)).slice(0, 2) })),
    caughtBy: ['list/complete'],
  },
  'does not say whose machine it is': {
    harness: broken((sound) => ({
      instance: (id, machine) => {
        const { nodeClaim: _, ...instance } = sound.instance(id, machine);
        return instance;
      },
    })),
    caughtBy: ['create/knows-its-claim', 'get/agrees'],
  },
  'sells types with a label that nobody can ask for': {
    harness: withTypes((type) => ({
      ...type,
      requirements: [...type.requirements, { key: 'other.example.com/family', operator: 'In', values: ['x'] }],
    })),
    caughtBy: ['get-instance-types/own-labels'],
  },
  'does not say the architecture of its types': {
    harness: withTypes((type) => ({
      ...type,
      requirements: type.requirements.filter(({ key }) => key !== labels.arch),
    })),
    caughtBy: ['get-instance-types/well-known-labels'],
  },
  'has prices that are none': {
    harness: withTypes((type) => ({
      ...type,
      offerings: [...type.offerings.slice(1), { ...type.offerings[0]!, price: Number.NaN }],
    })),
    caughtBy: ['get-instance-types/offerings'],
  },
  'hides that it does not know a price': {
    harness: withTypes((type) => ({
      ...type,
      offerings: [...type.offerings.slice(1), { ...type.offerings[0]!, price: 0 }],
    })),
    caughtBy: ['get-instance-types/offerings'],
  },
  'offers the same twice': {
    harness: withTypes((type) => ({ ...type, offerings: [...type.offerings, type.offerings[0]!] })),
    caughtBy: ['get-instance-types/offerings'],
  },
  'sells machines without room for pods': {
    harness: withTypes((type) => ({ ...type, overhead: { kubeReserved: { memory: '1Ti' } } })),
    caughtBy: ['get-instance-types/capacity'],
  },
  'shuffles its list': {
    harness: broken((sound) => {
      let turn = 0;
      return { instanceTypes: () => Promise.resolve(turn++ % 2 ? sound.types : sound.types.toReversed()) };
    }),
    caughtBy: ['get-instance-types/stable'],
  },
  'leaves out what is sold out': {
    harness: broken((sound, cloud) => ({
      instanceTypes: () => Promise.resolve(cloud.fault === 'sold out' ? [] : sound.types),
    })),
    caughtBy: ['get-instance-types/sold-out'],
  },
  'sells nothing while the cloud cannot be asked': {
    harness: broken((sound, cloud) => ({
      instanceTypes: () => Promise.resolve(cloud.fault === 'failing' ? [] : sound.types),
    })),
    caughtBy: ['get-instance-types/cloud-failing'],
  },
  'finds drift in every new machine': {
    harness: broken(() => ({ driftReason: () => Promise.resolve('ImageDrifted') })),
    caughtBy: ['is-drifted/fresh'],
  },
  'never finds drift': {
    harness: broken(() => ({ driftReason: () => Promise.resolve('') })),
    caughtBy: ['is-drifted/drifted'],
  },
  'finds drift when the cloud cannot be asked': {
    harness: broken((sound) => ({
      driftReason: (claim, signal) => sound.driftReason(claim, signal).catch(() => 'Unknown'),
    })),
    caughtBy: ['is-drifted/failing'],
  },
  'repairs at once': {
    harness: broken(() => ({
      repairPolicies: [{ conditionType: 'Ready', conditionStatus: 'Unknown' as const, tolerationMs: 0 }],
    })),
    caughtBy: ['repair-policies/sane'],
  },
  'has a hook that says neither yes nor when': {
    harness: broken(() => ({
      registrationHooks: [{ name: 'hook', registered: () => Promise.resolve({ requeueAfterMs: 0 }) }],
    })),
    caughtBy: ['registration-hooks/answer'],
  },
  "takes one of the core's disruption reasons": {
    harness: broken(() => ({ disruptionReasons: ['Drifted'] })),
    caughtBy: ['identity/disruption-reasons'],
  },
};

describe('a provider that', () => {
  test.each(Object.entries(mutants))('%s does not pass', async (_name, { harness, caughtBy }) => {
    const failed = (await runConformance(harness)).filter(({ outcome }) => outcome === 'failed').map(({ id }) => id);
    expect(failed).toEqual(expect.arrayContaining([...caughtBy]));
  });
});

test('every case has an id of its own', () => {
  expect(new Set(conformanceCases.map(({ id }) => id)).size).toBe(conformanceCases.length);
});
