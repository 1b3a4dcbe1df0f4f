// SPDX-License-Identifier: Apache-2.0
// Services: addresses are handed out, ports filled in.
import type { Service } from '../../kube/kinds.ts';
import { isQualifiedName, isValidLabelValue } from '../../kube/labels.ts';
import type { FieldError } from '../../kube/schema/field-error.ts';
import type { Strategy, StrategyContext } from '../resource.ts';
import { oneOf } from './pod-validation.ts';

export const serviceStrategy: Strategy<Service> = {
  default: (service) => {
    const spec = service.spec;
    if (!spec) return;
    spec.type ??= 'ClusterIP';
    spec.sessionAffinity ??= 'None';
    spec.internalTrafficPolicy ??= 'Cluster';
    for (const port of spec.ports ?? []) {
      port.protocol ??= 'TCP';
      port.targetPort ??= port.port;
    }
    if (spec.type === 'NodePort' || spec.type === 'LoadBalancer') spec.externalTrafficPolicy ??= 'Cluster';
    if (spec.type === 'LoadBalancer') spec.allocateLoadBalancerNodePorts ??= true;
  },
  prepareCreate: (service, context) => {
    service.status = { loadBalancer: {} };
    const spec = service.spec;
    if (!spec || spec.type === 'ExternalName') return;
    spec.clusterIP ??= freeAddress(context);
    spec.clusterIPs ??= [spec.clusterIP];
    spec.ipFamilies ??= ['IPv4'];
    spec.ipFamilyPolicy ??= 'SingleStack';
  },
  prepareUpdate: (service, old) => {
    const spec = service.spec;
    const before = old.spec;
    if (!spec || !before) return;
    // A writer that leaves out what was handed out keeps it.
    if (before.clusterIP !== undefined) spec.clusterIP ??= before.clusterIP;
    if (before.clusterIPs) spec.clusterIPs ??= [...before.clusterIPs];
    if (before.ipFamilies) spec.ipFamilies ??= [...before.ipFamilies];
    if (before.ipFamilyPolicy) spec.ipFamilyPolicy ??= before.ipFamilyPolicy;
  },
  validate: (service) => {
    const errors: FieldError[] = [];
    const spec = service.spec;
    oneOf(errors, 'spec.type', spec?.type, ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']);
    for (const [key, value] of Object.entries(spec?.selector ?? {})) {
      for (const detail of isQualifiedName(key))
        errors.push({ field: 'spec.selector', type: 'Invalid', value: key, detail });
      for (const detail of isValidLabelValue(value))
        errors.push({ field: 'spec.selector', type: 'Invalid', value, detail });
    }
    const needsPorts = spec?.clusterIP !== 'None' && spec?.type !== 'ExternalName';
    if (needsPorts && (spec?.ports ?? []).length === 0)
      errors.push({ field: 'spec.ports', type: 'Required', detail: '' });
    (spec?.ports ?? []).forEach((port, i) => {
      if (!(port.port >= 1 && port.port <= 65_535)) {
        errors.push({
          field: `spec.ports[${i}].port`,
          type: 'Invalid',
          value: port.port ?? 0,
          detail: 'must be between 1 and 65535, inclusive',
        });
      }
      if ((spec?.ports ?? []).length > 1 && !port.name)
        errors.push({ field: `spec.ports[${i}].name`, type: 'Required', detail: '' });
    });
    return errors;
  },
  validateUpdate: (service, old) => {
    const before = old.spec?.clusterIP;
    const after = service.spec?.clusterIP;
    const changed = before !== undefined && before !== '' && after !== before && service.spec?.type !== 'ExternalName';
    return changed
      ? [{ field: 'spec.clusterIPs[0]', type: 'Invalid', value: [after], detail: 'may not change once set' }]
      : [];
  },
};

/** The first address of 10.96.0.0/16 that no service has. */
function freeAddress(context: StrategyContext): string {
  const services = context.store.collection('services').list().items as readonly Service[];
  const taken = new Set(services.map((service) => service.spec?.clusterIP));
  for (let i = 10; i < 65_000; i++) {
    const address = `10.96.${i >> 8}.${i & 255}`;
    if (!taken.has(address)) return address;
  }
  return '10.96.255.254';
}
