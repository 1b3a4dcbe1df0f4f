// SPDX-License-Identifier: Apache-2.0
// What one pass makes of a cluster that was scaled down to a tenth, on the machines that upstream's pretended cloud sells.
import { expect, test } from 'vitest';
import { labels } from '../../api/labels.ts';
import { SeededRandom } from '../../base/random.ts';
import { Quantity } from '../../kube/quantity.ts';
import { defaultInstanceTypes } from '../../providers/kwok/instance-types.ts';
import { coreSettings, defaultSettings } from '../../runtime/settings.ts';
import type { Node, NodeClaim, Pod } from '../../scheduling/objects.ts';
import type { Problem } from '../../scheduling/problem.ts';
import { fileSnapshot } from './file-snapshot.ts';
import { planMethods } from './index.ts';
import { plan } from './plan.ts';

const types = defaultInstanceTypes();
const byName = new Map(types.map((type) => [type.name, type]));
const zones = ['a', 'b', 'c', 'd'].map((letter) => `test-zone-${letter}`);
const shapes = { small: ['250m', '512Mi'], web: ['500m', '1Gi'], worker: ['1', '2Gi'], cache: ['1', '4Gi'] } as const;
/** What the pods below request at the cheapest rate: 25 m$ for a CPU, 1 m$ for a GB. */
const bound = 25 * (2.75 * 0.025 + (7.5 * 0.001 * 2 ** 30) / 1e9);

function nodeOf(name: string, type: string, zone: string): Node {
  const { requirements, capacity } = byName.get(type)!;
  const own = Object.fromEntries(requirements.flatMap(({ key, values = [] }) => (values[0] ? [[key, values[0]]] : [])));
  const cpu = `${Quantity.parse(capacity['cpu']!).milliValue() - 100n}m`;
  return {
    metadata: {
      name,
      labels: {
        ...own,
        [labels.nodePool]: 'default',
        [labels.instanceType]: type,
        [labels.zone]: zone,
        [labels.capacityType]: 'on-demand',
        [labels.hostname]: name,
        [labels.registered]: 'true',
        [labels.initialized]: 'true',
      },
    },
    spec: { providerID: `kwok://${name}` },
    status: { capacity, allocatable: { ...capacity, cpu }, conditions: [{ type: 'Ready', status: 'True' }] },
  };
}

function claimOf({ metadata, spec }: Node): NodeClaim {
  const conditions = ['Launched', 'Registered', 'Initialized', 'Consolidatable'].map((type) => ({
    type,
    status: 'True',
  }));
  return {
    metadata: { name: metadata.name!, labels: metadata.labels! },
    spec: { requirements: [] },
    status: { nodeName: metadata.name!, providerID: spec!.providerID!, conditions },
  };
}

function scaledDown(seed: number): Problem {
  const random = new SeededRandom(seed);
  const nodes = zones.flatMap((zone) =>
    ['s-96x', 's-96x', 'c-2x'].map((size, i) => nodeOf(`${zone}-${i}`, `${size}-amd64-linux`, zone)),
  );
  const pods = Object.entries(shapes).flatMap(([app, [cpu, memory]]) =>
    Array.from(
      { length: 25 },
      (_, i): Pod => ({
        metadata: { name: `${app}-${i}`, namespace: 'default', uid: `${app}-${i}`, labels: { app } },
        spec: {
          nodeName: `${zones[i % 4]}-${random.int(i % 7 === 0 ? 3 : 2)}`,
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: labels.zone,
              whenUnsatisfiable: 'DoNotSchedule',
              labelSelector: { matchLabels: { app } },
            },
          ],
          containers: [{ name: 'main', resources: { requests: { cpu, memory } } }],
        },
        status: { phase: 'Running' },
      }),
    ),
  );
  const requirements = [
    { key: labels.capacityType, operator: 'In' as const, values: ['on-demand'] },
    { key: labels.os, operator: 'In' as const, values: ['linux'] },
  ];
  const disruption = { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] };
  const pool = { metadata: { name: 'default' }, spec: { template: { spec: { requirements } }, disruption } };
  return {
    now: '2026-01-01T00:00:00Z',
    nodePools: [pool],
    instanceTypes: { default: types },
    nodes,
    nodeClaims: nodes.map(claimOf),
    pods,
  };
}

test.each([1, 2, 3])('pods that are spread over zones are left on machines near the bound, seed %i', (seed) => {
  const problem = scaledDown(seed);
  const { price, priceAfter } = plan(fileSnapshot(problem, defaultSettings(coreSettings), 0), planMethods());
  expect(price).toBeGreaterThan(11 * bound);
  // Machines of the tightest plan cost less, but pods would be left over: kube-scheduler does not pack.
  expect(priceAfter / bound).toBeLessThan(1.15);
});
