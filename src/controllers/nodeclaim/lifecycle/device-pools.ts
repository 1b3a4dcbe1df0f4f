// SPDX-License-Identifier: Apache-2.0
// Whether a device driver has told all about a node: a pool is complete when every slice of its newest generation is there.
import type { Node, ResourceSlice } from '../../../kube/kinds.ts';

/** Whether the driver has published at least one complete pool of the node's devices. */
export function hasCompletePool(driver: string, node: Node, slices: Iterable<ResourceSlice>): boolean {
  const pools = new Map<string, { generation: number; declared: number; seen: number }>();
  for (const slice of slices) {
    if (slice.spec.driver !== driver || !isOf(slice, node)) continue;
    const { name, generation, resourceSliceCount } = slice.spec.pool;
    const known = pools.get(name);
    if (!known || known.generation < generation) {
      pools.set(name, { generation, declared: resourceSliceCount, seen: 1 });
    } else if (known.generation === generation) known.seen++;
  }
  for (const { declared, seen } of pools.values()) if (declared > 0 && seen === declared) return true;
  return false;
}

/** The Nodes a slice is about, by name. */
export function nodeNamesOf(slice: ResourceSlice): string[] {
  const names = new Set(slice.spec.nodeName ? [slice.spec.nodeName] : []);
  for (const owner of slice.metadata.ownerReferences ?? []) if (owner.kind === 'Node') names.add(owner.name);
  return [...names];
}

function isOf(slice: ResourceSlice, node: Node): boolean {
  if (slice.spec.nodeName === node.metadata.name) return true;
  return slice.metadata.ownerReferences?.some(({ kind, uid }) => kind === 'Node' && uid === node.metadata.uid) ?? false;
}
