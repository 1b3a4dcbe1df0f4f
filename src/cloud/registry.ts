// SPDX-License-Identifier: Apache-2.0
// Many clouds in one process: which provider serves a NodePool, a NodeClaim or a Node is read from the object itself.
import { nodeClassLabel } from '../api/labels.ts';
import type { NodeClaim } from '../api/node-claim.ts';
import type { NodePool } from '../api/node-pool.ts';
import { KarpenterError } from '../base/errors.ts';
import type { KubeObject, ResourceType } from '../kube/object.ts';
import { UnknownNodeClassError } from './errors.ts';
import type { CloudProvider } from './provider.ts';

/** A reference to a NodeClass by kind; its name does not matter for routing. */
export interface NodeClassKind {
  readonly group: string;
  readonly kind: string;
}

/** The providers of this process. Immutable. */
export class CloudRegistry {
  readonly providers: readonly CloudProvider[];
  readonly #byNodeClass = new Map<string, CloudProvider>();
  readonly #byLabel = new Map<string, CloudProvider>();
  /** By kind, then by group: every look at an object asks, and a text would be made for each. */
  readonly #byKind = new Map<string, Map<string, CloudProvider>>();

  /** Throws when two providers claim the same name or NodeClass. */
  constructor(providers: readonly CloudProvider[]) {
    this.providers = [...providers];
    const names = new Set<string>();
    for (const provider of providers) {
      if (names.has(provider.name)) throw conflict(`two providers are called ${provider.name}`);
      names.add(provider.name);
      for (const nodeClass of provider.nodeClasses) {
        const taken = this.#byNodeClass.get(routeOf(nodeClass));
        if (taken) throw conflict(`${taken.name} and ${provider.name} both serve NodeClass ${routeOf(nodeClass)}`);
        this.#byNodeClass.set(routeOf(nodeClass), provider);
        const ofKind = this.#byKind.get(nodeClass.kind) ?? new Map<string, CloudProvider>();
        this.#byKind.set(nodeClass.kind, ofKind.set(nodeClass.group, provider));
        this.#byLabel.set(nodeClassLabel(nodeClass), provider);
      }
    }
  }

  /** The NodeClass kinds of all providers. */
  get nodeClasses(): readonly ResourceType<KubeObject>[] {
    return this.providers.flatMap((provider) => provider.nodeClasses);
  }

  /** The provider of a NodeClass kind, or undefined: the object belongs to somebody else. */
  find(ref: NodeClassKind): CloudProvider | undefined {
    return this.#byKind.get(ref.kind)?.get(ref.group);
  }

  /** As `find`, where there must be one. Throws UnknownNodeClassError. */
  serving(ref: NodeClassKind): CloudProvider {
    const provider = this.find(ref);
    if (!provider) throw new UnknownNodeClassError(ref, [...this.#byNodeClass.keys()]);
    return provider;
  }

  ofNodePool(pool: NodePool): CloudProvider | undefined {
    return this.find(pool.spec.template.spec.nodeClassRef);
  }

  ofNodeClaim(claim: NodeClaim): CloudProvider | undefined {
    return this.find(claim.spec.nodeClassRef);
  }

  /** By the NodeClass label that registration puts on a Node. */
  ofNode(node: KubeObject): CloudProvider | undefined {
    for (const label in node.metadata.labels) {
      const provider = this.#byLabel.get(label);
      if (provider) return provider;
    }
    return undefined;
  }

  /** Whether a NodePool, NodeClaim or Node is ours to act on. Everything else is never touched. */
  manages(nodeClassRef: NodeClassKind): boolean {
    return this.#byNodeClass.has(routeOf(nodeClassRef));
  }
}

function routeOf(ref: NodeClassKind): string {
  return `${ref.kind}.${ref.group}`;
}

function conflict(message: string): KarpenterError {
  return new KarpenterError('KRP_PROVIDER_CONFLICT', message);
}
