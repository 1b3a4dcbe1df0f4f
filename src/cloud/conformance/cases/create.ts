// SPDX-License-Identifier: Apache-2.0
// Launching: one machine for one NodeClaim, whatever happens on the way.
import assert from 'node:assert/strict';
import { labels } from '../../../api/labels.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import { findCause } from '../../../base/errors.ts';
import { Quantity } from '../../../kube/quantity.ts';
import { CreateError, isInsufficientCapacity, isNodeClassNotReady } from '../../errors.ts';
import type { Instance } from '../../provider.ts';
import { type ConformanceCase, casesOf } from '../case.ts';
import type { CloudFault } from '../harness.ts';
import { expectTemporary, type Subject, valueOf } from '../subject.ts';

function expectSaneInstance(instance: Instance, claim: NodeClaim): void {
  assert.match(instance.providerID, /^[a-z][a-z0-9-]*:\/\/.+$/, 'a provider id starts with a scheme');
  for (const key of [labels.instanceType, labels.zone, labels.capacityType])
    assert.equal(instance.labels[key], valueOf(claim.spec.requirements, key), `the machine's ${key}`);
  for (const resource of ['cpu', 'memory', 'pods']) {
    const has = Quantity.parse(instance.capacity[resource] ?? '');
    const free = Quantity.parse(instance.allocatable[resource] ?? '');
    assert.ok(free.sign() > 0 && free.cmp(has) <= 0, `${resource}: ${free.toString()} for pods of ${has.toString()}`);
  }
}

/** Fails once for a reason that is not the NodeClaim's, and then must give one machine. */
async function retriedAfter(subject: Subject, fault: CloudFault): Promise<void> {
  const claim = await subject.claim();
  const failure = await subject.during(fault, () => subject.failureOf(() => subject.create(claim)));
  if (failure !== undefined) expectTemporary(failure, `Create while the cloud is "${fault}"`);
  const instance = await subject.create(claim);
  await subject.expectMachines(instance);
}

