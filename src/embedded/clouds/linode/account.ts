// SPDX-License-Identifier: Apache-2.0
// One account with everything in it, and the time that passes in it.
import type { Clock, Timer } from '../../../base/clock.ts';
import type { Random } from '../../../base/random.ts';
import { Capacity } from './capacity.ts';
import { timestamp } from './exchange.ts';
import { History } from './history.ts';
import type { Cluster, Firewall, Group, Instance, Pool, ReservedAddress, SshKey, Subnet, Vpc } from './records.ts';

/** How long things take, in milliseconds. */
export interface Delays {
  /** A new node of a pool gets its Linode. */
  readonly assignMs: number;
  /** Enterprise: a new node is listed in its pool. */
  readonly listMs: number;
  /** `provisioning`. */
  readonly provisionMs: number;
  /** LKE: `offline`, while it is made a node. */
  readonly installMs: number;
  /** `booting`, until the machine runs. */
  readonly bootMs: number;
  /** From running to the pool's node being ready. */
  readonly readyMs: number;
  /** `shutting_down`. */
  readonly shutdownMs: number;
  /** `deleting`, until it is gone. */
  readonly deleteMs: number;
  /** LKE replaces a node whose Linode somebody deleted. */
  readonly replaceMs: number;
  /** A new cluster hands out its kubeconfig. */
  readonly kubeconfigMs: number;
}

/** About what the real ones take. */
export const usualDelays: Delays = {
  assignMs: 4000,
  listMs: 30_000,
  provisionMs: 20_000,
  installMs: 60_000,
  bootMs: 30_000,
  readyMs: 20_000,
  shutdownMs: 5000,
  deleteMs: 3000,
  replaceMs: 60_000,
  kubeconfigMs: 60_000,
};

export interface Change {
  readonly kind: 'created' | 'updated' | 'deleted';
  readonly what: 'instance' | 'pool' | 'cluster';
  readonly id: number;
}

export interface AccountOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly delays: Delays;
  readonly listLagMs: number;
  readonly maxPoolsPerCluster: number;
  readonly maxInstances: number;
}

/** Where the numbers of each kind begin: far apart, so that a mixed-up id is noticed. */
const firstIds = {
  instance: 97_000_001,
  cluster: 600_001,
  pool: 855_001,
  firewall: 3_100_001,
  vpc: 471_001,
  subnet: 629_001,
  group: 6001,
  sshKey: 451_001,
  config: 85_800_001,
  disk: 150_000_001,
  interface: 6_760_001,
  event: 1_000_000_001,
};

export class Account {
  readonly clock: Clock;
  readonly random: Random;
  readonly delays: Delays;
  readonly maxPoolsPerCluster: number;
  readonly maxInstances: number;
  readonly capacity = new Capacity();
  readonly instances = new Map<number, Instance>();
  readonly clusters = new Map<number, Cluster>();
  readonly pools = new Map<number, Pool>();
  readonly firewalls = new Map<number, Firewall>();
  readonly vpcs = new Map<number, Vpc>();
  readonly groups = new Map<number, Group>();
  readonly sshKeys = new Map<number, SshKey>();
  readonly reserved = new Map<string, ReservedAddress>();
  /** Tags that somebody made by themselves; others exist as long as something bears them. */
  readonly tags = new Set<string>();
  readonly events: object[] = [];
  /** Lists may lag behind: what they showed a while ago. */
  readonly history: { readonly instances: History; readonly pools: History };
  everCreated = 0;
  readonly #ids: Record<string, number> = { ...firstIds };
  readonly #timers = new Set<Timer>();
  readonly #listeners = new Set<(change: Change) => void>();
  #addresses = 0;

  constructor(options: AccountOptions) {
    this.clock = options.clock;
    this.random = options.random;
    this.delays = options.delays;
    this.maxPoolsPerCluster = options.maxPoolsPerCluster;
    this.maxInstances = options.maxInstances;
    this.history = {
      instances: new History(options.clock, options.listLagMs),
      pools: new History(options.clock, options.listLagMs),
    };
  }

  nextId(kind: keyof typeof firstIds): number {
    return this.#ids[kind]!++;
  }

  now(): string {
    return timestamp(this.clock.now());
  }

  /** `length` hexadecimal digits. */
  hex(length: number): string {
    let text = '';
    while (text.length < length) text += this.random.int(0x1_0000).toString(16).padStart(4, '0');
    return text.slice(0, length);
  }

  /** A public and a private IPv4 address and an IPv6 address that nobody else has. */
  address(): { ipv4: string; private: string; ipv6: string } {
    const n = ++this.#addresses;
    const [high, low] = [Math.floor(n / 254), (n % 254) + 1];
    return {
      ipv4: `172.${104 + Math.floor(high / 256)}.${high % 256}.${low}`,
      private: `192.168.${128 + (high % 128)}.${low}`,
      ipv6: `2600:3c03::f03c:95ff:${(n >> 16).toString(16)}:${(n & 0xffff).toString(16)}/128`,
    };
  }

  /** Does something later, unless the account is closed first. */
  later(ms: number, callback: () => void): void {
    const timer = this.clock.after(ms, () => {
      this.#timers.delete(timer);
      callback();
    });
    this.#timers.add(timer);
  }

  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  changed(change: Change): void {
    for (const listener of this.#listeners) listener(change);
  }

  /** What `account/events` tells. */
  event(action: string, entity: { id: number; type: string; label: string; url: string }): void {
    this.events.unshift({
      id: this.nextId('event'),
      created: this.now(),
      seen: false,
      read: false,
      percent_complete: 100,
      time_remaining: null,
      rate: null,
      duration: 0,
      action,
      username: 'karpenter',
      entity,
      secondary_entity: null,
      status: 'finished',
      message: null,
      maintenance_policy_set: null,
      description: null,
      source: null,
      not_before: null,
      start_time: null,
      complete_time: null,
    });
    if (this.events.length > 500) this.events.pop();
  }

  subnet(id: number): { vpc: Vpc; subnet: Subnet } | undefined {
    for (const vpc of this.vpcs.values()) {
      const subnet = vpc.subnets.find((candidate) => candidate.id === id);
      if (subnet) return { vpc, subnet };
    }
    return undefined;
  }

  /** Nothing happens by itself from here on. */
  close(): void {
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
  }
}
