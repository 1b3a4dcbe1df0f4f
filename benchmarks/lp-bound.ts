// SPDX-License-Identifier: Apache-2.0
// A lower bound on the price of any packing, by linear programming (HiGHS): machines may be bought in fractions and pods
// cut to pieces, but every resource of every machine must suffice for what is put on it.
import highs from 'highs';
import type { Pod } from '../src/scheduling/objects.ts';
import type { Problem } from '../src/scheduling/problem.ts';
import { amounts, subtract } from '../src/scheduling/testing/amounts.ts';
import { Pool } from '../src/scheduling/testing/catalogue.ts';
import { nodeTerms, podRequests, possiblyMatches } from '../src/scheduling/testing/pod-rules.ts';
import { missing } from '../src/scheduling/testing/values.ts';

// The types are of its CommonJS form: as a module, the default export is the loader itself.
const load = highs as unknown as typeof highs.default;

interface Launchable {
  readonly price: number;
  /** Room per resource, in units of the resource. */
  readonly room: readonly number[];
  /** Which demands may run here. */
  readonly takes: readonly boolean[];
}

/** Pods that are alike: what one needs, and how many there are. */
interface Demand {
  readonly pod: Pod;
  readonly needs: readonly number[];
  count: number;
}

/**
 * The bound for a problem without existing nodes and daemonsets. Rules between pods are left out, which can only make
 * it lower.
 */
export async function lowerBound(problem: Problem): Promise<{ price: number; columns: number }> {
  const demands = demandsOf(problem.pods);
  const resources = demands.names;
  const launches = problem.nodePools.flatMap((_, i) => launchesOf(new Pool(problem, i, []), demands.list, resources));
  const frontier = withoutDominated(launches);
  const solution = (await load()).solve(program(frontier, demands.list, resources.length), { presolve: 'on' });
  if (solution.Status !== 'Optimal') throw new Error(`the linear program ended ${solution.Status}`);
  return { price: solution.ObjectiveValue, columns: frontier.length };
}

function demandsOf(pods: readonly Pod[]): { list: Demand[]; names: string[] } {
  const names = new Set<string>();
  const byKind = new Map<string, { pod: Pod; count: number }>();
  for (const pod of pods) {
    const kind = JSON.stringify([
      pod.spec.containers,
      pod.spec.initContainers,
      pod.spec.nodeSelector,
      pod.spec.affinity?.nodeAffinity,
    ]);
    const known = byKind.get(kind);
    if (known) known.count++;
    else byKind.set(kind, { pod, count: 1 });
    for (const name of podRequests(pod.spec).keys()) names.add(name);
  }
  const sorted = [...names].sort();
  const list = [...byKind.values()].map(({ pod, count }) => {
    const requests = podRequests(pod.spec);
    return { pod, count, needs: sorted.map((n) => Number(requests.get(n) ?? 0n) / 1e9) };
  });
  return { list, names: sorted };
}

function launchesOf(pool: Pool, demands: readonly Demand[], resources: readonly string[]): Launchable[] {
  return pool.launches([], pool.types.keys(), new Set()).map((launch) => {
    const room = subtract(launch.allocatable, amounts({}));
    const numbers = resources.map((n) => Number(room.get(n) ?? 0n) / 1e9);
    return {
      price: launch.price,
      room: numbers,
      takes: demands.map(
        (d) =>
          d.needs.every((need, i) => need <= numbers[i]!) &&
          possiblyMatches(nodeTerms(d.pod.spec), (key) => launch.labels.get(key) ?? missing),
      ),
    };
  });
}

/** Drops what another launch does at least as well per unit of money, for at least the same pods. */
function withoutDominated(launches: readonly Launchable[]): Launchable[] {
  const kept: Launchable[] = [];
  const perPrice = (l: Launchable, r: number) => l.room[r]! / l.price;
  const dominates = (a: Launchable, b: Launchable) =>
    a.room.every((_, r) => perPrice(a, r) >= perPrice(b, r)) && b.takes.every((take, d) => !take || a.takes[d]!);
  for (const candidate of launches) {
    if (kept.some((k) => dominates(k, candidate))) continue;
    for (let i = kept.length - 1; i >= 0; i--) if (dominates(candidate, kept[i]!)) kept.splice(i, 1);
    kept.push(candidate);
  }
  return kept;
}

/** The program in CPLEX's LP format: x machines of each launch, y pods of each demand on each launch. */
function program(launches: readonly Launchable[], demands: readonly Demand[], resources: number): string {
  const lines = ['Minimize', ` cost: ${launches.map((l, i) => `${l.price} x${i}`).join(' + ')}`, 'Subject To'];
  demands.forEach((d, g) => {
    const terms = launches.flatMap((l, i) => (l.takes[g] ? [`y${g}_${i}`] : []));
    if (terms.length > 0) lines.push(` all${g}: ${terms.join(' + ')} = ${d.count}`);
  });
  launches.forEach((l, i) => {
    for (let r = 0; r < resources; r++) {
      // Memory in GiB: numbers near one keep the solver exact.
      const scale = l.room[r]! > 1e6 ? 2 ** -30 : 1;
      const used = demands.flatMap((d, g) =>
        l.takes[g] && d.needs[r]! > 0 ? [`${d.needs[r]! * scale} y${g}_${i}`] : [],
      );
      if (used.length > 0) lines.push(` room${i}_${r}: ${used.join(' + ')} - ${l.room[r]! * scale} x${i} <= 0`);
    }
  });
  lines.push('End');
  // One term per line: some readers limit the length of lines.
  return lines.join('\n').replaceAll(' + ', '\n + ');
}
