// SPDX-License-Identifier: Apache-2.0
// How fast the embedded scheduler binds 10,000 pods onto 1,000 nodes: API server, informers, binds and events included.
import { RealClock } from '../src/base/clock.ts';
import { SeededRandom } from '../src/base/random.ts';
import { ApiServer } from '../src/embedded/api-server.ts';
import { Scheduler } from '../src/embedded/scheduler/scheduler.ts';
import { aNode, aPod } from '../src/embedded/testing/objects.ts';
import { SharedInformers, Voices } from '../src/embedded/workloads/context.ts';
import { KubeClient } from '../src/kube/client.ts';
import { kinds, type Pod } from '../src/kube/kinds.ts';
import { silentLogger } from '../src/runtime/logging.ts';
import { Metrics } from '../src/runtime/metrics.ts';

export interface Measurement {
  readonly name: string;
  readonly unit: string;
  readonly ours: number;
  readonly upstream: null;
  readonly ratio: null;
  readonly detail: string;
}

const nodeCount = 1000;
const podCount = 10_000;
const zones = 3;

/** Plain pods, and a mix in which a third each spreads over zones and keeps off its like on a node. */
const shapes: Readonly<Record<string, (i: number) => Pod>> = {
  plain: (i) => aPod(`pod-${i}`, { requests: { cpu: '100m', memory: '128Mi' }, labels: { app: `app-${i % 20}` } }),
  mixed: (i) => {
    const app = `app-${i % 30}`;
    const labels = { app };
    const labelSelector = { matchLabels: labels };
    const requests = { cpu: '100m', memory: '128Mi' };
    if (i % 3 === 0) return aPod(`pod-${i}`, { requests, labels });
    if (i % 3 === 1) {
      const topologyKey = 'topology.kubernetes.io/zone';
      const spread = { topologyKey, maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule', labelSelector };
      return aPod(`pod-${i}`, { requests, labels, spec: { topologySpreadConstraints: [spread] } });
    }
    const term = { topologyKey: 'kubernetes.io/hostname', labelSelector };
    const podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
    return aPod(`pod-${i}`, { requests, labels, spec: { affinity: { podAntiAffinity } } });
  },
};

/** Runs each shape in a cluster of its own; `ours` is seconds from the start of the scheduler to the last bind. */
export async function embeddedScheduler(): Promise<Measurement[]> {
  const results: Measurement[] = [];
  for (const [shape, make] of Object.entries(shapes)) results.push(await measure(shape, make));
  return results;
}

async function measure(shape: string, make: (i: number) => Pod): Promise<Measurement> {
  const clock = new RealClock();
  const random = new SeededRandom(1);
  const log = silentLogger;
  const server = new ApiServer({ clock, random });
  const client = new KubeClient({ transport: server.transport(), clock });
  for (let i = 0; i < nodeCount; i++) {
    const labels = { 'topology.kubernetes.io/zone': `zone-${i % zones}` };
    await client.resource(kinds.Node).create(aNode(`node-${i}`, { labels }));
  }
  // A new node waits for its kubelet; here they are all up.
  for (let i = 0; i < nodeCount; i++) await client.resource(kinds.Node).patch(`node-${i}`, { spec: { taints: null } });
  for (let i = 0; i < podCount; i++) {
    const pod = make(i);
    delete pod.metadata.uid;
    await client.resource(kinds.Pod).create(pod);
  }
  const informers = new SharedInformers({ client, clock, random, log });
  const voices = new Voices({ client, clock, log });
  const events = voices.of('default-scheduler');
  const scheduler = new Scheduler({ client, informers, clock, random, log, metrics: new Metrics(), events });
  const pods = informers.of(kinds.Pod);
  let bound = 0;
  const stopping = new AbortController();
  const allBound = new Promise<void>((resolve) => {
    pods.addHandler({
      updated: (pod, old) => {
        if (pod.spec.nodeName && !old.spec.nodeName && ++bound === podCount) resolve();
      },
    });
  });
  const started = clock.monotonic();
  const cpuBefore = process.cpuUsage();
  await informers.start(stopping.signal);
  const running = scheduler.start(stopping.signal);
  await allBound;
  const seconds = (clock.monotonic() - started) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  stopping.abort();
  await running;
  voices.stop();
  await server.close();
  return {
    name: `embedded/scheduler-${shape}-${podCount}-on-${nodeCount}`,
    unit: 's',
    ours: Math.round(seconds * 1000) / 1000,
    upstream: null,
    ratio: null,
    detail: `${Math.round(podCount / seconds)} pods/s, ${((cpu.user + cpu.system) / 1e6).toFixed(1)} s of CPU; target 10 s`,
  };
}
