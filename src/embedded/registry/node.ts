// SPDX-License-Identifier: Apache-2.0
// Nodes: what may change, and the taint they start with.
import { deepEqual } from '../../base/freeze.ts';
import type { Node } from '../../kube/kinds.ts';
import { isQualifiedName, isValidLabelValue } from '../../kube/labels.ts';
import type { FieldError } from '../../kube/schema/field-error.ts';
import type { Strategy } from '../resource.ts';

const notReady = 'node.kubernetes.io/not-ready';

/** What a node says of itself before it has said anything. */
const unknownNode = {
  machineID: '',
  systemUUID: '',
  bootID: '',
  kernelVersion: '',
  osImage: '',
  containerRuntimeVersion: '',
  kubeletVersion: '',
  kubeProxyVersion: '',
  operatingSystem: '',
  architecture: '',
};

export const nodeStrategy: Strategy<Node> = {
  default: (node) => {
    const status = node.status;
    // What can be allocated is all there is, unless somebody says less. After a patch the status may be the stored one,
    // which is frozen: it is replaced, not changed.
    if (status?.capacity && !status.allocatable) node.status = { ...status, allocatable: { ...status.capacity } };
  },
  prepareCreate: (node) => {
    const spec = (node.spec ??= {});
    const taints = spec.taints ?? [];
    // Every node starts out tainted until the controllers have seen it ready.
    if (!taints.some((taint) => taint.key === notReady && taint.effect === 'NoSchedule')) {
      spec.taints = [...taints, { key: notReady, effect: 'NoSchedule' }];
    }
    const status = (node.status ??= {});
    status.daemonEndpoints ??= { kubeletEndpoint: { Port: 0 } };
    status.nodeInfo ??= { ...unknownNode };
  },
  validate: (node) => taintErrors(node),
  validateUpdate: (node, old) => {
    const errors: FieldError[] = [];
    const id = old.spec?.providerID;
    if (id && node.spec?.providerID !== id) {
      errors.push({
        field: 'spec.providerID',
        type: 'Forbidden',
        detail: 'node updates may not change providerID except from "" to valid',
      });
    }
    if (old.spec?.podCIDRs && !deepEqual(old.spec.podCIDRs, node.spec?.podCIDRs)) {
      errors.push({
        field: 'spec.podCIDRs',
        type: 'Forbidden',
        detail: 'node updates may not change podCIDR except from "" to valid',
      });
    }
    return errors;
  },
};

function taintErrors(node: Node): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  (node.spec?.taints ?? []).forEach((taint, i) => {
    const at = `metadata.taints[${i}]`;
    for (const detail of isQualifiedName(taint.key ?? ''))
      errors.push({ field: `${at}.key`, type: 'Invalid', value: taint.key, detail });
    for (const detail of isValidLabelValue(taint.value ?? '')) {
      errors.push({ field: `${at}.value`, type: 'Invalid', value: taint.value, detail });
    }
    if (!['NoSchedule', 'PreferNoSchedule', 'NoExecute'].includes(taint.effect)) {
      errors.push({
        field: `${at}.effect`,
        type: taint.effect ? 'Unsupported value' : 'Required',
        value: taint.effect,
        detail: taint.effect ? 'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"' : '',
      });
    }
    const id = `${taint.key}:${taint.effect}`;
    if (seen.has(id)) {
      errors.push({
        field: at,
        type: 'Duplicate value',
        value: taint,
        detail: 'taints must be unique by key and effect pair',
      });
    }
    seen.add(id);
  });
  return errors;
}
