// SPDX-License-Identifier: Apache-2.0
// The scenarios' runner on the model: embedded clusters, virtual time.
import type { KubeClient } from '../../../kube/client.ts';
import { MachineWitness } from './machine-witness.ts';
import { type Rig, stateOf } from './scenarios.ts';
import { Whole } from './whole.ts';

export class ModelRig implements Rig {
  readonly hub: KubeClient;
  readonly workload: KubeClient;
  readonly frozenMs = 60_000;
  readonly #patienceMs: number;
  readonly #whole: Whole;
  readonly #witness: MachineWitness;
  readonly #stop = new AbortController();

  private constructor(whole: Whole, patienceMs: number) {
    this.#patienceMs = patienceMs;
    this.#whole = whole;
    this.hub = whole.hub.client();
    this.workload = whole.world.client;
    this.#witness = new MachineWitness(this.hub, whole.world.clock);
    this.#witness.start(this.#stop.signal);
  }

  /** With less patience a scenario that fails does so sooner. */
  static async start({ patienceMs = Number.POSITIVE_INFINITY } = {}): Promise<ModelRig> {
    return new ModelRig(await Whole.start({ topology: 'hub-apart' }), patienceMs);
  }

  get seen(): ReadonlySet<string> {
    return this.#witness.seen;
  }

  async until(what: string, holds: () => Promise<boolean>, withinMs = 60_000): Promise<void> {
    for (let waited = 0; !(await holds()); waited += 500) {
      if (waited > Math.min(withinMs, this.#patienceMs))
        throw new Error(`${what}: not so\n${JSON.stringify(await stateOf(this), undefined, 1)}`);
      await this.pass(500);
    }
  }

  pass(ms: number): Promise<void> {
    return this.#whole.world.pass(ms);
  }

  freezeManagers(): Promise<void> {
    return this.#whole.stopManagers();
  }

  thawManagers(): Promise<void> {
    return this.#whole.startManagers();
  }

  async restartHub(): Promise<void> {
    this.#whole.door.shut();
    await this.pass(10_000);
    this.#whole.door.open();
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error('the test is over'));
    await this.#whole.stop();
  }
}
