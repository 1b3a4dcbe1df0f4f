// SPDX-License-Identifier: Apache-2.0
// A whole program on the runtime, for the test that stops it as Kubernetes does. Prints a line when it works, and
// one with the lease's holder when it has ended.
import { RealClock } from '../../base/clock.ts';
import { SystemRandom } from '../../base/random.ts';
import { KubeClient } from '../../kube/client.ts';
import type { Lease } from '../../kube/kinds.ts';
import { MemoryApi } from '../../kube/testing/memory-api.ts';
import { Cluster, Clusters } from '../clusters.ts';
import { singleton } from '../controller.ts';
import { Manager } from '../manager.ts';
import { Metrics } from '../metrics.ts';
import { createLogger, openOutputs } from '../pino-logger.ts';
import { stopOnSignals } from '../signals.ts';

const clock = new RealClock();
const random = new SystemRandom();
const metrics = new Metrics();
const log = createLogger({ clock, outputs: openOutputs(['stderr'], () => undefined) });
const api = new MemoryApi();
const clusters = new Clusters(new Cluster({ name: 'main', transport: api, clock, random, log, metrics }));
const election = {
  client: new KubeClient({ transport: api, clock }),
  name: 'test',
  namespace: 'karpenter',
  identity: 'me',
  random,
};
const manager = new Manager({
  clock,
  log,
  metrics,
  clusters,
  election,
  metricsPort: 0,
  healthPort: 0,
  host: '127.0.0.1',
});
manager.add(
  singleton({
    name: 'loop',
    clock,
    log,
    metrics,
    reconcile: async (_signal, { stopping }) => {
      process.stdout.write('working\n');
      await clock.sleep(60_000, stopping);
    },
  }),
);
const { signal, dispose } = stopOnSignals(process, { log, exit: () => process.exit(1) });
await manager.run(signal);
dispose();
const lease = api.at('/apis/coordination.k8s.io/v1/namespaces/karpenter/leases/test') as Lease;
process.stdout.write(`holder=${JSON.stringify(lease.spec?.holderIdentity)}\n`);
