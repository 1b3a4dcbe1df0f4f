// SPDX-License-Identifier: Apache-2.0
// Disruption on real EC2 types and prices: how long a pass over a large cluster takes, and how near to the bound a cluster
// gets that was scaled down at random.
import { labels } from '../src/api/labels.ts';
import { SeededRandom } from '../src/base/random.ts';
import { finish } from '../src/base/steps.ts';
import { Consolidation } from '../src/controllers/disruption/consolidation.ts';
import { fileSnapshot } from '../src/controllers/disruption/file-snapshot.ts';
import { defaultMethods } from '../src/controllers/disruption/index.ts';
import type { Proposal } from '../src/controllers/disruption/method.ts';
import { Pass } from '../src/controllers/disruption/plan.ts';
import { Quantity } from '../src/kube/quantity.ts';
import { defaultInstanceTypes } from '../src/providers/kwok/instance-types.ts';
import { coreSettings, defaultSettings } from '../src/runtime/settings.ts';
import type { Node, NodeClaim, NodePool, Pod } from '../src/scheduling/objects.ts';
import type { NewNodeClaim, Problem } from '../src/scheduling/problem.ts';
import { consolidate } from '../src/scheduling/removal/consolidate.ts';
import { courses, LikelyPlacement } from '../src/scheduling/removal/likely.ts';
import { solve } from '../src/scheduling/solve.ts';
import { nodePool } from '../src/scheduling/testing/builders.ts';
import { validate } from '../src/scheduling/testing/validator.ts';
import { awsPacking, zones as awsZones, knowsAws } from './aws.ts';
import { quietPasses } from './disruption-live.ts';
import { lowerBound } from './lp-bound.ts';
import { lowerIsBetter, median, type Progress, type Row, round, type Wanted } from './rows.ts';

const settings = defaultSettings(coreSettings);
const start = Date.UTC(2026, 0, 1);
const mostRounds = 30;
const kwokZones = ['test-zone-a', 'test-zone-b', 'test-zone-c', 'test-zone-d'];

/** Measures. */
export async function rows(progress: Progress, wanted: Wanted): Promise<Row[]> {
  const found: Row[] = [];
  if (wanted('disruption/pass-5000')) found.push(...passes(progress));
  if (wanted('disruption/unchanged-5000')) found.push(...(await quietPasses(5000, progress)));
  for (const nodes of [100, 1000, 5000]) {
    for (const carriedOut of ['as planned', 'as placed'] as const) {
      const name = `disruption/aws-${nodes}${carriedOut === 'as placed' ? '-placed' : ''}-vs-bound`;
      if (wanted(name)) found.push(await settled(name, nodes, carriedOut, progress));
    }
  }
  return found;
}

/** 5,000 nodes and 50,000 pods, 5,000 others gone: one full pass, and how long it holds the process at a time. */
function passes(progress: Progress): Row[] {
  const cluster = uniform(5000, 10);
  progress(`${cluster.nodes.length} nodes, ${cluster.pods.length} pods`);
  const times: number[] = [];
  let proposals: readonly Proposal[] = [];
  for (let i = 0; i < 3; i++) {
    // In CPU time: what else runs on the machine must not count.
    const problem = cluster.problem();
    const begun = process.cpuUsage();
    proposals = look(problem);
    const { user, system } = process.cpuUsage(begun);
    times.push((user + system) / 1000);
    progress(`pass: ${times.at(-1)!.toFixed(0)} ms, ${proposals.length} commands`);
  }
  const going = proposals.reduce((sum, { candidates }) => sum + candidates.length, 0);
  const holds = Array.from({ length: 5 }, () => longestHold(cluster.problem()));
  return [
    lowerIsBetter(
      'disruption/pass-5000',
      'ms',
      median(times),
      null,
      `${cluster.pods.length} pods, ${proposals.length} commands, ${going} nodes go; ${knowsAws() ? "EC2's" : "KWOK's"} types`,
    ),
    lowerIsBetter(
      'disruption/hold-5000',
      'ms',
      median(holds),
      null,
      'the longest that a search holds the process at a time',
    ),
  ];
}

/** The longest of the slices of ten milliseconds in which a search runs, in CPU time: a step that takes longer is not cut. */
function longestHold(problem: Problem): number {
  const method = new Consolidation();
  const { view } = new Pass(fileSnapshot(problem, settings, start)).evaluate(method);
  const steps = method.proposeInSteps(view);
  let [longest, done] = [0, false];
  while (!done) {
    const begun = process.cpuUsage();
    for (let held = 0; held < 10 && !done; ) {
      done = steps.next().done === true;
      const { user, system } = process.cpuUsage(begun);
      held = (user + system) / 1000;
      longest = Math.max(longest, held);
    }
  }
  return longest;
}

