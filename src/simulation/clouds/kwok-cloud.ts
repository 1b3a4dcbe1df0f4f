// SPDX-License-Identifier: Apache-2.0
// KWOK as a cloud of the world. Its machines are the Nodes that its provider makes, so its books are kept by watching
// the store for them.
import { allCrds } from '../../api/crd.ts';
import { kwokNodeClassKind } from '../../api/kwok-node-class.ts';
import { capacityTypes, labels } from '../../api/labels.ts';
import type { InstanceType } from '../../cloud/provider.ts';
import type { Node } from '../../kube/kinds.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '../../kube/object.ts';
import { defaultInstanceTypes } from '../../providers/kwok/instance-types.ts';
import { kwokLabels } from '../../providers/kwok/labels.ts';
import { KwokProvider } from '../../providers/kwok/provider.ts';
import { kwokRunnables } from '../../providers/kwok/resumption.ts';
import type { LedgerInstance, SimulatedCloud, StoredCloudParts } from '../contract.ts';
import { namedByClaims } from './shared-invariants.ts';

const scheme = 'kwok://';
const claimName = 'karpenter.kwok.sh/nodeclaim';
const claimUid = 'karpenter.kwok.sh/nodeclaim-uid';
const zones = ['test-zone-a', 'test-zone-b', 'test-zone-c'] as const;

interface Entry extends LedgerInstance {
  goneAt?: number;
}

/** Of the 144 machines those that a cluster of this size would use: the rest would only cost time. */
function sold(): InstanceType[] {
  return defaultInstanceTypes().filter(({ name }) => /-(?:4|8)x-amd64-linux$/.test(name));
}

export function kwokCloud(parts: StoredCloudParts): SimulatedCloud {
  const types = sold();
  const book = new Map<string, Entry>();
  const history: Entry[] = [];
  const ledger = { alive: () => [...book.values()], all: () => history };
  const stopListening = parts.store.listen(({ name: collection }, event) => {
    if (collection !== 'nodes') return;
    const node = event.object as Node;
    const id = node.spec?.providerID ?? '';
    if (!id.startsWith(scheme)) return;
    if (event.type === 'ADDED') {
      const instance = instanceOf(node, parts.clock.now());
      book.set(node.metadata.uid ?? '', instance);
      history.push(instance);
    } else if (event.type === 'DELETED') {
      const uid = node.metadata.uid ?? '';
      const instance = book.get(uid);
      if (instance) instance.goneAt = parts.clock.now();
      book.delete(uid);
    }
  });
  return {
    name: 'kwok',
    nodeClass: kwokNodeClassKind as ResourceType<KubeObject>,
    crd: allCrds().find(({ spec }) => spec.names.kind === kwokNodeClassKind.kind)!,
    ledger,
    invariants: [namedByClaims(ledger)],
    repairsAfterMs: 10 * 60_000,
    steadyPrices: [capacityTypes.onDemand, capacityTypes.spot],
    faults: [],
    happenings: [],
    sells: { zones, capacityTypes: [capacityTypes.onDemand, capacityTypes.spot] },
    // Of its four zones those that the other cloud has as well: whatever gets a volume there can run at either.
    requirements: [{ key: labels.zone, operator: 'In', values: [...zones] }],
    async furnish() {
      await parts.karpenter.resource(kwokNodeClassKind).create({
        apiVersion: apiVersionOf(kwokNodeClassKind),
        kind: kwokNodeClassKind.kind,
        metadata: { name: 'default' },
        spec: { nodeRegistrationDelay: '45s' },
      });
    },
    connect({ clock, clusters, log, metrics }) {
      const { karpenter, workload } = clusters;
      const provider = new KwokProvider({ karpenter: karpenter.client, workload: workload.client, clock, log, types });
      return { provider, runnables: kwokRunnables({ provider, karpenter, clock, log, metrics }) };
    },
    cheapest({ cpu, memory }) {
      const fitting = types.filter(
        ({ capacity }) => Number(capacity['cpu']) >= cpu && Number.parseInt(String(capacity['memory']), 10) >= memory,
      );
      const prices = fitting.flatMap(({ offerings }) => offerings.map(({ price }) => price));
      return prices.length === 0 ? undefined : Math.min(...prices);
    },
    close: stopListening,
  };
}

function instanceOf(node: Node, now: number): Entry {
  const { labels: of = {}, annotations = {} } = node.metadata;
  return {
    providerID: node.spec?.providerID ?? '',
    instanceType: of[labels.instanceType] ?? '',
    zone: of[labels.zone] ?? '',
    capacityType: of[labels.capacityType] ?? '',
    price: Number(of[kwokLabels.price] ?? 0),
    claim: { name: annotations[claimName] ?? '', uid: annotations[claimUid] ?? '' },
    launchedAt: now,
  };
}
