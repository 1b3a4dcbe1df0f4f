// SPDX-License-Identifier: Apache-2.0
// The loop of disruption on a live state of 5,000 nodes and 50,000 pods: what a pass costs that finds nothing, and what the
// next ones cost while nothing changes.
import { labels } from '../src/api/labels.ts';
import { nodeClaimKind } from '../src/api/node-claim.ts';
import { disruptionControllers } from '../src/controllers/disruption/index.ts';
import { ControllerContext } from '../src/controllers/nodeclaim/context.ts';
import { testWorld } from '../src/controllers/testing/world.ts';
import { kinds } from '../src/kube/kinds.ts';
import type { KubeObject, ResourceType } from '../src/kube/object.ts';
import { formatTime } from '../src/kube/time.ts';
import { boundPod, launchedClaim, node } from '../src/state/testing/objects.ts';
import { lowerIsBetter, median, type Progress, type Row } from './rows.ts';

const podsPerNode = 10;
const resources = { cpu: '4', memory: '8Gi', pods: '110' };

/** Measures in CPU time. The nodes are full, so that every one of them is looked at and none can go. */
export async function quietPasses(nodes: number, progress: Progress): Promise<Row[]> {
  const world = await testWorld();
  try {
    const { workload, karpenter, clock } = world;
    const requirements = [{ key: labels.capacityType, operator: 'In' as const, values: ['on-demand'] }];
    await world.pool({
      template: { requirements },
      spec: { disruption: { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] } },
    });
    const lastTransitionTime = formatTime(clock.now());
    const isTrue = (type: string) => ({ type, status: 'True', reason: type, message: '', lastTransitionTime });
    const conditions = ['Launched', 'Registered', 'Initialized', 'Ready', 'Consolidatable'].map(isTrue);
    const claims = karpenter.resource(nodeClaimKind as ResourceType<KubeObject>);
    for (let i = 0; i < nodes; i++) {
      const name = `node-${i}`;
      const own = {
        [labels.nodePool]: 'default',
        [labels.instanceType]: 'c-4x',
        [labels.zone]: 'zone-a',
        [labels.capacityType]: 'on-demand',
        [labels.registered]: 'true',
        [labels.initialized]: 'true',
        [labels.hostname]: name,
      };
      const claim = launchedClaim(name, { nodeName: name });
      await claims.create({ ...claim, metadata: { name, labels: own } } as KubeObject);
      await claims.patchStatus(name, { status: { ...claim.status, conditions } });
      await workload
        .resource(kinds.Node)
        .create({ ...node(name), metadata: { name, labels: own }, spec: { providerID: `fake://${name}` } });
      const status = { capacity: resources, allocatable: resources, conditions: [isTrue('Ready')] };
      await workload.resource(kinds.Node).patchStatus(name, { status });
      await workload.resource(kinds.Node).patch(name, { spec: { taints: [] } });
      for (let p = 0; p < podsPerNode; p++) {
        const requests = { cpu: '390m', memory: '700Mi' };
        const pod = boundPod(`pod-${i}-${p}`, name, {
          containers: [{ name: 'main', image: 'app', resources: { requests } }],
        });
        const where = { namespace: 'default' };
        await workload.resource(kinds.Pod).create({ ...pod, metadata: { ...pod.metadata, ...where } });
        await workload.resource(kinds.Pod).patchStatus(pod.metadata.name!, { status: { phase: 'Running' } }, where);
      }
    }
    await world.settle();
    progress(`${nodes} nodes, ${nodes * podsPerNode} pods`);
    world.run(...disruptionControllers(new ControllerContext(world), world));
    const full = await cpuMs(() => world.settle());
    const quiet: number[] = [];
    for (let i = 0; i < 9; i++) quiet.push(await cpuMs(() => world.advance(10_000)));
    progress(`full pass ${full.toFixed(0)} ms, then ${quiet.map((ms) => ms.toFixed(1)).join(', ')} ms`);
    const commands = world.log.lines.filter(({ message }) => message === 'disrupting node(s)').length;
    const detail = `${nodes} full nodes with ${podsPerNode} pods each, ${commands} commands`;
    return [
      lowerIsBetter(`disruption/live-pass-${nodes}`, 'ms', full, null, detail),
      lowerIsBetter(`disruption/unchanged-${nodes}`, 'ms', median(quiet), null, 'a look ten seconds later'),
    ];
  } finally {
    await world.close();
  }
}

/** The CPU time that something takes: what else runs on the machine must not count. */
async function cpuMs(work: () => Promise<void>): Promise<number> {
  const begun = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / 1000;
}