/**
 * A cluster that was packed for many pods, of which three quarters went: what it costs when nothing is left to do. `as planned`: pods
 * go where the search for cheaper nodes has them; `as placed`: the controller's methods decide, and kube-scheduler places pods.
 */
async function settled(
  name: string,
  nodes: number,
  carriedOut: 'as planned' | 'as placed',
  progress: Progress,
): Promise<Row> {
  const cluster = scaledDown(nodes);
  const before = cluster.price;
  const bound = await lowerBound(cluster.asPending());
  let [removed, evictions, rounds] = [0, 0, 0];
  for (; rounds < mostRounds; rounds++) {
    const moves = carriedOut === 'as planned' ? cluster.carryOutAsPlanned() : cluster.carryOut(look(cluster.problem()));
    if (moves.nodes === 0) break;
    removed += moves.nodes;
    evictions += moves.pods;
    const times = (cluster.price / bound.price).toFixed(4);
    progress(
      `${name} round ${rounds + 1}: ${moves.nodes} nodes go, ${cluster.nodes.length} are left, ${times} × bound`,
    );
  }
  return {
    name,
    unit: '× bound',
    ours: round(cluster.price / bound.price),
    upstream: null,
    ratio: null,
    detail: `${round(before)} to ${round(cluster.price)} $/h, bound ${round(bound.price)}; ${rounds} rounds, ${removed} nodes removed, ${evictions} evictions`,
  };
}

/** What all methods propose now. */
function look(problem: Problem): readonly Proposal[] {
  const pass = new Pass(fileSnapshot(problem, settings, start));
  const chosen = new Set<string>();
  const all: Proposal[] = [];
  for (const method of defaultMethods()) {
    const { view } = pass.evaluate(method, { not: new Set(chosen) });
    if (view.candidates.length === 0) continue;
    for (const proposal of method.propose(view)) {
      all.push(proposal);
      for (const { machine } of proposal.candidates) chosen.add(machine.key);
    }
  }
  return all;
}

interface Machine {
  readonly name: string;
  readonly type: string;
  readonly zone: string;
  readonly capacityType: string;
  readonly price: number;
}

/** How many nodes go, and how many pods move. */
interface Moves {
  readonly nodes: number;
  readonly pods: number;
}

/** A cluster in memory: commands are carried out at once. */
class Cluster {
  readonly #base: Problem;
  nodes: Machine[] = [];
  pods: Pod[];
  #count = 0;
  #commands = 0;

  constructor(base: Problem, pods: Pod[]) {
    this.#base = base;
    this.pods = pods;
  }

  get price(): number {
    return this.nodes.reduce((sum, { price }) => sum + price, 0);
  }

  add(type: string, zone: string, capacityType: string): string {
    const spec = this.#types.get(type)!;
    const offering = spec.offerings.find(
      ({ requirements }) =>
        requirements.some(({ values }) => values?.[0] === zone) &&
        requirements.some(({ values }) => values?.[0] === capacityType),
    );
    const name = `node-${this.#count++}`;
    this.nodes.push({ name, type, zone, capacityType, price: offering!.price });
    return name;
  }

  /** The machine that the cloud would launch: the cheapest of the plan. */
  launch({ requirements, instanceTypes }: NewNodeClaim): string {
    let best: { type: string; zone: string; capacityType: string; price: number } | undefined;
    const allowed = (key: string, value: string): boolean =>
      requirements.every((one) => one.key !== key || one.operator !== 'In' || (one.values ?? []).includes(value));
    for (const type of instanceTypes.slice(0, 60)) {
      for (const { requirements: own, price } of this.#types.get(type)!.offerings) {
        const zone = own.find(({ key }) => key === labels.zone)?.values?.[0] ?? '';
        const capacityType = own.find(({ key }) => key === labels.capacityType)?.values?.[0] ?? '';
        if (!allowed(labels.zone, zone) || !allowed(labels.capacityType, capacityType)) continue;
        if (!best || price < best.price) best = { type, zone, capacityType, price };
      }
    }
    return this.add(best!.type, best!.zone, best!.capacityType);
  }

  get #types() {
    return typeMaps.get(this.#base)!;
  }

