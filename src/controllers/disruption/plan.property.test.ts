// SPDX-License-Identifier: Apache-2.0
// Random clusters, planned and carried out until nothing is left to do: no plan breaks a promise, none raises the cost, and
// every cluster comes to rest. `npm test` tries a sample; KARPENTER_PROPERTY_RUNS sets the number.
import { describe, expect, test } from 'vitest';
import { annotations, labels } from '../../api/labels.ts';
import { SeededRandom } from '../../base/random.ts';
import { coreSettings, defaultSettings } from '../../runtime/settings.ts';
import type { Node, NodeClaim, Pod } from '../../scheduling/objects.ts';
import type { InstanceTypeSpec, NewNodeClaim, Problem } from '../../scheduling/problem.ts';
import { solve } from '../../scheduling/solve.ts';
import { instanceType } from '../testing/fake-cloud.ts';
import { fileSnapshot } from './file-snapshot.ts';
import { defaultMethods } from './index.ts';
import type { Proposal } from './method.ts';
import { Pass } from './plan.ts';

const runs = Number(process.env['KARPENTER_PROPERTY_RUNS'] ?? 40);
const mostRounds = 25;
const settings = defaultSettings(coreSettings);
const types = [1, 2, 4, 8, 16, 32].map((cpus) => instanceType(cpus));
const byName = new Map(types.map((type) => [type.name, type]));
const zones = ['zone-a', 'zone-b', 'zone-c'];
const pools = ['blue', 'red'];

interface Machine {
  readonly name: string;
  readonly pool: string;
  readonly type: InstanceTypeSpec;
  readonly zone: string;
  readonly capacityType: string;
}

/** A cluster in memory. Commands are carried out at once; the scheduler places whom they made homeless. */
class Cluster {
  readonly #random: SeededRandom;
  readonly #budgets: Readonly<Record<string, string>>;
  readonly #policies: Readonly<Record<string, string>>;
  readonly #pdbs: NonNullable<Problem['podDisruptionBudgets']>;
  machines: Machine[] = [];
  pods: Pod[] = [];
  #count = 0;

