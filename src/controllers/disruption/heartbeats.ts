// SPDX-License-Identifier: Apache-2.0
// Nodes report every few minutes that nothing changed. In a large cluster one of them always just did: whoever rests while
// nothing changes must not take that for a change.
import { deepEqual } from '../../base/freeze.ts';
import type { Node } from '../../kube/kinds.ts';

/** Tells lists of nodes that differ only in heartbeats from others. */
export class NodesBesideHeartbeats {
  #list: readonly Node[] = [];
  /** The list that was asked about last. */
  #asked: readonly Node[] = [];
  /** As they last reported. */
  #byName = new Map<string, Node>();

  /** The list as it was when something other than a heartbeat last changed: the same object until then. */
  settled(list: readonly Node[]): readonly Node[] {
    if (list === this.#asked) return this.#list;
    this.#asked = list;
    if (list.length === this.#list.length && list.every((node) => this.#isKnown(node))) return this.#list;
    this.#list = list;
    this.#byName = new Map(list.map((node) => [node.metadata.name ?? '', node]));
    return list;
  }

  #isKnown(node: Node): boolean {
    const name = node.metadata.name ?? '';
    const known = this.#byName.get(name);
    if (known === node) return true;
    if (known === undefined || !isHeartbeat(known, node)) return false;
    this.#byName.set(name, node);
    return true;
  }
}

/** Whether the two are the same but for the times of reports. */
function isHeartbeat(before: Node, after: Node): boolean {
  return before.metadata.uid === after.metadata.uid && deepEqual(withoutReports(before), withoutReports(after));
}

function withoutReports({ metadata, status, ...node }: Node): unknown {
  const { resourceVersion: _version, managedFields: _fields, ...kept } = metadata;
  const conditions = status?.conditions?.map(({ lastHeartbeatTime: _time, ...condition }) => condition);
  return { ...node, metadata: kept, status: { ...status, conditions } };
}
