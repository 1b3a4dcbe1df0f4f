// SPDX-License-Identifier: Apache-2.0
// What a glance says of a cluster: whether there is something to do, though what is found first would not hold.
import { expect, test } from 'vitest';
import { annotations, labels } from '../../api/labels.ts';
import { coreSettings, defaultSettings } from '../../runtime/settings.ts';
import type { Node, NodeClaim, Pod } from '../../scheduling/objects.ts';
import type { InstanceTypeSpec } from '../../scheduling/problem.ts';
import { instanceType } from '../testing/fake-cloud.ts';
import { fileSnapshot } from './file-snapshot.ts';
import { defaultMethods } from './index.ts';
import { Pass } from './plan.ts';

/** Costs next to nothing, and is not sold any more. */
const bargain = instanceType(8, { name: 'bargain' });
const offerings = bargain.offerings.map((offering) => ({ ...offering, price: 0.05, available: false }));
const types: InstanceTypeSpec[] = [{ ...bargain, offerings }, ...[1, 2, 4, 8, 16].map((cpus) => instanceType(cpus))];
const special = { key: 'special', value: 'true', effect: 'NoSchedule' as const };

function node(name: string, type: string, pool: string): Node {
  const { capacity } = types.find((one) => one.name === type)!;
  return {
    metadata: {
      name,
      labels: {
        [labels.nodePool]: pool,
        [labels.instanceType]: type,
        [labels.zone]: 'zone-a',
        [labels.capacityType]: 'on-demand',
        [labels.arch]: 'amd64',
        [labels.os]: 'linux',
        [labels.hostname]: name,
        [labels.registered]: 'true',
        [labels.initialized]: 'true',
      },
    },
    spec: { providerID: `fake://${name}`, ...(pool === 'special' ? { taints: [special] } : {}) },
    status: { capacity, allocatable: capacity, conditions: [{ type: 'Ready', status: 'True' }] },
  };
}

function claimOf({ metadata, spec }: Node): NodeClaim {
  const conditions = ['Launched', 'Registered', 'Initialized', 'Consolidatable'];
  return {
    metadata: { name: metadata.name!, labels: metadata.labels! },
    spec: { requirements: [] },
    status: {
      nodeName: metadata.name!,
      providerID: spec!.providerID!,
      conditions: conditions.map((type) => ({ type, status: 'True' })),
    },
  };
}

function podsOn(nodeName: string, cpus: readonly number[], stays = false): Pod[] {
  return cpus.map((cpu, i) => ({
    metadata: {
      name: `${nodeName}-${i}`,
      namespace: 'default',
      uid: `${nodeName}-${i}`,
      annotations: stays ? { [annotations.doNotDisrupt]: 'true' } : {},
    },
    spec: {
      nodeName,
      containers: [{ name: 'main', resources: { requests: { cpu: String(cpu) } } }],
      ...(nodeName === 'large' ? { tolerations: [{ key: 'special', operator: 'Exists' as const }] } : {}),
    },
    status: { phase: 'Running' },
  }));
}

/** Names of the nodes that a look at some nodes and their pods would let go. */
function going(nodes: readonly Node[], pods: readonly Pod[], isGlance: boolean): string[][] {
  const pools = ['default', 'special'];
  const problem = {
    now: '2026-01-01T00:00:00Z',
    nodePools: pools.map((name) => ({
      metadata: { name },
      spec: {
        template: { spec: { requirements: [], ...(name === 'special' ? { taints: [special] } : {}) } },
        disruption: { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] },
      },
    })),
    instanceTypes: Object.fromEntries(pools.map((pool) => [pool, types])),
    nodes,
    nodeClaims: nodes.map(claimOf),
    pods,
  };
  const method = defaultMethods().find(({ name }) => name === 'Consolidation')!;
  const { view } = new Pass(fileSnapshot(problem, defaultSettings(coreSettings), 0)).evaluate(method);
  return method
    .propose({ ...view, isGlance })
    .map(({ candidates }) => candidates.map(({ machine }) => machine.name).sort());
}

// In a plan three go to `east`, and two and two to `west`. kube-scheduler puts three where most room is: two are left over.
const tightly = [...podsOn('cheap', [3, 2, 2]), ...podsOn('east', [5], true), ...podsOn('west', [4], true)];
const cluster = [node('cheap', 'bargain', 'default'), node('east', 'c-8x', 'default'), node('west', 'c-8x', 'default')];

test.each([true, false])('what would not hold is passed over (at a glance: %s)', (isGlance) => {
  expect(going(cluster, tightly, isGlance)).toEqual([]);
  const large = node('large', 'c-16x', 'special');
  expect(going([...cluster, large], [...tightly, ...podsOn('large', [5])], isGlance)).toEqual([['large']]);
});
