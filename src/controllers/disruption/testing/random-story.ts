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
/** Within so many minutes whatever can be done is looked at. */
const longestLook = 6;

/** The methods of a program that is broken on purpose, in its world. */
export type Mutant = (world: TestWorld) => readonly Method[];

export interface StoryOptions {
  readonly mutant?: Mutant;
  /** Within so many minutes everything must have come to rest. */
  readonly restMinutes?: number;
  /** Without what came to the stories later: windows of budgets, deadlines of nodes, protection of nodes and for a time. */
  readonly isPlain?: boolean;
}

/** How often the window of a budget opens, and for how long. */
const windowEvery = 20;
const windowLasts = 10;
/** For how long some pods protect themselves. */
const protectedFor = 5;

/** Lives through the story of a seed, and judges it. */
export async function live(seed: number, options: StoryOptions = {}): Promise<Validator> {
  const story = new Story(seed, await testWorld({ live: true, seed }), options.isPlain === true);
  try {
    return await story.run(options.mutant, options.restMinutes ?? 30);
  } finally {
    await story.world.close();
  }
}

class Story {
  readonly world: TestWorld;
  readonly #random: SeededRandom;
  readonly #validator: Validator;
  readonly #deployments: Deployment[] = [];
  /** Chance of its own for what came later, so that seeds that once found something keep their clusters. */
  readonly #wide: SeededRandom | undefined;
  /** So many minutes may pass without a sign until time alone brings something new. */
  #longestPause = longestLook;

  constructor(seed: number, world: TestWorld, isPlain: boolean) {
    this.world = world;
    this.#random = new SeededRandom(seed);
    this.#wide = isPlain ? undefined : new SeededRandom(seed + 1_000_000);
    this.#validator = new Validator(world);
  }

  #pick<T>(...some: readonly T[]): T {
    return some[this.#random.int(some.length)]!;
  }

  /** One time in so many, in stories that are not plain. */
  #sometimes(oneIn: number): boolean {
    return this.#wide?.int(oneIn) === 0;
  }

  async run(mutant: Mutant | undefined, restMinutes: number): Promise<Validator> {
    const { world } = this;
    const { clusters, registry, clock, log, metrics, random, executor, settings } = world;
    const parts = { clusters, registry, clock, log, metrics, random, executor, settings };
    registerControllers(world.manager, mutant ? { ...parts, disruptionMethods: mutant(world) } : parts);
    await this.#furnish();
    await this.#untilRunning();
    for (let round = 0; round < 2; round++) {
      this.#validator.disturb();
      await this.#change();
      // Before anything that had to wait is decided.
      await world.advance(5000);
      await this.#validator.look();
      await world.advance(minute - 5000);
      await this.#pass(this.#random.int(3));
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
      const deadline = this.#sometimes(3) ? { terminationGracePeriod: this.#sometimes(2) ? '2m' : '10m' } : {};
      await this.world.pool({ name, spec: this.#poolSpec(), template: { requirements: [paid], ...deadline } });
    }
    for (let i = 0, count = 1 + this.#random.int(3); i < count; i++) {
      const workload = this.#workload(`app-${i}`);
      this.#deployments.push(workload);
      await this.world.apply(workload);
      await this.#protect(workload);
    }
  }

  /** A time in which fewer nodes may go. */
  #window(): NonNullable<NonNullable<NodePoolSpec['disruption']>['budgets']> {
    if (!this.#sometimes(4)) return [];
    this.#longestPause = windowEvery + longestLook;
    const reasons = this.#sometimes(2) ? { reasons: ['Underutilized' as const] } : {};
    const times = { schedule: `*/${windowEvery} * * * *`, duration: `${windowLasts}m` };
    return [{ nodes: this.#sometimes(2) ? '0' : '1', ...times, ...reasons }];
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
        budgets: [
          ...this.#pick<NonNullable<NonNullable<NodePoolSpec['disruption']>['budgets']>>(
            [],
            [{ nodes: nodes() }],
            [{ nodes: nodes() }, { nodes: nodes(), reasons: ['Underutilized'] }],
            [{ nodes: '0', reasons: [this.#pick('Empty', 'Underutilized', 'Drifted')] }],
          ),
          ...this.#window(),
        ],
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
    const protectsForATime = !protects && this.#sometimes(5);
    if (protectsForATime) this.#longestPause = Math.max(this.#longestPause, protectedFor + longestLook);
    const protection = protects ? 'true' : `${protectedFor}m`;
    return {
      ...base,
      spec: {
        ...base.spec!,
        template: {
          metadata: {
            ...template.metadata,
            ...(protects || protectsForATime ? { annotations: { [annotations.doNotDisrupt]: protection } } : {}),
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
    await this.#protectNodes();
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

  /** Somebody wants a node left alone, or does not any more. */
  async #protectNodes(): Promise<void> {
    for (const { metadata } of await this.world.nodes()) {
      if (!this.#sometimes(6)) continue;
      const own = metadata.annotations?.[annotations.doNotDisrupt] === undefined ? 'true' : null;
      const nodes = this.world.workload.resource(kinds.Node);
      await nodes.patch(metadata.name!, { metadata: { annotations: { [annotations.doNotDisrupt]: own } } });
    }
  }

  /** Minutes pass, and the validator looks at each of them. */
  async #pass(minutes: number): Promise<void> {
    for (let i = 0; i < minutes; i++) {
      await this.world.advance(minute);
      await this.#validator.look();
    }
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

  /**
   * With nobody changing anything the cluster comes to rest, and stays so. It may take five minutes until somebody looks at what little
   * changed (prospects.ts), and that a node is ten minutes old is a change: what was not worth its moves is then (calm.ts).
   */
  async #rest(mostMinutes: number): Promise<void> {
    const { world } = this;
    const most = mostMinutes + 3 * (this.#longestPause - longestLook);
    let still = 0;
    for (let waited = 0; still < this.#longestPause || this.#hasYoungNodes(); waited += longestLook) {
      if (still === 0 && waited > most) {
        this.#validator.report('rest', `still moving after ${waited} minutes`);
        break;
      }
      const before = this.#validator.commands;
      await this.#pass(longestLook);
      still = before === this.#validator.commands ? still + longestLook : 0;
    }
    await this.#validator.judgeRest();
    const [shape, commands] = [await shapeOf(world), this.#validator.commands];
    await world.advance(this.#longestPause * minute);
    if ((await shapeOf(world)) !== shape || this.#validator.commands !== commands)
      this.#validator.report('quiet', `nothing changed, and ${shape} became ${await shapeOf(world)}`);
  }

  #hasYoungNodes(): boolean {
    const now = this.world.clock.now();
    return this.world.state.sources.nodeClaims
      .list()
      .some(({ metadata }) => now - Date.parse(metadata.creationTimestamp ?? '') <= (10 + longestLook) * minute);
  }
}
