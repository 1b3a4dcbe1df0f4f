// SPDX-License-Identifier: Apache-2.0
// Random nodes and pods that use every scheduling feature, close enough to each other to get in each other's way.
import type { Random } from '../../base/random.ts';
import type {
  Affinity,
  Container,
  LabelSelector,
  Node,
  Pod,
  PodAffinityTerm,
  PodSpec,
  Toleration,
  TopologySpreadConstraint,
} from '../../kube/kinds.ts';
import { aNode, aPod } from './objects.ts';

const zone = 'topology.kubernetes.io/zone';
const hostname = 'kubernetes.io/hostname';
const apps = ['web', 'db', 'cache'] as const;

/** Draws nodes and pods. `shop` is a namespace with the label `team=shop`; the caller creates it. */
export class RandomPlacements {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  node(name: string): Node {
    return aNode(name, {
      labels: {
        ...(this.#chance(0.85) ? { [zone]: this.#pick(['a', 'b', 'c']) } : {}),
        disk: this.#pick(['ssd', 'hdd']),
        size: String(this.#random.int(5)),
      },
      allocatable: {
        cpu: this.#pick(['1', '2', '4']),
        memory: this.#pick(['2Gi', '4Gi', '8Gi']),
        pods: this.#pick(['3', '8', '20']),
        ...(this.#chance(0.3) ? { 'example.com/gpu': '2' } : {}),
      },
      unschedulable: this.#chance(0.1),
      ...(this.#chance(0.3)
        ? {
            taints: [
              {
                key: this.#pick(['k1', 'k2']),
                value: this.#pick(['x', 'y']),
                effect: this.#pick(['NoSchedule', 'NoExecute', 'PreferNoSchedule']),
              },
            ],
          }
        : {}),
    });
  }

  /** A pod to be placed; `wish` scales how much it asks of its surroundings. */
  pod(name: string, wish = 1): Pod {
    const affinity = this.#affinity(wish);
    const spread = this.#chance(0.35 * wish) ? this.#spread() : [];
    const spec: PodSpec = {
      containers: [this.#container()],
      terminationGracePeriodSeconds: 0,
      ...(this.#chance(0.2) ? { nodeSelector: { disk: this.#pick(['ssd', 'hdd']) } } : {}),
      ...(Object.keys(affinity).length > 0 ? { affinity } : {}),
      ...(spread.length > 0 ? { topologySpreadConstraints: spread } : {}),
      ...(this.#chance(0.3) ? { tolerations: [this.#toleration()] } : {}),
      ...(this.#chance(0.15) ? { initContainers: [this.#initContainer()] } : {}),
    };
    const namespace = this.#pick(['default', 'default', 'shop']);
    const labels = { app: this.#pick(apps), rev: this.#pick(['1', '2']) };
    const pod = aPod(name, { namespace, labels, spec });
    delete pod.metadata.uid;
    return pod;
  }

  #chance(probability: number): boolean {
    return this.#random.next() < probability;
  }

  #pick<T>(items: readonly T[]): T {
    return items[this.#random.int(items.length)]!;
  }

  #weight(): number {
    return 1 + this.#random.int(100);
  }

  #selector(): LabelSelector {
    if (this.#chance(0.7)) return { matchLabels: { app: this.#pick(apps) } };
    const values = [this.#pick(apps), this.#pick(apps)];
    return { matchExpressions: [{ key: 'app', operator: this.#pick(['In', 'NotIn']), values }] };
  }

  #term(): PodAffinityTerm {
    return {
      topologyKey: this.#pick([zone, hostname, 'disk']),
      labelSelector: this.#selector(),
      ...(this.#chance(0.2) ? { namespaces: ['shop'] } : {}),
      ...(this.#chance(0.2) ? { namespaceSelector: this.#pick([{}, { matchLabels: { team: 'shop' } }]) } : {}),
    };
  }

  #affinity(wish: number): Affinity {
    const node = { ...this.#requiredNodes(), ...this.#preferredNodes() };
    const near = this.#podTerms(0.2 * wish);
    const apart = this.#podTerms(0.25 * wish);
    return {
      ...(Object.keys(node).length > 0 ? { nodeAffinity: node } : {}),
      ...(Object.keys(near).length > 0 ? { podAffinity: near } : {}),
      ...(Object.keys(apart).length > 0 ? { podAntiAffinity: apart } : {}),
    };
  }

  #podTerms(probability: number): NonNullable<Affinity['podAffinity']> {
    const terms = this.#chance(0.2) ? [this.#term(), this.#term()] : [this.#term()];
    const weighted = [{ weight: this.#weight(), podAffinityTerm: this.#term() }];
    return {
      ...(this.#chance(probability) ? { requiredDuringSchedulingIgnoredDuringExecution: terms } : {}),
      ...(this.#chance(0.25) ? { preferredDuringSchedulingIgnoredDuringExecution: weighted } : {}),
    };
  }

  #requiredNodes(): NonNullable<Affinity['nodeAffinity']> {
    if (!this.#chance(0.2)) return {};
    const requirement = this.#pick([
      { key: zone, operator: 'In', values: ['a', 'b'] },
      { key: zone, operator: 'DoesNotExist' },
      { key: 'size', operator: 'Gt', values: ['2'] },
      { key: 'size', operator: 'Lt', values: ['3'] },
      { key: 'disk', operator: 'NotIn', values: ['ssd'] },
    ]);
    const nodeSelectorTerms = [{ matchExpressions: [requirement] }];
    return { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
  }

  #preferredNodes(): NonNullable<Affinity['nodeAffinity']> {
    if (!this.#chance(0.25)) return {};
    const preferences = [
      { key: 'disk', operator: 'In', values: [this.#pick(['ssd', 'hdd'])] },
      { key: zone, operator: 'In', values: ['a'] },
    ];
    return {
      preferredDuringSchedulingIgnoredDuringExecution: preferences.map((requirement) => ({
        weight: this.#weight(),
        preference: { matchExpressions: [requirement] },
      })),
    };
  }

  #spread(): TopologySpreadConstraint[] {
    const keys = [zone, hostname].filter(() => this.#chance(0.7));
    return keys.map((topologyKey) => {
      const hard = this.#chance(0.6);
      return {
        topologyKey,
        maxSkew: 1 + this.#random.int(2),
        whenUnsatisfiable: hard ? 'DoNotSchedule' : 'ScheduleAnyway',
        labelSelector: this.#selector(),
        ...(hard && this.#chance(0.3) ? { minDomains: 1 + this.#random.int(4) } : {}),
        ...(this.#chance(0.3) ? { nodeAffinityPolicy: this.#pick(['Honor', 'Ignore']) } : {}),
        ...(this.#chance(0.3) ? { nodeTaintsPolicy: this.#pick(['Honor', 'Ignore']) } : {}),
        ...(this.#chance(0.2) ? { matchLabelKeys: ['rev'] } : {}),
      };
    });
  }

  #toleration(): Toleration {
    return this.#pick<Toleration>([
      { operator: 'Exists' },
      { key: 'k1', operator: 'Exists' },
      { key: 'k2', value: 'x' },
      { key: 'k1', operator: 'Equal', value: 'y', effect: 'NoSchedule' },
    ]);
  }

  #container(): Container {
    const gpu = this.#chance(0.1) ? { 'example.com/gpu': '1' } : {};
    const requests = {
      ...(this.#chance(0.8) ? { cpu: this.#pick(['100m', '500m', '1', '3']) } : {}),
      ...(this.#chance(0.6) ? { memory: this.#pick(['100Mi', '1Gi', '3Gi']) } : {}),
      ...gpu,
    };
    const port = {
      containerPort: 80,
      hostPort: this.#pick([8080, 9090]),
      ...(this.#chance(0.3) ? { hostIP: '10.0.0.1' } : {}),
      ...(this.#chance(0.2) ? { protocol: 'UDP' } : {}),
    };
    return {
      name: 'app',
      image: 'app',
      resources: { requests, limits: gpu },
      ...(this.#chance(0.15) ? { ports: [port] } : {}),
    };
  }

  #initContainer(): Container {
    return {
      name: 'init',
      image: 'init',
      resources: { requests: { cpu: this.#pick(['1', '2']) } },
      ...(this.#chance(0.5) ? { restartPolicy: 'Always' } : {}),
    };
  }
}
