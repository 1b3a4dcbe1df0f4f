// SPDX-License-Identifier: Apache-2.0
// Drift: a word too many replaces a node that was fine.
import assert from 'node:assert/strict';
import { isNodeClaimNotFound } from '../../errors.ts';
import { type ConformanceCase, casesOf } from '../case.ts';
import { expectTemporary, NotApplicable } from '../subject.ts';

export const driftCases: readonly ConformanceCase[] = casesOf('IsDrifted', {
  fresh: [
    'finds nothing about a machine that was just launched',
    async (subject) => {
      const { claim } = await subject.launched();
      assert.equal(await subject.provider.driftReason(claim, subject.signal), '');
      await subject.crash();
      assert.equal(await subject.provider.driftReason(claim, subject.signal), '', 'in the next process');
    },
  ],
  standalone: [
    'finds nothing about a machine of no NodePool',
    async (subject) => {
      const { claim } = await subject.launched({ standalone: true });
      assert.equal(await subject.provider.driftReason(claim, subject.signal), '');
    },
  ],
  drifted: [
    'says in one word why a machine is no longer what it should be',
    async (subject) => {
      const { drift } = subject.harness;
      if (!drift) throw new NotApplicable('machines of this cloud cannot drift');
      const { claim, instance } = await subject.launched();
      await drift(instance.providerID);
      await subject.crash();
      const reason = await subject.provider.driftReason(claim, subject.signal);
      assert.match(reason, /^[A-Z][A-Za-z0-9]*$/);
    },
  ],
  gone: [
    'finds nothing, or says NodeClaimNotFoundError, when the machine is gone',
    async (subject) => {
      const { claim } = await subject.launched();
      await subject.deleteUntilGone(claim);
      let reason = '';
      const failure = await subject.failureOf(async () => {
        reason = await subject.provider.driftReason(claim, subject.signal);
      });
      assert.ok(failure === undefined || isNodeClaimNotFound(failure), `not ${String(failure)}`);
      assert.equal(reason, '');
    },
  ],
  failing: [
    'finds no drift because the cloud cannot be asked',
    async (subject) => {
      const { claim } = await subject.launched();
      await subject.crash();
      await subject.during('failing', async () => {
        let reason = '';
        const failure = await subject.failureOf(async () => {
          reason = await subject.provider.driftReason(claim, subject.signal);
        });
        if (failure !== undefined) expectTemporary(failure, 'IsDrifted of a cloud that fails');
        assert.equal(reason, '');
      });
    },
  ],
});
