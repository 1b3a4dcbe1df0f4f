// SPDX-License-Identifier: Apache-2.0
// Giving machines back: all of it, nothing else, and the truth about when it is done.
import assert from 'node:assert/strict';
import { isNodeClaimNotFound } from '../../errors.ts';
import { type ConformanceCase, casesOf } from '../case.ts';
import type { CloudFault } from '../harness.ts';
import { expectTemporary, type Subject } from '../subject.ts';

async function retriedAfter(subject: Subject, fault: CloudFault): Promise<void> {
  const { claim, instance } = await subject.launched();
  const failure = await subject.during(fault, () => subject.failureOf(() => subject.delete(claim)));
  if (failure !== undefined) {
    const gone = fault === 'answer lost' && isNodeClaimNotFound(failure);
    if (!gone) expectTemporary(failure, `Delete while the cloud is "${fault}"`);
  }
  await subject.deleteUntilGone(claim);
  assert.deepEqual(await subject.machinesOf(instance), []);
}

/** NodeClaimNotFoundError, or nothing at all. */
function expectGoneOrGoing(failure: unknown): void {
  assert.ok(failure === undefined || isNodeClaimNotFound(failure), `not ${String(failure)}`);
}

export const deleteCases: readonly ConformanceCase[] = casesOf('Delete', {
  removes: [
    'removes the machine, and says NodeClaimNotFoundError once it is gone',
    async (subject) => {
      const { claim } = await subject.launched();
      expectGoneOrGoing(await subject.failureOf(() => subject.delete(claim)));
      await subject.deleteUntilGone(claim);
      await subject.expectMachines();
    },
  ],
  truthful: [
    'does not say that a machine is gone while it exists',
    async (subject) => {
      const { claim, instance } = await subject.launched();
      const failure = await subject.failureOf(() => subject.delete(claim));
      if (!isNodeClaimNotFound(failure)) return;
      assert.deepEqual(
        (await subject.harness.machines()).filter(({ providerID }) => providerID === instance.providerID),
        [],
        'its NodeClaim would be gone, and the machine would go on billing',
      );
    },
  ],
  'only-this': [
    'leaves every other machine alone',
    async (subject) => {
      const { claim } = await subject.launched();
      const { instance: kept } = await subject.launched();
      await subject.deleteUntilGone(claim);
      await subject.expectMachines(kept);
    },
  ],
  again: [
    'may be asked again, at the same time as well',
    async (subject) => {
      const { claim } = await subject.launched();
      const calls = await Promise.allSettled([subject.delete(claim), subject.delete(claim)]);
      for (const call of calls) expectGoneOrGoing(call.status === 'rejected' ? call.reason : undefined);
      await subject.deleteUntilGone(claim);
      await subject.deleteUntilGone(claim);
      await subject.expectMachines();
    },
  ],
  never: [
    'says NodeClaimNotFoundError for a machine that never was',
    async (subject) => {
      const { instance } = await subject.launched();
      const stranger = await subject.claim({ providerID: `${instance.providerID}-no-such-machine` });
      const failure = await subject.failureOf(() => subject.delete(stranger));
      assert.ok(isNodeClaimNotFound(failure), `not ${String(failure)}`);
      await subject.expectMachines(instance);
    },
  ],
  'never-launched': [
    'says NodeClaimNotFoundError for a NodeClaim that has no machine, and removes nothing',
    async (subject) => {
      const { instance } = await subject.launched();
      const waiting = await subject.claim();
      const failure = await subject.failureOf(() => subject.delete(waiting));
      assert.ok(isNodeClaimNotFound(failure), `not ${String(failure)}`);
      await subject.expectMachines(instance);
    },
  ],
  'before-it-came-up': [
    'removes a machine that was just launched; it does not come back',
    async (subject) => {
      const claim = await subject.claim();
      const instance = await subject.create(claim);
      const launched = await subject.claim({ ...namesOf(claim), providerID: instance.providerID });
      await subject.deleteUntilGone(launched);
      await subject.expectMachines();
    },
  ],
  'after-crash': [
    'is finished by the next process',
    async (subject) => {
      const { claim } = await subject.launched();
      expectGoneOrGoing(await subject.failureOf(() => subject.delete(claim)));
      await subject.crash();
      await subject.deleteUntilGone(claim);
      await subject.expectMachines();
    },
  ],
  'crash-in-the-middle': [
    'is finished by the next process when the one before died in the middle',
    async (subject) => {
      const { claim } = await subject.launched();
      void subject.delete(claim).catch(() => undefined);
      await subject.crash();
      await subject.deleteUntilGone(claim);
      await subject.expectMachines();
    },
  ],
  'answer-lost': ['ends well when the answer of the cloud is lost', (subject) => retriedAfter(subject, 'answer lost')],
  unreachable: ['is tried again when the cloud cannot be reached', (subject) => retriedAfter(subject, 'unreachable')],
  throttled: [
    'is tried again when the cloud refuses for too many requests',
    (subject) => retriedAfter(subject, 'throttled'),
  ],
  failing: ['is tried again when the cloud fails', (subject) => retriedAfter(subject, 'failing')],
  'node-class-gone': [
    'works without the NodeClass: people delete it first',
    async (subject) => {
      const { claim, instance } = await subject.launched();
      const missing = await subject.harness.nodeClass('missing');
      const orphan = await subject.claim({ ...namesOf(claim), nodeClass: missing, providerID: instance.providerID });
      await subject.deleteUntilGone(orphan);
      await subject.expectMachines();
    },
  ],
  cancelled: [
    'ends when it is cancelled before it began',
    async (subject) => {
      const { claim, instance } = await subject.launched();
      const signal = AbortSignal.abort(new Error('cancelled'));
      const failure = await subject.failureOf(() => subject.provider.delete(claim, signal));
      expectTemporary(failure, 'a cancelled Delete');
      await subject.expectMachines(instance);
    },
  ],
});

function namesOf({ metadata }: { metadata: { name?: string; uid?: string } }): { name: string; uid: string } {
  return { name: metadata.name ?? '', uid: metadata.uid ?? '' };
}
