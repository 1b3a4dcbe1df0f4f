// SPDX-License-Identifier: Apache-2.0
// What comes with the scripted provider in each controller process: it hears of machines that will be taken away, and
// deletes their NodeClaims in time.
import { type NodeClaim, nodeClaimKind } from '../../api/node-claim.ts';
import { messageOf } from '../../base/errors.ts';
import { ignoreNotFound } from '../../kube/api-error.ts';
import type { ResourceType } from '../../kube/object.ts';
import type { Runnable } from '../../runtime/manager.ts';
import type { Line } from '../contract.ts';
import type { Backend } from './backend.ts';

const retryMs = 5000;

export function interruptions(backend: Backend, line: Line): Runnable {
  const claims = line.clusters.karpenter.client.resource(nodeClaimKind as ResourceType<NodeClaim>);
  return {
    name: 'scripted.interruption',
    async start(signal) {
      while (!signal.aborted) {
        try {
          for (const machine of await backend.notices(signal)) {
            const { name = '', uid = '' } = machine.claim ?? {};
            await line.call(`interruption ${name}`, () => Promise.resolve());
            await ignoreNotFound(claims.delete(name, { signal, preconditions: { uid } }));
            backend.acknowledge(machine);
          }
        } catch (error) {
          if (signal.aborted) return;
          line.log.warn('cannot handle interruptions', { error: messageOf(error) });
          await line.clock.sleep(retryMs, signal).catch(() => undefined);
        }
      }
    },
  };
}