  constructor(random: SeededRandom) {
    this.#random = random;
    const pick = <T>(...some: readonly T[]): T => some[random.int(some.length)]!;
    this.#budgets = Object.fromEntries(pools.map((pool) => [pool, pick('0', '1', '2', '10%', '50%', '100%')]));
    this.#policies = Object.fromEntries(
      pools.map((pool) => [
        pool,
        pick('WhenEmpty', 'WhenEmptyOrUnderutilized', 'WhenEmptyOrUnderutilized', 'Balanced'),
      ]),
    );
    this.#pdbs = [0, 1].map((allowed) => ({
      metadata: { name: `pdb-${allowed}`, namespace: 'default' },
      spec: { selector: { matchLabels: { pdb: String(allowed) } } },
      status: { disruptionsAllowed: allowed },
    }));
    for (let i = 0, count = 2 + random.int(12); i < count; i++)
      this.#fill(this.#launch(pick(...types.slice(1)), pick(...pools), pick(...zones), pick('on-demand', 'spot')));
  }

  #launch(type: InstanceTypeSpec, pool: string, zone: string, capacityType: string): Machine {
    const machine = { name: `node-${this.#count++}`, pool, type, zone, capacityType };
    this.machines.push(machine);
    return machine;
  }

  /** Some pods, never more than fit. */
  #fill({ name, type }: Machine): void {
    const random = this.#random;
    for (let left = Number(type.capacity['cpu']) * 1000 * random.next(); left > 200; ) {
      const cpu = Math.min(left, 100 + 100 * random.int(20));
      left -= cpu;
      const app = `app-${random.int(4)}`;
      const kind = random.int(20);
      const spread = {
        maxSkew: 1 + random.int(3),
        topologyKey: labels.zone,
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: { app } },
      };
      this.pods.push({
        metadata: {
          name: `pod-${this.pods.length}`,
          namespace: 'default',
          uid: `uid-${this.pods.length}`,
          labels: { app, ...(kind < 2 ? { pdb: String(kind) } : {}) },
          annotations: kind === 2 ? { [annotations.doNotDisrupt]: 'true' } : {},
        },
        spec: {
          nodeName: name,
          containers: [{ name: 'main', resources: { requests: { cpu: `${Math.floor(cpu)}m` } } }],
          ...(kind > 16 ? { topologySpreadConstraints: [spread] } : {}),
        },
        status: { phase: 'Running' },
      });
    }
  }

  get price(): number {
    return this.machines.reduce((sum, machine) => sum + priceOf(machine), 0);
  }

  budgetOf(pool: string): number {
    const nodes = this.machines.filter((machine) => machine.pool === pool).length;
    const text = this.#budgets[pool]!;
    return text.endsWith('%') ? Math.ceil((Number.parseInt(text, 10) * nodes) / 100) : Number(text);
  }

  policyOf(pool: string): string {
    return this.#policies[pool]!;
  }

  isProtected({ metadata }: Pod): boolean {
    return metadata.annotations?.[annotations.doNotDisrupt] === 'true' || metadata.labels?.['pdb'] === '0';
  }

  problem(): Problem {
    const nodes = this.machines.map(nodeOf);
    return {
      now: '2026-01-01T00:00:00Z',
      nodePools: pools.map((name) => ({
        metadata: { name },
        spec: {
          template: { spec: { requirements: [] } },
          disruption: {
            consolidateAfter: '0s',
            consolidationPolicy: this.#policies[name],
            budgets: [{ nodes: this.#budgets[name] }],
          },
        },
      })),
      instanceTypes: Object.fromEntries(pools.map((pool) => [pool, types])),
      nodes,
      nodeClaims: nodes.map(claimOf),
      pods: this.pods,
      podDisruptionBudgets: this.#pdbs,
    };
  }

  /** Carries commands out; gives the pods that found no place. */
  carryOut(proposals: readonly Proposal[]): string[] {
    const gone = new Set(proposals.flatMap(({ candidates }) => candidates.map(({ machine }) => machine.name)));
    for (const { replacements } of proposals) for (const claim of replacements) this.#buy(claim);
    this.machines = this.machines.filter(({ name }) => !gone.has(name));
    this.pods = this.pods.map((pod) => {
      if (!gone.has(pod.spec.nodeName ?? '')) return pod;
      const { nodeName: _, ...spec } = pod.spec;
      return { ...pod, spec, status: { phase: 'Pending' } };
    });
    return this.#place();
  }

  /** The scheduler places pods its own way; what it cannot place as tightly as planned gets another machine. */
  #place(): string[] {
    const { existingNodes, newNodeClaims, errors } = solve(this.problem());
    const where = new Map(existingNodes.flatMap(({ name, pods }) => pods.map((pod) => [pod, name] as const)));
    for (const claim of newNodeClaims) {
      const { name } = this.#buy(claim);
      for (const pod of claim.pods) where.set(pod, name);
    }
    this.pods = this.pods.map((pod) => {
      const nodeName = where.get(`default/${pod.metadata.name}`);
      return nodeName ? { ...pod, spec: { ...pod.spec, nodeName }, status: { phase: 'Running' } } : pod;
    });
    return errors.map(({ pod }) => pod);
  }

  /** What the cloud makes of a plan: the cheapest. */
  #buy({ nodePool, instanceTypes, requirements }: NewNodeClaim): Machine {
    const of = (key: string, all: readonly string[]): string =>
      requirements.find((one) => one.key === key && one.operator === 'In')?.values?.[0] ?? all[0]!;
    const cheapest = byName.get(instanceTypes[0]!)!;
    return this.#launch(cheapest, nodePool, of(labels.zone, zones), of(labels.capacityType, ['spot']));
  }
}