  /** One search with the rule that a replacement has to cost less, and every pod where it has them. */
  carryOutAsPlanned(): Moves {
    const commands = finish(
      consolidate({
        problem: { ...this.problem(), state: { candidates: this.nodes.map(({ name }) => name) } },
        removable: this.nodes.map(({ name, price, zone }) => ({ node: name, pool: 'aws', price, zone })),
        budget: () => Number.POSITIVE_INFINITY,
        approve: (nodes, claims) => (sumOf(claims) < sumOf(nodes) * (1 - 1e-9) ? claims : 'no cheaper'),
      }),
    );
    const gone = new Set(commands.flatMap(({ nodes }) => nodes.map(({ node }) => node)));
    const where = new Map<string, string>();
    for (const { claims, placements } of commands) {
      for (const { pod, node } of placements) if (node !== undefined) where.set(pod, node);
      for (const claim of claims) {
        const name = this.launch(claim);
        for (const pod of claim.pods) where.set(pod, name);
      }
    }
    this.nodes = this.nodes.filter(({ name }) => !gone.has(name));
    this.#bind(where);
    this.#seeThatAllRun();
    return { nodes: gone.size, pods: where.size };
  }

  /** The judge of the scheduler looks at every pod where it is. */
  #seeThatAllRun(): void {
    const byNode = Map.groupBy(this.pods, ({ spec }) => spec.nodeName ?? '');
    const { violations } = validate(
      { ...this.problem(), pods: this.pods.map(unbound) },
      {
        newNodeClaims: [],
        existingNodes: [...byNode].map(([name, pods]) => ({ name, pods: pods.map(keyOfPod) })),
        placements: this.pods.map((pod) => ({ pod: keyOfPod(pod), target: { node: pod.spec.nodeName ?? '' } })),
        errors: [],
      },
    );
    const [first] = violations;
    if (first) throw new Error(`${violations.length} violations: ${first.pod}: ${first.rule}: ${first.detail}`);
  }

  carryOut(proposals: readonly Proposal[]): Moves {
    const moved = proposals.flatMap(({ candidates }) => candidates);
    const gone = new Set(moved.map(({ machine }) => machine.name));
    for (const { replacements } of proposals) for (const plan of replacements) this.launch(plan);
    // Where kube-scheduler would put them, which knows nothing of plans.
    const { placed, newNodeClaims, failed } = new LikelyPlacement({
      ...this.problem(),
      state: { candidates: [...gone] },
    }).outcome(courses[this.#commands++ % courses.length]!);
    if (failed.length > 0) throw new Error(`${failed.length} pods have no place`);
    this.nodes = this.nodes.filter(({ name }) => !gone.has(name));
    const where = new Map<string, string>();
    for (const [name, pods] of placed) for (const pod of pods) where.set(pod, name);
    for (const plan of newNodeClaims) {
      const name = this.launch(plan);
      for (const pod of plan.pods) where.set(pod, name);
    }
    this.#bind(where);
    return { nodes: gone.size, pods: moved.reduce((sum, { reschedulablePods }) => sum + reschedulablePods.length, 0) };
  }

  #bind(where: ReadonlyMap<string, string>): void {
    this.pods = this.pods.map((pod) => {
      const node = where.get(keyOfPod(pod));
      return node === undefined ? pod : { ...pod, spec: { ...pod.spec, nodeName: node }, status: { phase: 'Running' } };
    });
  }

  /** Places what waits, as the scheduler and the provisioner would. */
  place(): void {
    const problem = this.problem();
    const result = solve(problem);
    const where = new Map<string, string>();
    for (const { name, pods } of result.existingNodes) for (const pod of pods) where.set(pod, name);
    for (const plan of result.newNodeClaims) {
      const name = this.launch(plan);
      for (const pod of plan.pods) where.set(pod, name);
    }
    if (result.errors.length > 0) throw new Error(`${result.errors.length} pods have no place`);
    this.#bind(where);
  }

  asPending(): Problem {
    return { ...this.#base, pods: this.pods.map(unbound) };
  }

  problem(): Problem {
    const nodes = this.nodes.map((machine) => nodeOf(machine, this.#types.get(machine.type)!));
    return {
      ...this.#base,
      now: new Date(start).toISOString(),
      nodes,
      nodeClaims: nodes.map(claimOf),
      pods: this.pods,
    };
  }
}

const typeMaps = new WeakMap<Problem, Map<string, Problem['instanceTypes'][string][number]>>();

function baseProblem(problem: Problem, budget: string): Problem {
  const nodePools = problem.nodePools.map(
    (pool): NodePool =>
      ({
        ...pool,
        spec: { ...pool.spec, disruption: { consolidateAfter: '0s', budgets: [{ nodes: budget }] } },
      }) as NodePool,
  );
  // Spot nodes are left out: a lone one is replaced by spot only with much to choose from, which the bound does not know.
  const onDemand = Object.fromEntries(
    Object.entries(problem.instanceTypes).map(([pool, types]) => [
      pool,
      types.map((type) => ({
        ...type,
        offerings: type.offerings.filter(({ requirements }) =>
          requirements.some(({ values }) => values?.[0] === 'on-demand'),
        ),
      })),
    ]),
  );
  const base = { ...problem, nodePools, instanceTypes: onDemand };
  typeMaps.set(
    base,
    new Map(Object.values(base.instanceTypes).flatMap((types) => types.map((type) => [type.name, type]))),
  );
  return base;
}

/** About so many nodes, made for four times the pods they have now. */
function scaledDown(nodes: number, seed = 1): Cluster {
  const random = new SeededRandom(seed);
  const base = baseProblem(awsPacking(Math.round(nodes * 12), seed), '100%');
  // Machines of up to 16 CPUs only, so that there are as many as asked for.
  const small = Object.fromEntries(
    Object.entries(base.instanceTypes).map(([pool, types]) => [
      pool,
      types.filter(({ capacity }) => Quantity.parse(capacity['cpu'] ?? 0).toNumber() <= 16),
    ]),
  );
  const limited = { ...base, instanceTypes: small };
  typeMaps.set(limited, typeMaps.get(base)!);
  const cluster = new Cluster(limited, [...limited.pods]);
  cluster.place();
  cluster.pods = cluster.pods.filter(() => random.int(4) === 0);
  return cluster;
}

/** Where the facts of EC2 are not at hand: what KWOK sells. */
function kwokProblem(): Problem {
  const types = defaultInstanceTypes();
  const keys = new Set(types.flatMap(({ requirements }) => requirements.map(({ key }) => key)));
  const wellKnown = [...keys].filter((key) => key.startsWith('karpenter.kwok.sh/')).sort();
  return { nodePools: [nodePool('aws')], instanceTypes: { aws: types }, labels: { aws: { wellKnown } }, pods: [] };
}

/** Nodes of one type with so many pods each on average: one more when they were bought, and as many as there are nodes are gone. */
function uniform(nodes: number, podsPerNode: number): Cluster {
  const random = new SeededRandom(2);
  const [problem, type, zones] = knowsAws()
    ? ([awsPacking(0, 3), 'm5.2xlarge', awsZones] as const)
    : ([kwokProblem(), 'm-8x-amd64-linux', kwokZones] as const);
  const cluster = new Cluster(baseProblem(problem, '10%'), []);
  const most = podsPerNode + 1;
  const gone = new Set<number>();
  while (gone.size < nodes) gone.add(random.int(nodes * most));
  for (let i = 0; i < nodes; i++) {
    const name = cluster.add(type, zones[i % zones.length]!, 'on-demand');
    for (let p = 0; p < most; p++) {
      const index = i * most + p;
      if (gone.has(index)) continue;
      const requests = { cpu: `${500 + 50 * random.int(5)}m`, memory: `${1 + random.int(3)}Gi` };
      cluster.pods.push({
        metadata: {
          name: `pod-${index}`,
          namespace: 'default',
          uid: `uid-${index}`,
          labels: { app: `app-${index % 50}` },
        },
        spec: { nodeName: name, containers: [{ name: 'main', resources: { requests } }] },
        status: { phase: 'Running' },
      });
    }
  }
  return cluster;
}

function keyOfPod({ metadata }: Pod): string {
  return `${metadata.namespace ?? 'default'}/${metadata.name}`;
}

function sumOf(priced: readonly { readonly price: number }[]): number {
  return priced.reduce((sum, { price }) => sum + price, 0);
}

function unbound(pod: Pod): Pod {
  const { nodeName: _, ...spec } = pod.spec;
  return { ...pod, spec, status: { phase: 'Pending' } };
}

function nodeOf(machine: Machine, type: Problem['instanceTypes'][string][number]): Node {
  const own: Record<string, string> = {};
  for (const { key, values } of type.requirements) if (values?.length === 1) own[key] = values[0]!;
  return {
    metadata: {
      name: machine.name,
      labels: {
        ...own,
        [labels.nodePool]: 'aws',
        [labels.instanceType]: machine.type,
        [labels.zone]: machine.zone,
        [labels.capacityType]: machine.capacityType,
        [labels.registered]: 'true',
        [labels.initialized]: 'true',
        [labels.hostname]: machine.name,
      },
    },
    spec: { providerID: `aws:///${machine.name}` },
    status: {
      capacity: type.capacity,
      allocatable: type.capacity,
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  };
}

function claimOf(node: Node): NodeClaim {
  const conditions = ['Launched', 'Registered', 'Initialized', 'Consolidatable'].map((type) => ({
    type,
    status: 'True',
  }));
  return {
    metadata: { name: node.metadata.name!, labels: node.metadata.labels! },
    spec: { requirements: [] },
    status: { nodeName: node.metadata.name!, providerID: node.spec!.providerID!, conditions },
  };
}
