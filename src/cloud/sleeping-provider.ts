// SPDX-License-Identifier: Apache-2.0
// A cloud whose NodeClass is not installed: nobody uses it, so nobody asks it anything. Installing the CRD wakes it up,
// without a restart.
import type { Clock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject, ResourceType } from '../kube/object.ts';
import type { Logger } from '../runtime/logging.ts';
import type { Runnable } from '../runtime/manager.ts';
import { forwarding } from './forwarding.ts';
import type { CloudProvider } from './provider.ts';

/** How often to look whether the NodeClass is there by now. */
const lookAgainMs = 10_000;

interface Served {
  /** Of the cluster with the NodeClasses. */
  readonly client: KubeClient;
  readonly nodeClass: ResourceType<KubeObject>;
}

/**
 * The same provider, which has no machines while its NodeClass is not served: what is asked without a NodePool or a
 * NodeClaim in hand must not reach a cloud that nobody uses. Everything else is about an object that refers to it.
 */
export function sleepingUntilServed(provider: CloudProvider, { client, nodeClass }: Served): CloudProvider {
  return forwarding(provider, {
    list: async (signal) => ((await client.serves(nodeClass, signal)) ? provider.list(signal) : []),
  });
}

/** The same runnable, which begins once the NodeClass is served. */
export function awake(
  runnable: Runnable,
  options: Served & { readonly provider: string; readonly clock: Clock; readonly log: Logger },
): Runnable {
  const { client, nodeClass, provider, clock, log } = options;
  /** Undefined when the API server does not say. */
  const isServed = async (signal: AbortSignal): Promise<boolean | undefined> => {
    try {
      return await client.serves(nodeClass, signal);
    } catch (error) {
      if (!signal.aborted)
        log.debug('cannot tell whether a NodeClass is served', { provider, error: messageOf(error) });
      return undefined;
    }
  };
  return {
    name: runnable.name,
    async start(signal) {
      let waited = false;
      for (;;) {
        const served = await isServed(signal);
        if (signal.aborted) return;
        if (served) break;
        if (served === false && !waited) {
          log.info('provider waits for its NodeClass to be installed', { provider, kind: nodeClass.kind });
          waited = true;
        }
        await clock.sleep(lookAgainMs, signal).catch(() => undefined);
      }
      if (waited) log.info('provider starts: its NodeClass is installed', { provider, kind: nodeClass.kind });
      await runnable.start(signal);
    },
  };
}
