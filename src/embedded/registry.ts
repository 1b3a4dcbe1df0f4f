// SPDX-License-Identifier: Apache-2.0
// Which kinds the server serves right now: the built-in ones for good, custom ones as their definitions come and go.
import { compareStrings } from '../base/order.ts';
import type { Resource, ServedVersion } from './resource.ts';
import { versionOf } from './resource.ts';

export interface FoundResource {
  readonly resource: Resource;
  readonly version: ServedVersion;
}

/** The table of served kinds. `revision` changes whenever it does, for those who cache what they make of it. */
export class Registry {
  readonly #groups = new Map<string, Map<string, Resource>>();
  #revision = 0;

  get revision(): number {
    return this.#revision;
  }

  /** Serves a kind, instead of an earlier one of the same name. */
  add(resource: Resource): void {
    let group = this.#groups.get(resource.group);
    if (!group) {
      group = new Map();
      this.#groups.set(resource.group, group);
    }
    group.set(resource.plural, resource);
    this.#revision++;
  }

  remove(group: string, plural: string): void {
    const resources = this.#groups.get(group);
    resources?.delete(plural);
    if (resources?.size === 0) this.#groups.delete(group);
    this.#revision++;
  }

  find(group: string, version: string, plural: string): FoundResource | undefined {
    const resource = this.#groups.get(group)?.get(plural);
    const served = resource && versionOf(resource, version);
    return served ? { resource, version: served } : undefined;
  }

  /** The resource of a kind, for owner references: by group and kind, any version. */
  findKind(group: string, kind: string): Resource | undefined {
    for (const resource of this.#groups.get(group)?.values() ?? []) if (resource.kind === kind) return resource;
    return undefined;
  }

  hasGroup(group: string): boolean {
    return this.#groups.has(group);
  }

  /** All groups in the order of registration, the core group first. */
  groups(): string[] {
    return [...this.#groups.keys()];
  }

  /** The resources of a group by name. */
  inGroup(group: string): Resource[] {
    return [...(this.#groups.get(group)?.values() ?? [])].sort((a, b) => compareStrings(a.plural, b.plural));
  }

  /** The versions of a group, the preferred one first. */
  versions(group: string): string[] {
    const names = new Set<string>();
    for (const resource of this.inGroup(group)) for (const version of resource.versions) names.add(version.name);
    return [...names].sort(compareVersions);
  }

  all(): Resource[] {
    return this.groups().flatMap((group) => this.inGroup(group));
  }
}

/** The order of preference of Kubernetes: v2 before v1, stable before beta before alpha, anything else last by name. */
export function compareVersions(a: string, b: string): number {
  const left = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(a);
  const right = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(b);
  if (!left || !right) return left ? -1 : right ? 1 : compareStrings(a, b);
  const stability = (parts: RegExpExecArray): number => (parts[2] === undefined ? 2 : parts[2] === 'beta' ? 1 : 0);
  return (
    stability(right) - stability(left) ||
    Number(right[1]) - Number(left[1]) ||
    Number(right[3] ?? 0) - Number(left[3] ?? 0)
  );
}
