// SPDX-License-Identifier: Apache-2.0
// Random small clusters and what happens to them: the whole program on the embedded cluster, in virtual time.
import { annotations, labels } from '../../../api/labels.ts';
import type { NodePoolSpec } from '../../../api/node-pool.ts';
import { SeededRandom } from '../../../base/random.ts';
import { type Deployment, kinds } from '../../../kube/kinds.ts';
import { registerControllers } from '../../index.ts';
import { deployment } from '../../testing/deployment.ts';
import { type TestWorld, testWorld } from '../../testing/world.ts';
import type { Method } from '../method.ts';
import { shapeOf, Validator } from './validator.ts';

const minute = 60_000;

/** The methods of a program that is broken on purpose, in its world. */
export type Mutant = (world: TestWorld) => readonly Method[];

/** Lives through the story of a seed, and judges it. Within so many minutes everything must have come to rest. */
export async function live(seed: number, mutant?: Mutant, restMinutes = 30): Promise<Validator> {
  const story = new Story(seed, await testWorld({ live: true, seed }));
  try {
    return await story.run(mutant, restMinutes);
  } finally {
    await story.world.close();
  }
}

class Story {
  readonly world: TestWorld;
  readonly #random: SeededRandom;
  readonly #validator: Validator;
  readonly #deployments: Deployment[] = [];

  constructor(seed: number, world: TestWorld) {
    this.world = world;
    this.#random = new SeededRandom(seed);
    this.#validator = new Validator(world);
  }

  #pick<T>(...some: readonly T[]): T {
    return some[this.#random.int(some.length)]!;
  }

  async run(mutant: Mutant | undefined, restMinutes: number): Promise<Validator> {
    const { world } = this;
    const { clusters, registry, clock, log, metrics, random, executor, settings } = world;
    const parts = { clusters, registry, clock, log, metrics, random, executor, settings };
    registerControllers(world.manager, mutant ? { ...parts, disruptionMethods: mutant(world) } : parts);
    await this.#furnish();
    await this.#untilRunning();
    for (let round = 0; round < 2; round++) {
      await this.#change();
      await world.advance((1 + this.#random.int(3)) * minute);
    }
    await this.#untilRunning();
    await this.#rest(restMinutes);
    return this.#validator;
  }

  async #furnish(): Promise<void> {
    const { cloud } = this.world;
    // Clouds launch the cheapest that is left to them.
    cloud.types = cloud.types.map((type) => ({
      ...type,
      offerings: type.offerings.toSorted((a, b) => a.price - b.price),
    }));
    const names = this.#random.int(3) === 0 ? ['blue', 'red'] : ['blue'];
    for (const name of names) {
      const values = [this.#pick('on-demand', 'on-demand', 'spot')];
      const paid = { key: labels.capacityType, operator: 'In' as const, values };
      await this.world.pool({ name, spec: this.#poolSpec(), template: { requirements: [paid] } });
    }
    for (let i = 0, count = 1 + this.#random.int(3); i < count; i++) {
      const workload = this.#workload(`app-${i}`);
      this.#deployments.push(workload);
      await this.world.apply(workload);
      await this.#protect(workload);
    }
  }

  #poolSpec(): Partial<NodePoolSpec> {
    const nodes = (): string => this.#pick('1', '2', '50%', '100%');
    return {
      disruption: {
        consolidateAfter: this.#pick('0s', '0s', '30s'),
        consolidationPolicy: this.#pick(
          'WhenEmpty',
          'WhenEmptyOrUnderutilized',
          'WhenEmptyOrUnderutilized',
          'Balanced',
        ),
        budgets: this.#pick(
          [],
          [{ nodes: nodes() }],
          [{ nodes: nodes() }, { nodes: nodes(), reasons: ['Underutilized'] }],
          [{ nodes: '0', reasons: [this.#pick('Empty', 'Underutilized', 'Drifted')] }],
        ),
      },
    };
  }

  #workload(name: string): Deployment {
    const base = deployment(name, 1 + this.#random.int(6), this.#pick('500m', '1', '1500m', '3'));
    const spread = {
      maxSkew: 1,
      topologyKey: labels.zone,
      whenUnsatisfiable: this.#pick('DoNotSchedule', 'ScheduleAnyway'),
      labelSelector: { matchLabels: { app: name } },
    };
    const { template } = base.spec!;
    const protects = this.#random.int(6) === 0;
    return {
      ...base,
      spec: {
        ...base.spec!,
        template: {
          metadata: {
            ...template.metadata,
            ...(protects ? { annotations: { [annotations.doNotDisrupt]: 'true' } } : {}),
          },
          spec: { ...template.spec!, ...(this.#random.int(3) === 0 ? { topologySpreadConstraints: [spread] } : {}) },
        },
      },
    };
  }

  async #protect({ metadata: { name } }: Deployment): Promise<void> {
    const maxUnavailable = this.#pick<number | string | undefined>(undefined, undefined, 0, 1, '50%');
    if (maxUnavailable === undefined) return;
    await this.world.apply({
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: name!, namespace: 'default' },
      spec: { maxUnavailable, selector: { matchLabels: { app: name! } } },
    });
  }

  /** Workloads grow and shrink, mostly shrink; sometimes a pool makes its nodes differently. */
  async #change(): Promise<void> {
    const { world } = this;
    const drifts = this.#random.int(4) === 0;
    for (const { metadata } of this.#deployments) {
      const replicas = this.#pick(0, 1, 1, 2, 3, 8);
      await world.workload.resource(kinds.Deployment).updateScale(metadata.name!, replicas, { namespace: 'default' });
    }
    if (!drifts) return;
    const pool = world.state.sources.nodePools.list()[0]!;
    const spec = { template: { metadata: { labels: { round: String(this.#random.int(1000)) } } } };
    await world.karpenter
      .resource({ group: 'karpenter.sh', version: 'v1', kind: 'NodePool', plural: 'nodepools', namespaced: false })
      .patch(pool.metadata.name!, { spec });
  }

  async #untilRunning(): Promise<void> {
    const { pods } = this.world.state.sources;
    const runs = (): boolean =>
      pods.list().every(({ metadata, status }) => !metadata.deletionTimestamp && status?.phase === 'Running');
    try {
      await this.world.advance(1000);
      await this.world.until(runs, 10 * minute);
    } catch {
      this.#validator.report('homeless', 'some pods have no place after ten minutes');
    }
  }

  /** With nobody changing anything the cluster comes to rest, and stays so. */
  async #rest(mostMinutes: number): Promise<void> {
    const { world } = this;
    let before = -1;
    for (let waited = 0; before !== this.#validator.commands; waited += 3) {
      if (waited > mostMinutes) {
        this.#validator.report('rest', `still moving after ${waited} minutes`);
        break;
      }
      before = this.#validator.commands;
      await world.advance(3 * minute);
    }
    await this.#validator.judgeRest();
    const [shape, commands] = [await shapeOf(world), this.#validator.commands];
    await world.advance(2 * minute);
    if ((await shapeOf(world)) !== shape || this.#validator.commands !== commands)
      this.#validator.report('quiet', `nothing changed, and ${shape} became ${await shapeOf(world)}`);
  }
}
