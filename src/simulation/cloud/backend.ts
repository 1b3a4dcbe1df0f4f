// SPDX-License-Identifier: Apache-2.0
// The scripted cloud behind its API: orders come in, machines are launched and removed, and whatever mishaps are on happen
// on the way. It lives in the world's own time and outlives every controller.
import { capacityTypes, labels } from '../../api/labels.ts';
import type { VirtualClock } from '../../base/clock.ts';
import { KarpenterError } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import { Quantity } from '../../kube/quantity.ts';
import type { CloudParts } from '../contract.ts';
import { Books, type Machine } from './ledger.ts';
import { MachineNodes } from './machines.ts';
import { Market, type MarketOptions, type Place, reservationLabel } from './market.ts';
import { type Mishap, Mishaps, mishaps } from './mishaps.ts';
import type { Order } from './orders.ts';

export const providerScheme = 'scripted://';

/** The cloud could not be asked, or what it did is not known. */
export class CloudApiError extends KarpenterError {
  constructor(message: string) {
    super('KRP_SCRIPTED_CLOUD', message);
  }
}

/** The cloud has none of what was ordered. */
export class SoldOutError extends KarpenterError {
  readonly places: readonly Place[];

  constructor(places: readonly Place[]) {
    super('KRP_SCRIPTED_CLOUD_SOLD_OUT', `none of ${places.length} offerings can be had`);
    this.places = places;
  }
}

/** The cloud takes the order as invalid. */
export class RefusedError extends KarpenterError {
  constructor() {
    super('KRP_SCRIPTED_CLOUD_REFUSED', 'the order is not valid');
  }
}

/** What came of an order: a machine, and places that were sold out on the way to it. */
export interface Launch {
  readonly machine: Machine;
  readonly soldOut: readonly Place[];
}

const second = 1000;
const slowMs = 30 * second;
const lateMs = 240 * second;
const invisibleMs = 45 * second;
const noticeMs = 120 * second;

/** About as long as callers wait. */
function lateAnswerMs(random: Random): number {
  return 120 * second + random.int(90 * second);
}

export class Backend {
  readonly books = new Books();
  readonly market: Market;
  readonly mishaps: Mishaps<Mishap>;
  readonly #clock: VirtualClock;
  readonly #random: Random;
  readonly #nodes: MachineNodes;
  readonly #coverage: CloudParts['coverage'];
  readonly #notices: Machine[] = [];
  #onNotice: (() => void)[] = [];
  #image = 1;
  #number = 0;
  #closed = false;

  constructor(parts: CloudParts, options: MarketOptions = {}) {
    this.#clock = parts.clock;
    this.#random = parts.random;
    this.#coverage = parts.coverage;
    this.#nodes = new MachineNodes(parts.clock, parts.workload);
    this.market = new Market(options);
    this.mishaps = new Mishaps(parts.coverage, 'cloud/', mishaps);
  }

  // Its API

  async launch(order: Order, signal: AbortSignal): Promise<Launch> {
    await this.#answer(signal);
    if (this.mishaps.happens('launch-refused')) throw new RefusedError();
    const launch = this.#launch(order);
    if (this.mishaps.happens('late-create-response')) await this.#clock.sleep(lateAnswerMs(this.#random), signal);
    if (this.mishaps.happens('lost-create-response')) throw new CloudApiError('the connection was reset');
    return launch;
  }

