// SPDX-License-Identifier: Apache-2.0
// Addresses for nodes and pods that do not exist: unique, and the same for the same holder while it lives.

type Network = 'node' | 'pod';

const networks: Readonly<Record<Network, number>> = {
  node: 2 ** 16,
  // 64 blocks of a /16, from 10.244 downwards.
  pod: 2 ** 22,
};

export class AddressBook {
  readonly #held = new Map<string, string>();
  readonly #taken = new Set<string>();
  readonly #next: Record<Network, number> = { node: 2, pod: 2 };

  /** The holder's address, a new one if it has none. */
  assign(holder: string, network: Network): string {
    const known = this.#held.get(holder);
    if (known) return known;
    for (let tries = 0; tries < networks[network]; tries++) {
      const address = addressAt(network, this.#next[network]++ % networks[network]);
      if (this.#taken.has(address)) continue;
      this.#held.set(holder, address);
      this.#taken.add(address);
      return address;
    }
    return addressAt(network, 1);
  }

  /** Notes an address that is in use already, after a restart. */
  note(holder: string, address: string): void {
    this.#held.set(holder, address);
    this.#taken.add(address);
  }

  release(holder: string): void {
    const address = this.#held.get(holder);
    if (address === undefined) return;
    this.#held.delete(holder);
    this.#taken.delete(address);
  }
}

function addressAt(network: Network, index: number): string {
  const low = `${(index >> 8) & 255}.${index & 255}`;
  return network === 'node' ? `172.18.${low}` : `10.${244 - (index >> 16)}.${low}`;
}
