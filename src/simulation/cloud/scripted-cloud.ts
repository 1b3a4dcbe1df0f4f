// SPDX-License-Identifier: Apache-2.0
// The scripted cloud as a part of the world: its books, its faults, what happens to it, and the way in for each controller.
import { crdOf } from '../../api/kind.ts';
import { capacityTypes } from '../../api/labels.ts';
import type { Random } from '../../base/random.ts';
import type { KubeObject, ResourceType } from '../../kube/object.ts';
import { Quantity } from '../../kube/quantity.ts';
import { keptForClaims, namedByClaims } from '../clouds/shared-invariants.ts';
import type { CloudParts, Fault, Happening, Line, SimulatedCloud } from '../contract.ts';
import { Backend } from './backend.ts';
import { interruptions } from './interruptions.ts';
import type { Machine } from './ledger.ts';
import type { MarketOptions, Place } from './market.ts';
import { scriptedNodeClassKind } from './node-class.ts';
import { repairsAfterMs, ScriptedProvider } from './provider.ts';

/** A cloud that does what the world's seed says, and the worst of it. */
export interface ScriptedCloud extends SimulatedCloud {
  /** For tests that want one thing to happen. */
  readonly backend: Backend;
}

const reserved = { cpus: 8, count: 3 };

export function scriptedCloud(parts: CloudParts, options: MarketOptions = { reserved }): ScriptedCloud {
  const backend = new Backend(parts, options);
  const { karpenter } = parts;
  return {
    name: 'scripted',
    nodeClass: scriptedNodeClassKind as ResourceType<KubeObject>,
    crd: crdOf(scriptedNodeClassKind),
    ledger: backend.books,
    backend,
    faults: [...backend.mishaps.faults(), ...marketFaults(backend), machineDies(backend, parts)],
    happenings: happenings(backend),
    reservations: backend.market.reservations,
    sells: backend.market.sells,
    repairsAfterMs,
    steadyPrices: [capacityTypes.onDemand, capacityTypes.reserved],
    invariants: [namedByClaims(backend.books), keptForClaims(backend.books)],
    async furnish() {
      const { group, version, kind } = scriptedNodeClassKind;
      await karpenter
        .resource(scriptedNodeClassKind)
        .create({ apiVersion: `${group}/${version}`, kind, metadata: { name: 'default' } });
      backend.addStranger();
    },
    connect(line: Line) {
      const provider = new ScriptedProvider(backend, line);
      return { provider, runnables: [interruptions(backend, line)] };
    },
    cheapest: (wanted) => cheapest(backend, wanted),
    close: () => backend.close(),
  };
}

/** Shortages are as wide as they are in life: one type in one zone, a whole zone, or all of one kind of contract. */
function marketFaults(backend: Backend): Fault[] {
  const { market } = backend;
  return [
    {
      name: 'cloud/insufficient-capacity',
      weight: 3,
      inject(random) {
        const place = pick(market.places(), random);
        const width = random.int(4);
        const of: Partial<Place> =
          width === 0
            ? place
            : width === 1
              ? { zone: place.zone }
              : width === 2
                ? { type: place.type }
                : { capacityType: capacityTypes.spot };
        return market.sellOut(of);
      },
    },
  ];
}

/** A machine that is there, and of ours. */
function victims(backend: Backend): Machine[] {
  return backend.books.alive().filter(({ claim, deletingAt }) => claim !== undefined && deletingAt === undefined);
}

function machineDies(backend: Backend, { coverage }: CloudParts): Fault {
  return {
    name: 'cloud/machine-dies',
    weight: 3,
    inject(random) {
      const machines = victims(backend);
      if (machines.length > 0) {
        backend.die(pick(machines, random));
        coverage.count('fault', 'cloud/machine-dies');
      }
      return () => undefined;
    },
  };
}

function happenings(backend: Backend): Happening[] {
  return [
    {
      name: 'cloud/prices-move',
      weight: 2,
      happen(random) {
        backend.market.movePrices(random);
        return true;
      },
    },
    {
      name: 'cloud/spot-interruption',
      weight: 2,
      reach: 'machine',
      happen(random) {
        const spot = victims(backend).filter(({ capacityType }) => capacityType === capacityTypes.spot);
        if (spot.length === 0) return false;
        backend.interrupt(pick(spot, random));
        return true;
      },
    },
    {
      name: 'cloud/image-released',
      weight: 0.2,
      reach: 'pool',
      happen() {
        if (victims(backend).length === 0) return false;
        backend.releaseImage();
        return true;
      },
    },
    {
      name: 'cloud/machine-drifts',
      weight: 1,
      reach: 'machine',
      happen(random) {
        const machines = victims(backend);
        if (machines.length === 0) return false;
        backend.outdate(pick(machines, random).providerID);
        return true;
      },
    },
  ];
}

function pick<T>(items: readonly T[], random: Random): T {
  return items[random.int(items.length)]!;
}

function cheapest(backend: Backend, wanted: { readonly cpu: number; readonly memory: number }): number | undefined {
  let best: number | undefined;
  for (const type of backend.market.types()) {
    const free = (name: string): number =>
      Quantity.parse(type.capacity[name] ?? 0).toNumber() -
      Quantity.parse(type.overhead?.kubeReserved?.[name] ?? 0).toNumber();
    if (free('cpu') < wanted.cpu || free('memory') < wanted.memory) continue;
    for (const { price, reservationCapacity } of type.offerings)
      if (reservationCapacity === undefined && (best === undefined || price < best)) best = price;
  }
  return best;
}
