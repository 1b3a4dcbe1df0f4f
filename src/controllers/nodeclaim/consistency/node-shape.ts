// SPDX-License-Identifier: Apache-2.0
// Whether a node has what its cloud said it would have.
import type { NodeClaim } from '../../../api/node-claim.ts';
import { compareStrings } from '../../../base/order.ts';
import type { Node } from '../../../kube/kinds.ts';
import { Quantity } from '../../../kube/quantity.ts';

/** What of the promised must be there. */
const tolerated = 0.9;

/** What is wrong with the capacity of a node, one sentence per resource that was asked for. */
export function nodeShapeIssues(claim: NodeClaim, node: Node): string[] {
  const issues: string[] = [];
  const requests = Object.entries(claim.spec.resources?.requests ?? {}).sort(([a], [b]) => compareStrings(a, b));
  for (const [name, requested] of requests) {
    const expected = Quantity.tryParse(claim.status?.capacity?.[name]) ?? Quantity.zero;
    if (expected.isZero() || (Quantity.tryParse(requested)?.isZero() ?? true)) continue;
    const found = Quantity.tryParse(node.status?.capacity?.[name]) ?? Quantity.zero;
    const share = found.toNumber() / expected.toNumber();
    if (share >= tolerated) continue;
    issues.push(
      `expected ${expected.toString()} of resource ${name}, but found ${found.toString()} (${(share * 100).toFixed(1)}% of expected)`,
    );
  }
  return issues;
}
