// SPDX-License-Identifier: Apache-2.0
// Node selectors: plain labels, required and preferred node affinity, and the node affinity of volumes.
import type { Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec } from '../../kube/kinds.ts';

/** A requirement that nobody can meet stands for one that makes no sense (a Gt without a number). */
function meets(requirement: NodeSelectorRequirement, value: string | undefined): boolean {
  const values = requirement.values ?? [];
  switch (requirement.operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
    case 'Lt': {
      if (value === undefined || !/^-?\d+$/.test(value) || !/^-?\d+$/.test(values[0] ?? '')) return false;
      const order = BigInt(value) - BigInt(values[0]!);
      return requirement.operator === 'Gt' ? order > 0n : order < 0n;
    }
    default:
      return false;
  }
}

/** Whether a node meets every part of one term. An empty term matches nothing. */
export function matchesTerm(term: NodeSelectorTerm, node: Node): boolean {
  const expressions = term.matchExpressions ?? [];
  const fields = term.matchFields ?? [];
  if (expressions.length === 0 && fields.length === 0) return false;
  const labels = node.metadata.labels;
  return (
    expressions.every((requirement) => meets(requirement, labels?.[requirement.key])) &&
    fields.every((requirement) =>
      meets(requirement, requirement.key === 'metadata.name' ? node.metadata.name : undefined),
    )
  );
}

/** Whether a node matches at least one of the terms. */
export function matchesAnyTerm(terms: readonly NodeSelectorTerm[], node: Node): boolean {
  return terms.some((term) => matchesTerm(term, node));
}

/** Whether a pod asks anything of its node's labels or name. */
export function selectsNodes(spec: PodSpec): boolean {
  return (
    Object.keys(spec.nodeSelector ?? {}).length > 0 ||
    spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution !== undefined
  );
}

/** Whether a node meets a pod's nodeSelector and its required node affinity. */
export function matchesNodeSelection(spec: PodSpec, node: Node): boolean {
  const selector = spec.nodeSelector;
  if (selector) {
    for (const key of Object.keys(selector)) if (node.metadata.labels?.[key] !== selector[key]) return false;
  }
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || matchesAnyTerm(required.nodeSelectorTerms, node);
}

/** The node names a pod is pinned to by `metadata.name` fields in every term, or undefined when it is not pinned. */
export function pinnedNodes(spec: PodSpec): ReadonlySet<string> | undefined {
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  if (!terms || terms.length === 0) return undefined;
  const names = new Set<string>();
  for (const term of terms) {
    const pin = term.matchFields?.find((f) => f.key === 'metadata.name' && f.operator === 'In');
    if (!pin) return undefined;
    for (const name of pin.values ?? []) names.add(name);
  }
  return names;
}
