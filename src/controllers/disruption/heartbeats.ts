// SPDX-License-Identifier: Apache-2.0
// Nodes report every few minutes that nothing changed. In a large cluster one of them always just did: whoever rests while
// nothing changes must not take that for a change.
import { deepEqual } from '../../base/freeze.ts';
import type { Node } from '../../kube/kinds.ts';
import { SettledList } from '../settled-list.ts';

/** Tells lists of nodes that differ only in heartbeats from others. */
export class NodesBesideHeartbeats extends SettledList<Node> {
  constructor() {
    super(isHeartbeat);
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