function priceOf({ type, zone, capacityType }: Machine): number {
  const has = (values: readonly (string | undefined)[], value: string): boolean => values.includes(value);
  return type.offerings.find(({ requirements }) => {
    const values = requirements.map((one) => one.values?.[0]);
    return has(values, zone) && has(values, capacityType);
  })!.price;
}

function nodeOf({ name, pool, type, zone, capacityType }: Machine): Node {
  return {
    metadata: {
      name,
      labels: {
        [labels.nodePool]: pool,
        [labels.instanceType]: type.name,
        [labels.zone]: zone,
        [labels.capacityType]: capacityType,
        [labels.arch]: 'amd64',
        [labels.os]: 'linux',
        [labels.hostname]: name,
        [labels.registered]: 'true',
        [labels.initialized]: 'true',
      },
    },
    spec: { providerID: `fake://${name}` },
    status: { capacity: type.capacity, allocatable: type.capacity, conditions: [{ type: 'Ready', status: 'True' }] },
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

/** What every command of a pass must keep to. */
function expectPromisesKept(cluster: Cluster, proposals: readonly Proposal[], empty: boolean): void {
  const going = proposals.flatMap(({ candidates }) => candidates);
  for (const pool of pools) {
    const lost = going.filter(({ nodePool }) => nodePool.metadata.name === pool);
    expect(lost.length, `nodes of ${pool} that go`).toBeLessThanOrEqual(cluster.budgetOf(pool));
    if (!empty) expect(lost.length === 0 || cluster.policyOf(pool) !== 'WhenEmpty').toBe(true);
  }
  const names = new Set(going.map(({ machine }) => machine.name));
  expect(names.size, 'a node goes once').toBe(going.length);
  for (const pod of cluster.pods)
    if (cluster.isProtected(pod)) expect(names.has(pod.spec.nodeName ?? ''), 'a protected pod').toBe(false);
  for (const { candidates, replacements } of proposals) {
    const price = candidates.reduce((sum, candidate) => sum + candidate.price, 0);
    const bought = replacements.reduce((sum, claim) => sum + claim.price, 0);
    expect(bought, 'what is bought').toBeLessThan(price);
  }
}

/** How often a glance was asked where there was something to do, and how often it saw nothing. */
const glances = { asked: 0, blind: 0 };

/** A glance keeps the same promises. */
function glance(cluster: Cluster, name: string, proposals: readonly Proposal[]): void {
  const method = defaultMethods().find((one) => one.name === name)!;
  const { view } = new Pass(fileSnapshot(cluster.problem(), settings, 0)).evaluate(method);
  const seen = view.candidates.length > 0 ? method.propose({ ...view, isGlance: true }) : [];
  expectPromisesKept(cluster, seen, method.reason === 'Empty');
  if (proposals.length === 0) return;
  glances.asked++;
  if (seen.length === 0) glances.blind++;
}

function settle(seed: number): void {
  const cluster = new Cluster(new SeededRandom(seed));
  for (let round = 0; round <= mostRounds; round++) {
    let found = false;
    for (const method of defaultMethods()) {
      const { view } = new Pass(fileSnapshot(cluster.problem(), settings, 0)).evaluate(method);
      const proposals = view.candidates.length > 0 ? method.propose(view) : [];
      glance(cluster, method.name, proposals);
      if (proposals.length === 0) continue;
      found = true;
      expectPromisesKept(cluster, proposals, method.reason === 'Empty');
      const before = cluster.price;
      expect(cluster.carryOut(proposals), 'pods without a place').toEqual([]);
      expect(cluster.price, 'the cost').toBeLessThan(before);
    }
    if (!found) return;
  }
  expect.fail(`not at rest after ${mostRounds} rounds`);
}

describe('a random cluster', () => {
  test('is brought to rest without a broken promise', () => {
    for (let seed = 1; seed <= runs; seed++) {
      try {
        settle(seed);
      } catch (error) {
        throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
      }
    }
    expect(glances.blind, `of ${glances.asked} glances`).toBeLessThanOrEqual(glances.asked / 50);
  }, 600_000);
});
