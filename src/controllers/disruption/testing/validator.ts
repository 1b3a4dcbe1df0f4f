// SPDX-License-Identifier: Apache-2.0
// Watches what the program does to a cluster and judges it by the promises of disruption, from what the API server stores
// and the cloud sells alone. Knows nothing of how decisions are made.
import { annotations, labels } from '../../../api/labels.ts';
import { type NodeClaim, nodeClaimKind } from '../../../api/node-claim.ts';
import { type NodePool, nodePoolKind } from '../../../api/node-pool.ts';
import { kinds, type Pod, type PodDisruptionBudget } from '../../../kube/kinds.ts';
import type { TransportRequest } from '../../../kube/transport.ts';
import type { TestWorld } from '../../testing/world.ts';

/** A promise, by its short name. */
export type Promised = 'budget' | 'protection' | 'pdb' | 'eviction' | 'cost' | 'homeless' | 'rest' | 'quiet';

export interface Violation {
  readonly promise: Promised;
  readonly message: string;
}

/** A command of consolidation: what went, what was bought for it. */
interface Trade {
  readonly gone: readonly string[];
  readonly bought: string[];
  wanted: number;
  readonly at: number;
}

/** What the program says when it begins a command. */
const beginning = 'disrupting node(s)';

/** Judges one world from its construction on. */
export class Validator {
  readonly violations: Violation[] = [];
  /** How many machines were disrupted, by reason. */
  readonly disrupted = new Map<string, number>();
  readonly #world: TestWorld;
  /** Names of NodeClaims that a command is about. */
  readonly #begun = new Set<string>();
  /** What machines cost an hour, by NodeClaim; also of those that are gone. */
  readonly #prices = new Map<string, number>();
  readonly #trades: Trade[] = [];
  #readLines = 0;

  constructor(world: TestWorld) {
    this.#world = world;
    world.doors.workload.handleWrites(async (send, request) => {
      await this.#before(request);
      const answer = await send();
      if (answer.status < 300) await this.#after(request, answer.body);
      return answer;
    });
  }

  /** How many commands have begun. */
  get commands(): number {
    return this.#world.log.lines.filter(({ message }) => message === beginning).length;
  }

