// SPDX-License-Identifier: Apache-2.0
// Watches what the program does to a cluster and judges it by the promises of disruption, from what the API server stores
// and the cloud sells alone. Knows nothing of how decisions are made.
import { durationMs } from '../../../api/duration.ts';
import { annotations, labels } from '../../../api/labels.ts';
import { type NodeClaim, nodeClaimKind } from '../../../api/node-claim.ts';
import { type NodePool, nodePoolKind } from '../../../api/node-pool.ts';
import { kinds, type Pod, type PodDisruptionBudget } from '../../../kube/kinds.ts';
import type { TransportRequest } from '../../../kube/transport.ts';
import type { TestWorld } from '../../testing/world.ts';

/** A promise, by its short name. */
export type Promised =
  | 'budget'
  | 'protection'
  | 'pdb'
  | 'eviction'
  | 'cost'
  | 'price'
  | 'told'
  | 'homeless'
  | 'rest'
  | 'quiet';

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

/** A moment at which nothing was under way: what all machines cost, and what had been disrupted up to then. */
interface Calm {
  readonly price: number;
  readonly disrupted: ReadonlyMap<string, number>;
}

/** Consolidation in the wide sense: what goes for these reasons is never the dearer for it. */
const saving: ReadonlySet<string> = new Set(['Empty', 'Underutilized']);

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
  /** Commands of consolidation that the log told of. */
  #consolidations = 0;
  #calm: Calm | undefined;

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

  /** Somebody changed something: what machines cost before says nothing about what they cost after. */
  disturb(): void {
    this.#calm = undefined;
  }

  /**
   * To be called now and then. Where nothing is under way, and nothing happened since the last such moment but consolidation,
   * all machines together cost no more than they did then: whatever was bought meanwhile was bought because of it.
   */
  async look(): Promise<void> {
    const claims = await this.#world.claims();
    const pods = await this.#world.pods();
    const isCalm =
      claims.every(
        (claim) =>
          claim.metadata.deletionTimestamp === undefined &&
          isTrue(claim, 'Initialized') &&
          !isTrue(claim, 'DisruptionReason'),
      ) &&
      pods.every(({ metadata, status }) => metadata.deletionTimestamp === undefined && status?.phase === 'Running');
    if (!isCalm) return;
    const price = claims.reduce((sum, claim) => sum + this.#priceOf(claim), 0);
    const before = this.#calm;
    this.#calm = { price, disrupted: new Map(this.disrupted) };
    if (!before || price <= before.price + 1e-9) return;
    const since = [...this.disrupted].filter(([reason, count]) => count !== (before.disrupted.get(reason) ?? 0));
    if (since.length > 0 && since.every(([reason]) => saving.has(reason)))
      this.#report('price', `machines cost ${before.price}, and ${price} after a consolidation`);
  }

  /** Judges what can only be seen at the end, when everything has come to rest. */
  async judgeRest(): Promise<void> {
    this.#readCommands();
    const begun = (await this.#world.metrics.series('karpenter_voluntary_disruption_decisions_total'))
      .filter(({ labels: of }) => of['reason'] === 'underutilized')
      .reduce((sum, { value }) => sum + value, 0);
    if (begun > this.#consolidations)
      this.#report('told', `${begun} consolidations began, and ${this.#consolidations} were read in the log`);
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
    // Exempt: the time of a node with a terminationGracePeriod is over, but for the grace period of the pod.
    if (method === 'DELETE' && (await this.#isForcedDeletionDue(pod))) return;
    if (method === 'DELETE') this.#report('eviction', `pod ${name} is deleted, not evicted`);
    if (isProtected(pod, this.#world.clock.now()))
      this.#report('protection', `pod ${name} is evicted, and must not be disrupted`);
  }

  async #isForcedDeletionDue({ spec }: Pod): Promise<boolean> {
    const claim = (await this.#world.claims()).find(({ status }) => status?.nodeName === spec.nodeName);
    const deadline = Date.parse(claim?.metadata.annotations?.[annotations.terminationTimestamp] ?? '');
    if (claim?.spec.terminationGracePeriod === undefined) return false;
    return this.#world.clock.now() >= deadline - (spec.terminationGracePeriodSeconds ?? 30) * 1000;
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
    const node = await this.#world.find(kinds.Node, claim.status?.nodeName ?? '');
    if (node?.metadata.annotations?.[annotations.doNotDisrupt] === 'true')
      this.#report('protection', `${claim.metadata.name} must not be disrupted`);
    // Exempt: drift begins although pods are protected where their node's time will be over.
    if (reason === 'Drifted' && claim.spec.terminationGracePeriod !== undefined) return;
    const pods = (await this.#world.pods()).filter(
      ({ spec, metadata }) => spec?.nodeName === claim.status?.nodeName && metadata.deletionTimestamp === undefined,
    );
    const budgets = await this.#world.list(kinds.PodDisruptionBudget);
    for (const pod of pods) {
      const who = `pod ${pod.metadata.name} on ${claim.metadata.name}`;
      if (isProtected(pod, this.#world.clock.now())) this.#report('protection', `${who} must not be disrupted`);
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
    const allowed = pool ? allowedFor(pool, reason, claims.length, this.#world.clock.now()) : 0;
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
      this.#consolidations++;
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

/** For good, or for a time since its start. */
function isProtected({ metadata, status }: Pod, now: number): boolean {
  const value = metadata.annotations?.[annotations.doNotDisrupt];
  if (value === undefined || value === 'true') return value === 'true';
  return status?.startTime === undefined || now < Date.parse(status.startTime) + (durationMs(value) ?? 0);
}

function covers({ spec, metadata }: PodDisruptionBudget, pod: Pod): boolean {
  const wanted = Object.entries(spec?.selector?.matchLabels ?? {});
  return (
    metadata.namespace === pod.metadata.namespace &&
    wanted.every(([key, value]) => pod.metadata.labels?.[key] === value)
  );
}

/** What the budgets of a pool say, by their documentation: the least of those that are about the reason. */
function allowedFor({ spec }: NodePool, reason: string, nodes: number, now: number): number {
  const budgets = (spec.disruption?.budgets ?? []).filter(
    ({ reasons, schedule, duration }) =>
      (!reasons?.length || (reasons as readonly string[]).includes(reason)) && isOpen(schedule, duration, now),
  );
  const numbers = budgets.map(({ nodes: text }) =>
    text.endsWith('%') ? Math.ceil((Number(text.slice(0, -1)) * nodes) / 100) : Number(text),
  );
  return Math.min(Number.POSITIVE_INFINITY, ...numbers);
}

/** Whether a window is open. Only windows that begin every so many minutes of an hour are understood. */
function isOpen(schedule: string | undefined, duration: string | undefined, now: number): boolean {
  if (schedule === undefined) return true;
  const every = Number(/^\*\/(\d+) \* \* \* \*$/.exec(schedule)?.[1]);
  if (!(60 % every === 0)) throw new Error(`the validator does not read ${schedule}`);
  return now % (every * 60_000) < (durationMs(duration ?? '') ?? 0);
}

/** All NodeClaims with their machines, as a text: the same text means that nothing happened. */
export async function shapeOf(world: TestWorld): Promise<string> {
  const claims = await world.list(nodeClaimKind as never as typeof nodeClaimKind);
  return claims.map(({ metadata }) => `${metadata.name}${metadata.deletionTimestamp ?? ''}`).join();
}