export const createCases: readonly ConformanceCase[] = casesOf('Create', {
  launches: [
    'launches one machine and says what it is',
    async (subject) => {
      const claim = await subject.claim();
      const instance = await subject.create(claim);
      expectSaneInstance(instance, claim);
      await subject.expectMachines(instance);
    },
  ],
  'knows-its-claim': [
    'lets the machine be found by the UID of its NodeClaim',
    async (subject) => {
      const { claim, instance } = await subject.launched();
      await subject.crash();
      const listed = (await subject.provider.list(subject.signal)).find(
        ({ providerID }) => providerID === instance.providerID,
      );
      assert.equal(
        listed?.nodeClaim?.uid,
        claim.metadata.uid,
        'an orphan can only be told by the UID of its NodeClaim',
      );
    },
  ],
  offered: [
    'gives a machine that is on the list of what is sold',
    async (subject) => {
      const { instance } = await subject.launched();
      const type = (await subject.types()).find(({ name }) => name === instance.labels[labels.instanceType]);
      const offered = type?.offerings.some(({ requirements }) =>
        [labels.zone, labels.capacityType].every((key) => valueOf(requirements, key) === instance.labels[key]),
      );
      assert.ok(offered, 'a machine that is not on the list drifts at once');
    },
  ],
  again: [
    'gives the same machine when it is asked again',
    async (subject) => {
      const claim = await subject.claim();
      const first = await subject.create(claim);
      await subject.harness.settle();
      const second = await subject.create(claim);
      assert.equal(second.providerID, first.providerID);
      await subject.expectMachines(first);
    },
  ],
  'at-once': [
    'gives one machine to two calls at the same time',
    async (subject) => {
      const claim = await subject.claim();
      const calls = await Promise.allSettled([subject.create(claim), subject.create(claim)]);
      const made = calls.filter((call) => call.status === 'fulfilled').map(({ value }) => value);
      assert.ok(made.length > 0, 'one of them must succeed');
      await subject.expectMachines(made[0]!);
    },
  ],
  'after-crash': [
    'gives the same machine to the next process, when the one before died without writing it down',
    async (subject) => {
      const claim = await subject.claim();
      const first = await subject.create(claim);
      await subject.crash();
      const second = await subject.create(claim);
      assert.equal(second.providerID, first.providerID);
      await subject.expectMachines(first);
    },
  ],
  'after-crash-settled': [
    'gives the same machine to the next process, also after it has come up',
    async (subject) => {
      const { written, instance } = await subject.launched();
      await subject.crash();
      const again = await subject.create(written);
      assert.equal(again.providerID, instance.providerID);
      await subject.expectMachines(instance);
    },
  ],
  'crash-in-the-middle': [
    'leaves at most one machine behind when the process dies in the middle, and the next one finds it',
    async (subject) => {
      const claim = await subject.claim();
      void subject.create(claim).catch(() => undefined);
      await subject.crash();
      const instance = await subject.create(claim);
      await subject.expectMachines(instance);
    },
  ],
  'answer-lost': [
    'launches once when the answer of the cloud is lost',
    (subject) => retriedAfter(subject, 'answer lost'),
  ],
  'answer-lost-and-crash': [
    'launches once when the answer is lost and the process dies',
    async (subject) => {
      const claim = await subject.claim();
      await subject.during('answer lost', () => subject.failureOf(() => subject.create(claim)));
      await subject.crash();
      await subject.expectMachines(await subject.create(claim));
    },
  ],
  unreachable: ['is tried again when the cloud cannot be reached', (subject) => retriedAfter(subject, 'unreachable')],
  throttled: [
    'is tried again when the cloud refuses for too many requests',
    (subject) => retriedAfter(subject, 'throttled'),
  ],
  failing: ['is tried again when the cloud fails', (subject) => retriedAfter(subject, 'failing')],
  'one-each': [
    'gives different NodeClaims different machines, many at the same time',
    async (subject) => {
      const claims = [];
      for (let i = 0; i < 8; i++) claims.push(await subject.claim());
      const instances = await Promise.all(claims.map((claim) => subject.create(claim)));
      assert.equal(new Set(instances.map(({ providerID }) => providerID)).size, claims.length);
      await subject.expectMachines(...instances);
    },
  ],
  'same-name': [
    'gives another machine to a NodeClaim of the same name and another UID',
    async (subject) => {
      const first = await subject.create(await subject.claim({ name: 'twin' }));
      const second = await subject.create(await subject.claim({ name: 'twin' }));
      assert.notEqual(second.providerID, first.providerID);
      await subject.expectMachines(first, second);
    },
  ],
  standalone: [
    'launches for a NodeClaim that belongs to no NodePool',
    async (subject) => {
      const claim = await subject.claim({ standalone: true });
      const instance = await subject.create(claim);
      expectSaneInstance(instance, claim);
      assert.equal(instance.labels[labels.nodePool], undefined, 'it is of no pool');
      await subject.expectMachines(instance);
    },
  ],
  unsatisfiable: [
    'says InsufficientCapacityError when no offering meets the requirements',
    async (subject) => {
      const claim = await subject.claim({ zone: 'no-such-zone' });
      const failure = await subject.failureOf(() => subject.create(claim));
      assert.ok(isInsufficientCapacity(failure), `not ${String(failure)}`);
      await subject.expectMachines();
    },
  ],
  'sold-out': [
    'says InsufficientCapacityError when the cloud has none left, and launches when it has again',
    async (subject) => {
      const claim = await subject.claim();
      const failure = await subject.during('sold out', () => subject.failureOf(() => subject.create(claim)));
      assert.ok(isInsufficientCapacity(failure), `not ${String(failure)}`);
      await subject.expectMachines();
      await subject.crash();
      await subject.expectMachines(await subject.create(claim));
    },
  ],
  'launch-refused': [
    'says CreateError with a reason for the condition when the cloud refuses the request',
    async (subject) => {
      const claim = await subject.claim();
      const failure = await subject.during('launch refused', () => subject.failureOf(() => subject.create(claim)));
      const error = findCause(failure, CreateError);
      assert.ok(error, `not ${String(failure)}`);
      assert.match(error.conditionReason, /^[A-Z][A-Za-z]*$/);
      assert.notEqual(error.conditionMessage, '');
    },
  ],
  'node-class-missing': [
    'gives up for good when the NodeClass does not exist',
    async (subject) => {
      const claim = await subject.claim({ nodeClass: await subject.harness.nodeClass('missing') });
      const failure = await subject.failureOf(() => subject.create(claim));
      assert.ok(isInsufficientCapacity(failure) || isNodeClassNotReady(failure), `not ${String(failure)}`);
      await subject.expectMachines();
    },
  ],
  'node-class-not-ready': [
    'says NodeClassNotReadyError when the NodeClass is not ready',
    async (subject) => {
      const claim = await subject.claim({ nodeClass: await subject.harness.nodeClass('not ready') });
      const failure = await subject.failureOf(() => subject.create(claim));
      assert.ok(isNodeClassNotReady(failure), `not ${String(failure)}`);
      await subject.expectMachines();
    },
  ],
  cancelled: [
    'ends when it is cancelled before it began, and launches nothing',
    async (subject) => {
      const claim = await subject.claim();
      const failure = await subject.failureOf(() =>
        subject.provider.create(claim, AbortSignal.abort(new Error('cancelled'))),
      );
      assert.ok(failure !== undefined, 'it must fail');
      await subject.expectMachines();
    },
  ],
});
