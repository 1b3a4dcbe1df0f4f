// SPDX-License-Identifier: Apache-2.0
// The cluster as the audience sees it: pods, machines and what they cost, and the moments when they change.
import { getCondition, hasTrueConditions, nodeClaimConditions, readyCondition } from '../../api/conditions.ts';
import { labels } from '../../api/labels.ts';
import { type NodeClaim, nodeClaimKind } from '../../api/node-claim.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import { kinds, type Node, type Pod } from '../../kube/kinds.ts';
import { type Bought, type DemoEvent, dollars, type PodCounts, type Purchase, seconds } from './events.ts';
import type { PriceList } from './price-list.ts';

/** A machine that was asked for. */
export interface Machine {
  readonly nodeClaim: string;
  /** Empty until it was bought. */
  readonly instanceType: string;
  readonly capacityType: string;
  readonly zone: string;
  readonly pricePerHour: number;
  readonly state: 'ordered' | 'joining' | 'ready' | 'leaving';
  readonly pods: number;
}

/** One moment. */
export interface World {
  readonly pods: PodCounts;
  /** Running pods by zone: every zone with a bought machine is in it. */
  readonly podsByZone: ReadonlyMap<string, number>;
  /** In the order they were asked for. */
  readonly machines: readonly Machine[];
  /** Nodes, those that were not bought included. */
  readonly nodes: number;
  readonly pricePerHour: number;
}

export interface WatcherOptions {
  /** Where NodeClaims are. */
  readonly karpenter: KubeClient;
  /** Where Nodes and Pods are. */
  readonly workload: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly prices: PriceList;
  readonly emit: (event: DemoEvent) => void;
}

/** The audience looks at most this often. */
const stateEveryMs = 100;

/** A machine's story so far. */
interface Story {
  bought?: Bought;
  readyAt?: number;
  reason?: string;
  goneAt?: number;
}

interface PodStory {
  readonly askedAt: number;
  runningAt?: number;
}

/** Watches the namespace `default`, the nodes and the NodeClaims, and tells what happens. */
export class Watcher {
  readonly #options: WatcherOptions;
  readonly #pods: Informer<Pod>;
  readonly #nodes: Informer<Node>;
  readonly #claims: Informer<NodeClaim>;
  readonly #stories = new Map<string, Story>();
  readonly #podStories = new Map<string, PodStory>();
  readonly #waiting = new Set<() => void>();
  readonly #start: number;
  #world: World | undefined;
  #told = '';
  #timer: Timer | undefined;
  #most = { machines: 0, pricePerHour: 0 };