  /** Begins to remove the machine. Gives false when there is none. */
  async terminate(providerID: string, signal: AbortSignal): Promise<boolean> {
    await this.#answer(signal);
    const machine = this.books.get(providerID);
    if (!machine || !this.#isVisible(machine)) return false;
    this.#terminate(machine);
    if (this.mishaps.happens('lost-delete-response')) throw new CloudApiError('the connection was reset');
    return true;
  }

  async find(providerID: string, signal: AbortSignal): Promise<Machine | undefined> {
    await this.#answer(signal);
    const machine = this.books.get(providerID);
    return machine && this.#isVisible(machine) ? machine : undefined;
  }

  async list(signal: AbortSignal): Promise<readonly Machine[]> {
    await this.#answer(signal);
    let machines = this.books.alive().filter((machine) => this.#isVisible(machine));
    if (machines.length > 0 && this.mishaps.happens('partial-list'))
      machines = machines.filter(() => this.#random.next() < 0.7);
    if (machines.length > 0 && this.mishaps.happens('duplicated-list'))
      machines = machines.flatMap((machine) => (this.#random.next() < 0.3 ? [machine, machine] : [machine]));
    return machines;
  }

  async types(signal: AbortSignal): Promise<ReturnType<Market['types']>> {
    await this.#answer(signal, 0);
    return this.market.types();
  }

  /** Whether the machine was booted from something that is not used any more. */
  async isOutdated(providerID: string, signal: AbortSignal): Promise<boolean> {
    await this.#answer(signal, 0);
    const machine = this.books.get(providerID);
    return machine !== undefined && machine.image < this.#image;
  }

  /** Machines that will be taken away soon, until they are acknowledged; waits when there are none. */
  async notices(signal: AbortSignal): Promise<readonly Machine[]> {
    while (this.#notices.length === 0 && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const done = (): void => resolve();
      this.#onNotice.push(done);
      signal.addEventListener('abort', done, { once: true });
      await promise;
      signal.removeEventListener('abort', done);
      this.#onNotice = this.#onNotice.filter((waiting) => waiting !== done);
    }
    signal.throwIfAborted();
    return [...this.#notices];
  }

  acknowledge(machine: Machine): void {
    const index = this.#notices.indexOf(machine);
    if (index >= 0) this.#notices.splice(index, 1);
  }

  // What happens to it

  /** New machines boot from something newer: all there are have drifted. */
  releaseImage(): void {
    this.#image++;
  }

  /** Makes one machine differ from what it should be. */
  outdate(providerID: string): void {
    const machine = this.books.get(providerID);
    if (machine) machine.image = this.#image - 1;
  }

  /** The machine is gone from one moment to the next. */
  die(machine: Machine, because = 'died'): void {
    if (machine.goneAt !== undefined) return;
    machine.deletingAt ??= this.#clock.now();
    this.#gone(machine, because);
    void this.#nodes.end(machine, this.#random.next() < 0.5);
  }

  /** The machine will be taken away; whoever asks for notices is told. */
  interrupt(machine: Machine): void {
    machine.leavingAt ??= this.#clock.now();
    this.#notices.push(machine);
    for (const tell of this.#onNotice) tell();
    this.#clock.after(noticeMs, () => {
      this.acknowledge(machine);
      this.die(machine, 'interrupted');
    });
  }

  /** A machine of somebody else, in the same account: it is none of ours. */
  addStranger(): Machine {
    const place = this.market.places().find(({ capacityType }) => capacityType === capacityTypes.onDemand)!;
    return this.#machine(place, undefined, `stranger-${++this.#number}`);
  }

  close(): void {
    this.#closed = true;
  }

  /** Every call passes here: it takes its time, and may come to nothing. */
  async #answer(signal: AbortSignal, usualMs = 20 + this.#random.int(80)): Promise<void> {
    // As over a network: never in the caller's own turn.
    await Promise.resolve();
    signal.throwIfAborted();
    if (this.mishaps.happens('unreachable')) throw new CloudApiError('the cloud cannot be reached');
    const silence = this.mishaps.untilOver('silent');
    if (silence) {
      await silence;
      throw new CloudApiError('the cloud did not answer');
    }
    const ms = usualMs + (this.mishaps.happens('slow') ? slowMs : 0);
    if (ms > 0) await this.#clock.sleep(ms, signal);
    if (this.mishaps.happens('throttled')) throw new CloudApiError('too many requests');
    if (this.mishaps.happens('failing')) throw new CloudApiError('internal error');
  }

  #launch({ token, claim, places }: Order): Launch {
    const known = this.books.ofToken(token);
    if (known) return { machine: known, soldOut: [] };
    const soldOut: Place[] = [];
    for (const place of places) {
      if (this.market.isAvailable(place)) return { machine: this.#machine(place, claim, token), soldOut };
      soldOut.push(place);
    }
    if (soldOut.length > 0) this.#coverage.count('fault', 'cloud/insufficient-capacity');
    throw new SoldOutError(soldOut);
  }

  #machine(place: Place, claim: Order['claim'] | undefined, token: string): Machine {
    const now = this.#clock.now();
    const type = this.market.types().find(({ name }) => name === place.type)!;
    const capacity = Object.fromEntries(Object.entries(type.capacity).map(([name, amount]) => [name, String(amount)]));
    const reserved = type.overhead?.kubeReserved ?? {};
    const allocatable = Object.fromEntries(
      Object.entries(capacity).map(([name, amount]) => [
        name,
        reserved[name] === undefined ? amount : Quantity.parse(amount).sub(Quantity.parse(reserved[name])).toString(),
      ]),
    );
    const id = `m-${String(++this.#number).padStart(5, '0')}-${this.#random.suffix(5)}`;
    const machine: Machine = {
      providerID: `${providerScheme}${place.zone}/${id}`,
      name: id,
      place,
      instanceType: place.type,
      zone: place.zone,
      capacityType: place.capacityType,
      price: this.market.priceOf(place),
      ...(claim ? { claim } : {}),
      launchedAt: now,
      labels: {
        [labels.instanceType]: place.type,
        [labels.zone]: place.zone,
        [labels.capacityType]: place.capacityType,
        [labels.arch]: 'amd64',
        [labels.os]: 'linux',
        ...(place.reservation ? { [reservationLabel]: place.reservation } : {}),
      },
      capacity,
      allocatable,
      image: this.#image,
      ...(claim && this.mishaps.happens('not-found-yet') ? { hiddenUntil: now + invisibleMs } : {}),
      nodes: [],
    };
    this.books.launched(machine, token);
    this.market.use(place, -1);
    if (claim) this.#boot(machine);
    return machine;
  }

  #boot(machine: Machine): void {
    if (this.mishaps.happens('never-joins')) {
      machine.isBroken = true;
      return;
    }
    const lies = this.mishaps.happens('lies-about-capacity');
    const bootMs = 20 * second + this.#random.int(70 * second) + (this.mishaps.happens('joins-late') ? lateMs : 0);
    this.#after(bootMs, () => this.#nodes.join(machine, { lies }));
    if (this.mishaps.happens('joins-twice'))
      this.#after(bootMs + this.#random.int(90 * second), () => this.#nodes.join(machine));
  }

  #terminate(machine: Machine): void {
    if (machine.deletingAt !== undefined) return;
    machine.deletingAt = this.#clock.now();
    // Of one that never became a node of ours nobody else would take the Node away.
    void this.#nodes.end(machine, true);
    this.#after(2 * second + this.#random.int(20 * second), () => this.#gone(machine));
  }

  #gone(machine: Machine, because?: string): void {
    if (machine.goneAt !== undefined) return;
    this.books.gone(machine, this.#clock.now(), because);
    this.market.use(machine.place, 1);
  }

  #isVisible(machine: Machine): boolean {
    return this.#clock.now() >= (machine.hiddenUntil ?? 0);
  }

  #after(ms: number, act: () => void | Promise<void>): void {
    this.#clock.after(ms, () => {
      if (!this.#closed) void act();
    });
  }
}