  /** What all machines cost an hour. */
  async price(): Promise<number> {
    const claims = await this.#world.claims();
    return claims.reduce((sum, claim) => sum + this.#priceOf(claim), 0);
  }

  /** Judges what can only be seen at the end, when everything has come to rest. */
  async judgeRest(): Promise<void> {
    for (const { metadata, status } of await this.#world.pods())
      if (status?.phase !== 'Running') this.#report('homeless', `pod ${metadata.name} has no place`);
    for (const { gone, bought, wanted } of this.#trades) {
      // A replacement that never came up: the command was given up, and nothing was traded.
      if (wanted > 0 || bought.some((name) => !this.#prices.has(name))) continue;
      const sum = (names: readonly string[]): number =>
        names.reduce((total, name) => total + (this.#prices.get(name) ?? 0), 0);
      if (sum(bought) >= sum(gone) - 1e-9)
        this.#report('cost', `${gone.join()} cost ${sum(gone)}, ${bought.join()} that replaced them ${sum(bought)}`);
    }
  }

  report(promise: Promised, message: string): void {
    this.#report(promise, message);
  }

  #report(promise: Promised, message: string): void {
    this.violations.push({ promise, message: `${new Date(this.#world.clock.now()).toISOString()} ${message}` });
  }

  async #before({ method, path }: TransportRequest): Promise<void> {
    const [, namespace = '', name = '', eviction] =
      /\/namespaces\/([^/]+)\/pods\/([^/]+)(\/eviction)?$/.exec(path) ?? [];
    if (!name || (method !== 'DELETE' && !eviction)) return;
    const pod = await this.#world.find(kinds.Pod, name, namespace);
    if (!pod || pod.metadata.deletionTimestamp !== undefined) return;
    if (method === 'DELETE') this.#report('eviction', `pod ${name} is deleted, not evicted`);
    if (isProtected(pod)) this.#report('protection', `pod ${name} is evicted, and must not be disrupted`);
  }

  async #after({ method, path }: TransportRequest, body: unknown): Promise<void> {
    if (!/\/nodeclaims(\/|$)/.test(path)) return;
    this.#readCommands();
    const claim = body as NodeClaim;
    const name = claim.metadata.name ?? '';
    this.#priceOf(claim);
    if (method === 'POST') this.#bought(name);
    const reason = claim.status?.conditions?.find(
      ({ type, status }) => type === 'DisruptionReason' && status === 'True',
    );
    if (!reason) this.#begun.delete(name);
    else if (!this.#begun.has(name)) await this.#judgeStart(claim, reason.reason ?? '');
  }

  /** A command takes hold of a machine. */
  async #judgeStart(claim: NodeClaim, reason: string): Promise<void> {
    this.#begun.add(claim.metadata.name ?? '');
    this.disrupted.set(reason, (this.disrupted.get(reason) ?? 0) + 1);
    await this.#judgeBudget(claim, reason);
    const pods = (await this.#world.pods()).filter(
      ({ spec, metadata }) => spec?.nodeName === claim.status?.nodeName && metadata.deletionTimestamp === undefined,
    );
    const budgets = await this.#world.list(kinds.PodDisruptionBudget);
    for (const pod of pods) {
      const who = `pod ${pod.metadata.name} on ${claim.metadata.name}`;
      if (isProtected(pod)) this.#report('protection', `${who} must not be disrupted`);
      const over = budgets.filter((budget) => covers(budget, pod));
      if (over.some(({ status }) => (status?.disruptionsAllowed ?? 0) < 1))
        this.#report('pdb', `${who} may not be evicted now`);
    }
  }

  async #judgeBudget(claim: NodeClaim, reason: string): Promise<void> {
    const poolName = claim.metadata.labels?.[labels.nodePool] ?? '';
    const pool = await this.#world.find(nodePoolKind, poolName);
    const claims = (await this.#world.claims()).filter(
      (one) =>
        one.metadata.labels?.[labels.nodePool] === poolName &&
        isTrue(one, 'Initialized') &&
        !isTrue(one, 'InstanceTerminating'),
    );
    const going = claims.filter(
      (one) => one.metadata.deletionTimestamp !== undefined || isTrue(one, 'DisruptionReason'),
    );
    const allowed = pool ? allowedFor(pool, reason, claims.length) : 0;
    if (going.length > allowed)
      this.#report(
        'budget',
        `${going.length} of ${claims.length} nodes of ${poolName} go, the last for ${reason}: ${allowed} may`,
      );
  }

  /** New lines of the log that tell of commands. */
  #readCommands(): void {
    const { lines } = this.#world.log;
    for (; this.#readLines < lines.length; this.#readLines++) {
      const { message, fields } = lines[this.#readLines]!;
      if (message !== beginning || fields['reason'] !== 'underutilized') continue;
      const nodes = fields['disrupted-nodes'] as { NodeClaim: { name: string } }[];
      const wanted = fields['replacement-node-count'] as number;
      if (wanted > 0)
        this.#trades.push({
          gone: nodes.map(({ NodeClaim: { name } }) => name),
          bought: [],
          wanted,
          at: this.#world.clock.now(),
        });
    }
  }

  /** Replacements are asked for in the moment their command begins. */
  #bought(name: string): void {
    const trade = this.#trades.find(({ wanted, at }) => wanted > 0 && at === this.#world.clock.now());
    if (!trade) return;
    trade.wanted--;
    trade.bought.push(name);
  }

  #priceOf(claim: NodeClaim): number {
    const { name = '', labels: own = {} } = claim.metadata;
    const type = this.#world.cloud.types.find((one) => one.name === own[labels.instanceType]);
    const offering = type?.offerings.find(({ requirements }) =>
      requirements.every(({ key, values }) => values?.includes(own[key] ?? '')),
    );
    if (offering) this.#prices.set(name, offering.price);
    return offering?.price ?? 0;
  }
}

const isTrue = ({ status }: NodeClaim, type: string): boolean =>
  status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false;

const isProtected = ({ metadata }: Pod): boolean => metadata.annotations?.[annotations.doNotDisrupt] === 'true';

function covers({ spec, metadata }: PodDisruptionBudget, pod: Pod): boolean {
  const wanted = Object.entries(spec?.selector?.matchLabels ?? {});
  return (
    metadata.namespace === pod.metadata.namespace &&
    wanted.every(([key, value]) => pod.metadata.labels?.[key] === value)
  );
}

/** What the budgets of a pool say, by their documentation: the least of those that are about the reason. */
function allowedFor({ spec }: NodePool, reason: string, nodes: number): number {
  const budgets = (spec.disruption?.budgets ?? []).filter(
    ({ reasons }) => !reasons?.length || (reasons as readonly string[]).includes(reason),
  );
  const numbers = budgets.map(({ nodes: text }) =>
    text.endsWith('%') ? Math.ceil((Number(text.slice(0, -1)) * nodes) / 100) : Number(text),
  );
  return Math.min(Number.POSITIVE_INFINITY, ...numbers);
}

/** All NodeClaims with their machines, as a text: the same text means that nothing happened. */
export async function shapeOf(world: TestWorld): Promise<string> {
  const claims = await world.list(nodeClaimKind as never as typeof nodeClaimKind);
  return claims.map(({ metadata }) => `${metadata.name}${metadata.deletionTimestamp ?? ''}`).join();
}
