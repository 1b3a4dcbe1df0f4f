// SPDX-License-Identifier: Apache-2.0
// What a cloud sells: the scheduler believes every word of it.
import assert from 'node:assert/strict';
import { capacityTypes, labels } from '../../../api/labels.ts';
import { deepEqual } from '../../../base/freeze.ts';
import { Quantity } from '../../../kube/quantity.ts';
import { Requirement } from '../../../scheduling/requirements.ts';
import type { InstanceType } from '../../provider.ts';
import { type ConformanceCase, casesOf } from '../case.ts';
import { capacityTypeOf, expectTemporary, valueOf } from '../subject.ts';

/** What pods select machines by on every cloud: a type that leaves one out cannot be selected by it. */
const defined = [labels.instanceType, labels.arch, labels.os, labels.zone, labels.capacityType];

function positive(text: string | number | undefined, what: string): Quantity {
  const amount = Quantity.tryParse(text);
  assert.ok(amount && amount.sign() > 0, `${what} must be a positive quantity, not ${text}`);
  return amount;
}

function overheadOf({ overhead = {} }: InstanceType, resource: string): Quantity {
  let sum = Quantity.zero;
  for (const part of [overhead.kubeReserved, overhead.systemReserved, overhead.evictionThreshold])
    if (part?.[resource] !== undefined) sum = sum.add(Quantity.parse(part[resource]));
  return sum;
}

function expectSaneOfferings(type: InstanceType, reservationLabel: string | undefined): void {
  const seen = new Set<string>();
  for (const offering of type.offerings) {
    const zone = valueOf(offering.requirements, labels.zone);
    const capacityType = capacityTypeOf(offering);
    assert.ok(
      Object.values<string>(capacityTypes).includes(capacityType),
      `${type.name}: ${capacityType} is no capacity type`,
    );
    assert.ok(
      Number.isFinite(offering.price) && offering.price >= 0,
      `${type.name} in ${zone}: the price ${offering.price}`,
    );
    assert.ok(
      offering.price > 0 || offering.estimated,
      `${type.name} in ${zone}: a price that is not known must be marked as an estimate`,
    );
    let reservation = '';
    if (capacityType === capacityTypes.reserved) {
      assert.ok(reservationLabel, `${type.name}: reserved offerings need the provider's reservationLabel`);
      reservation = valueOf(offering.requirements, reservationLabel);
      const left = offering.reservationCapacity;
      assert.ok(
        left !== undefined && Number.isInteger(left) && left >= 0,
        `${type.name}: what is left of ${reservation}`,
      );
    }
    const key = `${zone} ${capacityType} ${reservation}`;
    assert.ok(!seen.has(key), `${type.name} is offered twice as ${key}`);
    seen.add(key);
    for (const own of offering.requirements) {
      const ofType = type.requirements.find(({ key: name }) => name === own.key);
      const allowed = ofType && Requirement.parse(ofType);
      for (const value of own.values ?? [])
        assert.ok(
          !allowed || allowed.has(value),
          `${type.name}: an offering says ${own.key}=${value}, its type does not`,
        );
    }
  }
}

export const instanceTypeCases: readonly ConformanceCase[] = casesOf('GetInstanceTypes', {
  names: [
    'gives types that are told apart by their names',
    async (subject) => {
      const types = await subject.types();
      assert.ok(types.length > 0, 'the cloud must sell something');
      assert.equal(new Set(types.map(({ name }) => name)).size, types.length, 'names must differ');
    },
  ],
  'well-known-labels': [
    'defines what pods select machines by on every cloud',
    async (subject) => {
      for (const type of await subject.types()) {
        for (const key of defined)
          assert.ok(
            type.requirements.some((requirement) => requirement.key === key),
            `${type.name} must say its ${key}`,
          );
        assert.equal(valueOf(type.requirements, labels.instanceType), type.name);
      }
    },
  ],
  'own-labels': [
    "uses only labels of this provider's set",
    async (subject) => {
      const { wellKnown } = subject.provider.labels;
      for (const type of await subject.types())
        for (const { key } of [type, ...type.offerings].flatMap(({ requirements }) => requirements))
          assert.ok(
            wellKnown.has(key),
            `${type.name}: no pod can ask for ${key}, it is not well known to the provider`,
          );
    },
  ],
  offerings: [
    'gives each type offerings with one zone, one capacity type and a price, each once',
    async (subject) => {
      for (const type of await subject.types()) expectSaneOfferings(type, subject.provider.reservationLabel);
    },
  ],
  capacity: [
    'says what a machine has, and less of it that the system keeps',
    async (subject) => {
      for (const type of await subject.types()) {
        for (const resource of ['cpu', 'memory', 'pods']) {
          const has = positive(type.capacity[resource], `${type.name}: ${resource}`);
          assert.ok(overheadOf(type, resource).cmp(has) < 0, `${type.name}: nothing of ${resource} is left for pods`);
        }
      }
    },
  ],
  stable: [
    'gives the same answer to the same question',
    async (subject) => {
      assert.ok(deepEqual(await subject.types(), await subject.types()), 'two answers differ');
    },
  ],
  'sold-out': [
    'still gives the types that cannot be had right now',
    async (subject) => {
      const names = (await subject.types()).map(({ name }) => name).sort();
      const pool = await subject.pool();
      const during = await subject.during('sold out', () => subject.provider.instanceTypes(pool, subject.signal));
      assert.deepEqual(during.map(({ name }) => name).sort(), names);
    },
  ],
  'cloud-failing': [
    'fails, or remembers, when the cloud cannot be asked; it never says that nothing is sold',
    async (subject) => {
      const pool = await subject.pool();
      await subject.crash();
      await subject.during('failing', async () => {
        const types: { some?: readonly InstanceType[] } = {};
        const failure = await subject.failureOf(async () => {
          types.some = await subject.provider.instanceTypes(pool, subject.signal);
        });
        if (failure === undefined) assert.ok(types.some!.length > 0, 'an empty list would make every node drift');
        else expectTemporary(failure, 'GetInstanceTypes of a cloud that fails');
      });
    },
  ],
});
