// SPDX-License-Identifier: Apache-2.0
// Looking at what exists: garbage collection deletes by these answers.
import assert from 'node:assert/strict';
import { labels } from '../../../api/labels.ts';
import { isNodeClaimNotFound } from '../../errors.ts';
import { type ConformanceCase, casesOf } from '../case.ts';
import { expectTemporary } from '../subject.ts';

export const readCases: readonly ConformanceCase[] = [
  ...casesOf('Get', {
    agrees: [
      'gives the machine as Create gave it',
      async (subject) => {
        const { instance, claim } = await subject.launched();
        const found = await subject.provider.get(instance.providerID, subject.signal);
        assert.equal(found.providerID, instance.providerID);
        assert.equal(found.labels[labels.instanceType], instance.labels[labels.instanceType]);
        assert.equal(found.nodeClaim?.uid, claim.metadata.uid);
        assert.ok(!found.deleting, 'nobody deleted it');
      },
    ],
    'at-once': [
      'finds a machine as soon as it was launched',
      async (subject) => {
        const instance = await subject.create(await subject.claim());
        const found = await subject.provider.get(instance.providerID, subject.signal);
        assert.equal(found.providerID, instance.providerID);
      },
    ],
    'after-crash': [
      'finds it in the next process as well',
      async (subject) => {
        const { instance } = await subject.launched();
        await subject.crash();
        const found = await subject.provider.get(instance.providerID, subject.signal);
        assert.equal(found.providerID, instance.providerID);
      },
    ],
    gone: [
      'says NodeClaimNotFoundError for a machine that is gone',
      async (subject) => {
        const { claim, instance } = await subject.launched();
        await subject.deleteUntilGone(claim);
        const failure = await subject.failureOf(() => subject.provider.get(instance.providerID, subject.signal));
        assert.ok(isNodeClaimNotFound(failure), `not ${String(failure)}`);
      },
    ],
    foreign: [
      'says NodeClaimNotFoundError for an id of another cloud',
      async (subject) => {
        for (const id of ['elsewhere://machine', 'nonsense', '']) {
          const failure = await subject.failureOf(() => subject.provider.get(id, subject.signal));
          assert.ok(isNodeClaimNotFound(failure), `for "${id}": not ${String(failure)}`);
        }
      },
    ],
    failing: [
      'fails when the cloud fails; it never says that the machine is gone',
      async (subject) => {
        const { instance } = await subject.launched();
        await subject.crash();
        const failure = await subject.during('failing', () =>
          subject.failureOf(() => subject.provider.get(instance.providerID, subject.signal)),
        );
        expectTemporary(failure, 'Get of a cloud that fails');
      },
    ],
  }),
  ...casesOf('List', {
    complete: [
      'has every machine once, and agrees with Get',
      async (subject) => {
        const instances = [];
        for (let i = 0; i < 3; i++) instances.push((await subject.launched()).instance);
        await subject.crash();
        const listed = await subject.provider.list(subject.signal);
        const ids = listed.map(({ providerID }) => providerID).sort();
        assert.deepEqual(ids, instances.map(({ providerID }) => providerID).sort());
        for (const one of listed) {
          const got = await subject.provider.get(one.providerID, subject.signal);
          assert.deepEqual(got.nodeClaim, one.nodeClaim);
          assert.deepEqual(got.labels, one.labels);
        }
      },
    ],
    empty: [
      'is empty when nothing was launched',
      async (subject) => assert.deepEqual(await subject.provider.list(subject.signal), []),
    ],
    'at-once': [
      'has a machine as soon as it was launched',
      async (subject) => {
        const instance = await subject.create(await subject.claim());
        const ids = (await subject.provider.list(subject.signal)).map(({ providerID }) => providerID);
        assert.deepEqual(ids, [instance.providerID]);
      },
    ],
    gone: [
      'no longer has a machine that is gone, or marks it as deleting',
      async (subject) => {
        const { claim } = await subject.launched();
        const { instance: kept } = await subject.launched();
        await subject.deleteUntilGone(claim);
        const left = (await subject.provider.list(subject.signal)).filter(({ deleting }) => !deleting);
        assert.deepEqual(
          left.map(({ providerID }) => providerID),
          [kept.providerID],
        );
      },
    ],
    failing: [
      'fails when the cloud fails; a list that lacks machines would let their NodeClaims be deleted',
      async (subject) => {
        await subject.launched();
        await subject.crash();
        const failure = await subject.during('failing', () =>
          subject.failureOf(() => subject.provider.list(subject.signal)),
        );
        expectTemporary(failure, 'List of a cloud that fails');
      },
    ],
    throttled: [
      'fails when the cloud refuses for too many requests',
      async (subject) => {
        await subject.launched();
        await subject.crash();
        const failure = await subject.during('throttled', () =>
          subject.failureOf(() => subject.provider.list(subject.signal)),
        );
        expectTemporary(failure, 'List of a cloud that throttles');
      },
    ],
  }),
];