  constructor(options: WatcherOptions) {
    this.#options = options;
    const { karpenter, workload, clock, random } = options;
    this.#start = clock.monotonic();
    this.#pods = new Informer({ client: workload, type: kinds.Pod, namespace: 'default', clock, random });
    this.#nodes = new Informer({ client: workload, type: kinds.Node, clock, random });
    this.#claims = new Informer({ client: karpenter, type: nodeClaimKind, clock, random });
    const podChanged = (pod: Pod): void => this.#podChanged(pod);
    this.#pods.addHandler({ added: podChanged, updated: podChanged, deleted: () => this.#changed() });
    const nodeChanged = (): void => this.#changed();
    this.#nodes.addHandler({ added: nodeChanged, updated: nodeChanged, deleted: nodeChanged });
    const claimChanged = (claim: NodeClaim): void => this.#claimChanged(claim);
    this.#claims.addHandler({
      added: claimChanged,
      updated: claimChanged,
      deleted: (claim) => this.#claimGone(claim),
    });
  }

  /** Begins; resolves when what is there is known. */
  async start(signal: AbortSignal): Promise<void> {
    const informers = [this.#pods, this.#nodes, this.#claims];
    for (const informer of informers) informer.start(signal);
    await Promise.all(informers.map((informer) => informer.waitForSync(signal)));
    signal.addEventListener('abort', () => this.#timer?.cancel(), { once: true });
  }

  /** Seconds since the beginning. */
  get at(): number {
    return seconds(this.#options.clock.monotonic() - this.#start);
  }

  get world(): World {
    this.#world ??= this.#look();
    return this.#world;
  }

  /** The most machines there were at once, and the most they cost. */
  get most(): { readonly machines: number; readonly pricePerHour: number } {
    return this.#most;
  }

  /** Every machine that was bought, in order. */
  get purchases(): Purchase[] {
    const purchases: Purchase[] = [];
    for (const { bought, readyAt, reason, goneAt } of this.#stories.values()) {
      if (!bought) continue;
      const { type: _, ...rest } = bought;
      purchases.push({
        ...rest,
        ...(readyAt === undefined ? {} : { readyAfterSeconds: between(bought.at, readyAt) }),
        ...(reason === undefined ? {} : { removedFor: reason }),
        ...(goneAt === undefined ? {} : { livedSeconds: between(bought.at, goneAt) }),
        cost: costOf(bought, goneAt ?? this.at),
      });
    }
    return purchases;
  }

  /** How long each pod that ran had waited, in seconds, ascending. */
  get waits(): number[] {
    const waits: number[] = [];
    for (const { askedAt, runningAt } of this.#podStories.values())
      if (runningAt !== undefined) waits.push(between(askedAt, runningAt));
    return waits.sort((a, b) => a - b);
  }

  /** Resolves with true when it holds, with false when it did not within its time. Rejects when the signal aborts. */
  until(holds: (world: World) => boolean, withinMs: number, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        timer.cancel();
        this.#waiting.delete(check);
        signal.removeEventListener('abort', onAbort);
        settle();
      };
      const check = (): void => {
        if (holds(this.world)) end(() => resolve(true));
      };
      const onAbort = (): void => end(() => reject(signal.reason as Error));
      const timer = this.#options.clock.after(withinMs, () => end(() => resolve(false)));
      this.#waiting.add(check);
      signal.addEventListener('abort', onAbort, { once: true });
      if (signal.aborted) onAbort();
      else check();
    });
  }

  #podChanged(pod: Pod): void {
    const uid = pod.metadata.uid ?? '';
    const story = this.#podStories.get(uid) ?? { askedAt: this.at };
    this.#podStories.set(uid, story);
    if (phaseOf(pod) === 'running') story.runningAt ??= this.at;
    this.#changed();
  }

  #claimChanged(claim: NodeClaim): void {
    const name = claim.metadata.name ?? '';
    const story = this.#stories.get(name) ?? {};
    this.#stories.set(name, story);
    const { at } = this;
    const explained = story.bought ? undefined : this.#options.prices.explain(claim);
    if (explained) this.#tell((story.bought = { type: 'bought', at, ...explained }));
    if (story.bought && story.readyAt === undefined && hasTrueConditions(claim, readyCondition)) {
      story.readyAt = at;
      const afterSeconds = between(story.bought.at, at);
      this.#tell({ type: 'ready', at, nodeClaim: name, node: claim.status?.nodeName ?? '', afterSeconds });
    }
    if (claim.metadata.deletionTimestamp !== undefined && story.reason === undefined) {
      story.reason = getCondition(claim, nodeClaimConditions.disruptionReason)?.reason ?? 'Deleted';
      this.#tell({ type: 'leaving', at, nodeClaim: name, reason: story.reason });
    }
    this.#changed();
  }

  #claimGone(claim: NodeClaim): void {
    this.#claimChanged(claim);
    const name = claim.metadata.name ?? '';
    const story = this.#stories.get(name)!;
    const { at } = this;
    story.goneAt = at;
    const { bought } = story;
    if (bought) {
      const livedSeconds = between(bought.at, at);
      this.#tell({ type: 'gone', at, nodeClaim: name, livedSeconds, cost: costOf(bought, at) });
    }
    this.#changed();
  }

  #tell(event: DemoEvent): void {
    this.#options.emit(event);
  }

  #changed(): void {
    this.#world = undefined;
    const { machines, pricePerHour } = this.world;
    this.#most = {
      machines: Math.max(this.#most.machines, machines.length),
      pricePerHour: Math.max(this.#most.pricePerHour, pricePerHour),
    };
    for (const check of this.#waiting) check();
    this.#timer ??= this.#options.clock.after(stateEveryMs, () => {
      this.#timer = undefined;
      this.tellState();
    });
  }

  /** Tells how things are, unless that was told already and nobody wants to hear it again. */
  tellState(again = false): void {
    const { pods, machines, nodes, pricePerHour } = this.world;
    const state = { pods, machines: machines.length, nodes, pricePerHour };
    const text = JSON.stringify(state);
    if (text === this.#told && !again) return;
    this.#told = text;
    this.#tell({ type: 'state', at: this.at, ...state });
  }

  #look(): World {
    const counts = { pending: 0, starting: 0, running: 0, leaving: 0 };
    const onNode = new Map<string, number>();
    for (const pod of this.#pods.list()) {
      const phase = phaseOf(pod);
      if (!phase) continue;
      counts[phase]++;
      if (phase === 'running') onNode.set(pod.spec.nodeName ?? '', (onNode.get(pod.spec.nodeName ?? '') ?? 0) + 1);
    }
    const machines = this.#claims.list().map((claim) => this.#machineOf(claim, onNode));
    const podsByZone = new Map<string, number>();
    for (const { zone, pods } of machines) if (zone) podsByZone.set(zone, (podsByZone.get(zone) ?? 0) + pods);
    const pricePerHour = dollars(machines.reduce((sum, machine) => sum + machine.pricePerHour, 0));
    return { pods: counts, podsByZone, machines, nodes: this.#nodes.size, pricePerHour };
  }

  #machineOf(claim: NodeClaim, onNode: ReadonlyMap<string, number>): Machine {
    const own = claim.metadata.labels ?? {};
    const bought = this.#stories.get(claim.metadata.name ?? '')?.bought;
    return {
      nodeClaim: claim.metadata.name ?? '',
      instanceType: own[labels.instanceType] ?? '',
      capacityType: own[labels.capacityType] ?? '',
      zone: own[labels.zone] ?? '',
      pricePerHour: bought?.pricePerHour ?? 0,
      state: stateOf(claim),
      pods: onNode.get(claim.status?.nodeName ?? '-') ?? 0,
    };
  }
}

function stateOf(claim: NodeClaim): Machine['state'] {
  if (claim.metadata.deletionTimestamp !== undefined) return 'leaving';
  if (hasTrueConditions(claim, readyCondition)) return 'ready';
  return claim.status?.providerID ? 'joining' : 'ordered';
}

/** Pods that have ended for good are not counted. */
function phaseOf({ metadata, spec, status }: Pod): keyof PodCounts | undefined {
  if (metadata.deletionTimestamp !== undefined) return 'leaving';
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return undefined;
  if (!spec.nodeName) return 'pending';
  const ready = status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True');
  return ready ? 'running' : 'starting';
}

function between(from: number, to: number): number {
  return seconds((to - from) * 1000);
}

function costOf(bought: Bought, until: number): number {
  return dollars((bought.pricePerHour * (until - bought.at)) / 3600);
}
