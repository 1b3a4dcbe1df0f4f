// SPDX-License-Identifier: Apache-2.0
// A problem file as something to plan disruption on: what `karpenter snapshot` wrote, a bug report, a benchmark.
import type { NodeClaim } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import type { Node, Pod, PodDisruptionBudget } from '../../kube/kinds.ts';
import { keyOf } from '../../kube/object.ts';
import type { Problem, ProblemState } from '../../scheduling/problem.ts';
import { comparePools } from '../../scheduling/templates.ts';
import { NodePods } from '../../state/node-pods.ts';
import { PodUsages } from '../../state/pod-usage.ts';
import { StateNode } from '../../state/state-node.ts';
import type { DisruptionSettings, DisruptionSnapshot, Machines } from './snapshot.ts';

/** The snapshot that a problem is. `now` counts when the problem does not say when it was taken. */
export function fileSnapshot(problem: Problem, settings: DisruptionSettings, now: number): DisruptionSnapshot {
  const taken = problem.now === undefined ? Number.NaN : Date.parse(problem.now);
  const moment = Number.isNaN(taken) ? now : taken;
  const machines = new FileMachines(problem, moment);
  const { preferencePolicy, minValuesPolicy } = settings;
  return {
    now: moment,
    machines,
    catalog: {
      // Whole NodePools go into problem files; the scheduler's own type names only what it reads.
      pools: [...problem.nodePools].sort(comparePools) as unknown as NodePool[],
      instanceTypes: problem.instanceTypes,
      labels: problem.labels ?? {},
      failures: [],
    },
    podDisruptionBudgets: (problem.podDisruptionBudgets ?? []) as unknown as PodDisruptionBudget[],
    settings,
    isQueued: () => false,
    problem: ({ candidates, closedToMoves, reservedOfferingMode }) => ({
      ...problem,
      settings: { ...problem.settings, preferencePolicy, minValuesPolicy, reservedOfferingMode },
      state: {
        ...problem.state,
        candidates: machines.namesOf(candidates),
        closedToMoves: machines.namesOf(closedToMoves),
      },
    }),
  };
}

/** The machines of a problem, as the state would know them. */
class FileMachines implements Machines {
  readonly #byKey = new Map<string, StateNode>();
  readonly #byPool = new Map<string, StateNode[]>();
  readonly #awaited = new Set<string>();

  readonly #now: number;

  constructor(problem: Problem, now: number) {
    this.#now = now;
    this.#read(problem);
    this.#remind(problem.state ?? {});
    for (const machine of this.#byKey.values()) {
      const pool = machine.nodePool;
      if (pool === undefined) continue;
      const known = this.#byPool.get(pool);
      if (known) known.push(machine);
      else this.#byPool.set(pool, [machine]);
    }
  }

  #read(problem: Problem): void {
    const pods = podsByNode(problem);
    for (const node of (problem.nodes ?? []) as unknown as Node[]) {
      const key = node.spec?.providerID ?? keyOf(node);
      this.#machine(key).replaceNode(node, pods.get(keyOf(node)) ?? new NodePods());
    }
    for (const claim of (problem.nodeClaims ?? []) as unknown as NodeClaim[]) {
      const machine = this.#machine(claim.status?.providerID || this.#keyOfNode(claim) || keyOf(claim));
      const on = machine.node ? keyOf(machine.node) : (claim.status?.nodeName ?? '');
      machine.replaceClaim(claim, pods.get(on) ?? new NodePods());
    }
  }

  /** What the API server does not know: marks and promises. */
  #remind({ markedForDeletion, nominations, promised }: ProblemState): void {
    const marked = new Set(markedForDeletion);
    const awaited = new Set(Object.values(promised ?? {}));
    for (const machine of this.#byKey.values()) {
      const names = [machine.node, machine.nodeClaim].flatMap((object) => object?.metadata.name ?? []);
      if (names.some((name) => marked.has(name))) machine.setMarked(true);
      const until = names.map((name) => nominations?.[name]).find((time) => time !== undefined);
      if (until !== undefined) machine.setNominatedUntil(Date.parse(until) || 0);
      const { name: claim } = machine.nodeClaim?.metadata ?? {};
      if (claim !== undefined && names.some((name) => awaited.has(name))) this.#awaited.add(claim);
    }
  }

  nodes(): Iterable<StateNode> {
    return this.#byKey.values();
  }

  nodesOfPool(pool: string): Iterable<StateNode> {
    return this.#byPool.get(pool) ?? [];
  }

  awaitedClaims(): ReadonlySet<string> {
    return this.#awaited;
  }

  /** A file gives times, of the moment it was taken. */
  isNominated(key: string): boolean {
    return this.#now < (this.#byKey.get(key)?.nominatedUntil ?? Number.NEGATIVE_INFINITY);
  }

  namesOf(keys: Iterable<string>): string[] {
    return [...keys].flatMap((key) => {
      const machine = this.#byKey.get(key);
      return (machine?.node ?? machine?.nodeClaim)?.metadata.name ?? [];
    });
  }

  #machine(key: string): StateNode {
    let machine = this.#byKey.get(key);
    if (!machine) this.#byKey.set(key, (machine = new StateNode(key, new NodePods())));
    return machine;
  }

  /** The key of the machine whose Node a NodeClaim without a provider id names. */
  #keyOfNode({ status }: NodeClaim): string | undefined {
    const name = status?.nodeName;
    if (!name) return undefined;
    for (const [key, { node }] of this.#byKey) if (node?.metadata.name === name) return key;
    return undefined;
  }
}

function podsByNode(problem: Problem): Map<string, NodePods> {
  const usages = new PodUsages();
  const pods = new Map<string, NodePods>();
  for (const pod of problem.pods as unknown as Pod[]) {
    const on = pod.spec?.nodeName;
    if (!on) continue;
    let known = pods.get(on);
    if (!known) pods.set(on, (known = new NodePods()));
    known.put(pod.metadata.uid ?? keyOf(pod), pod, (of) => usages.of(of));
  }
  return pods;
}
