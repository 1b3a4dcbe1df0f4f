// SPDX-License-Identifier: Apache-2.0
// What makes a pod's spec impossible, in the API server's words.
import type { Container, PodSpec } from '../../kube/kinds.ts';
import { isQualifiedName } from '../../kube/labels.ts';
import { Quantity } from '../../kube/quantity.ts';
import type { FieldError } from '../../kube/schema/field-error.ts';
import { labelProblems } from '../rest/names.ts';

/** What is wrong with a pod's spec; `at` is where it stands (`spec`, `spec.template.spec`). */
export function validatePodSpec(spec: PodSpec | undefined, at: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!spec) return [required(`${at}.containers`)];
  const volumes = validateVolumes(spec, at, errors);
  if ((spec.containers ?? []).length === 0) errors.push(required(`${at}.containers`));
  const names = new Set<string>();
  spec.initContainers?.forEach((container, i) =>
    validateContainer(container, `${at}.initContainers[${i}]`, names, volumes, errors),
  );
  spec.containers?.forEach((container, i) =>
    validateContainer(container, `${at}.containers[${i}]`, names, volumes, errors),
  );
  oneOf(errors, `${at}.restartPolicy`, spec.restartPolicy, ['Always', 'OnFailure', 'Never']);
  oneOf(errors, `${at}.dnsPolicy`, spec.dnsPolicy, ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']);
  if ((spec.activeDeadlineSeconds ?? 1) < 1) {
    errors.push(
      invalid(`${at}.activeDeadlineSeconds`, spec.activeDeadlineSeconds, 'must be between 1 and 2147483647, inclusive'),
    );
  }
  for (const key in spec.nodeSelector) {
    for (const detail of isQualifiedName(key)) errors.push(invalid(`${at}.nodeSelector`, key, detail));
  }
  validateNodeAffinity(spec, at, errors);
  validateSpread(spec, at, errors);
  validateTolerations(spec, at, errors);
  return errors;
}

function validateNodeAffinity(spec: PodSpec, at: string, errors: FieldError[]): void {
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const path = `${at}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution`;
  required?.nodeSelectorTerms?.forEach((term, i) =>
    term.matchExpressions?.forEach(({ operator, values }, j) => {
      const field = `${path}.nodeSelectorTerms[${i}].matchExpressions[${j}]`;
      const count = values?.length ?? 0;
      if ((operator === 'In' || operator === 'NotIn') && count === 0) {
        const detail = "must be specified when `operator` is 'In' or 'NotIn'";
        errors.push({ field: `${field}.values`, type: 'Required', detail });
      } else if ((operator === 'Exists' || operator === 'DoesNotExist') && count > 0) {
        const detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
        errors.push({ field: `${field}.values`, type: 'Forbidden', detail });
      } else if ((operator === 'Gt' || operator === 'Lt') && count !== 1) {
        const detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
        errors.push({ field: `${field}.values`, type: 'Required', detail });
      } else if (!nodeOperators.has(operator)) {
        errors.push(invalid(`${field}.operator`, operator, 'not a valid selector operator'));
      }
    }),
  );
}

const nodeOperators = new Set(['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt']);

function validateVolumes(spec: PodSpec, at: string, errors: FieldError[]): Set<string> {
  const names = new Set<string>();
  spec.volumes?.forEach((volume, i) => {
    const field = `${at}.volumes[${i}].name`;
    if (!volume.name) errors.push(required(field));
    else {
      for (const detail of labelProblems(volume.name)) errors.push(invalid(field, volume.name, detail));
      if (names.has(volume.name)) errors.push({ field, type: 'Duplicate value', value: volume.name, detail: '' });
      names.add(volume.name);
    }
    const sources = Object.keys(volume).filter((key) => key !== 'name');
    for (const extra of sources.slice(1)) {
      errors.push({
        field: `${at}.volumes[${i}].${extra}`,
        type: 'Forbidden',
        detail: 'may not specify more than 1 volume type',
      });
    }
  });
  return names;
}

function validateContainer(
  container: Container,
  at: string,
  names: Set<string>,
  volumes: ReadonlySet<string>,
  errors: FieldError[],
): void {
  if (!container.name) errors.push(required(`${at}.name`));
  else {
    for (const detail of labelProblems(container.name)) errors.push(invalid(`${at}.name`, container.name, detail));
  }
  if (!container.image) errors.push(required(`${at}.image`));
  else if (container.image !== container.image.trim()) {
    errors.push(invalid(`${at}.image`, container.image, 'must not have leading or trailing whitespace'));
  }
  if (container.name && names.has(container.name)) {
    errors.push({ field: `${at}.name`, type: 'Duplicate value', value: container.name, detail: '' });
  }
  names.add(container.name);
  oneOf(errors, `${at}.imagePullPolicy`, container.imagePullPolicy, ['Always', 'IfNotPresent', 'Never']);
  container.ports?.forEach((port, i) => {
    for (const field of ['containerPort', 'hostPort'] as const) {
      const number = port[field];
      if (number === undefined && field === 'containerPort') errors.push(required(`${at}.ports[${i}].${field}`));
      else if (number !== undefined && (number < 1 || number > 65_535)) {
        errors.push(invalid(`${at}.ports[${i}].${field}`, number, 'must be between 1 and 65535, inclusive'));
      }
    }
    oneOf(errors, `${at}.ports[${i}].protocol`, port.protocol, ['SCTP', 'TCP', 'UDP']);
  });
  container.volumeMounts?.forEach((mount, i) => {
    if (!mount.name) errors.push(required(`${at}.volumeMounts[${i}].name`));
    else if (!volumes.has(mount.name)) {
      errors.push({ field: `${at}.volumeMounts[${i}].name`, type: 'Not found', value: mount.name, detail: '' });
    }
    if (!mount.mountPath) errors.push(required(`${at}.volumeMounts[${i}].mountPath`));
  });
  validateResources(container, `${at}.resources`, errors);
}

function validateResources(container: Container, at: string, errors: FieldError[]): void {
  const { requests = {}, limits = {} } = container.resources ?? {};
  for (const name in limits) validateAmount(`${at}.limits[${name}]`, name, limits[name], errors);
  for (const name in requests) {
    validateAmount(`${at}.requests[${name}]`, name, requests[name], errors);
    const request = Quantity.tryParse(requests[name]);
    const limit = limits[name] === undefined ? undefined : Quantity.tryParse(limits[name]);
    if (!request || !limit || request.cmp(limit) <= 0) continue;
    const detail = `must be less than or equal to ${name} limit of ${limit.toString()}`;
    errors.push(invalid(`${at}.requests`, String(requests[name]), detail));
  }
}

function validateAmount(field: string, name: string, amount: unknown, errors: FieldError[]): void {
  for (const detail of isQualifiedName(name)) errors.push(invalid(field, name, detail));
  if (!name.includes('/') && !standardResources.test(name)) {
    errors.push(invalid(field, name, 'must be a standard resource for containers'));
  }
  const value = Quantity.tryParse(amount);
  if (value && value.sign() < 0) errors.push(invalid(field, amount, 'must be greater than or equal to 0'));
}

const standardResources = /^(cpu|memory|ephemeral-storage|storage|hugepages-.+)$/;

function validateTolerations(spec: PodSpec, at: string, errors: FieldError[]): void {
  spec.tolerations?.forEach((toleration, i) => {
    const field = `${at}.tolerations[${i}]`;
    oneOf(errors, `${field}.operator`, toleration.operator || undefined, ['Equal', 'Exists', 'Lt', 'Gt']);
    if (!toleration.key && toleration.operator !== 'Exists') {
      errors.push(
        invalid(
          `${field}.operator`,
          toleration.operator ?? '',
          'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        ),
      );
    }
    if (toleration.operator === 'Exists' && toleration.value) {
      errors.push(invalid(`${field}.operator`, { ...toleration }, "value must be empty when `operator` is 'Exists'"));
    }
    oneOf(errors, `${field}.effect`, toleration.effect || undefined, ['NoSchedule', 'PreferNoSchedule', 'NoExecute']);
    if (toleration.tolerationSeconds !== undefined && toleration.effect !== 'NoExecute') {
      errors.push(
        invalid(
          `${field}.effect`,
          toleration.effect ?? '',
          "effect must be 'NoExecute' when `tolerationSeconds` is set",
        ),
      );
    }
  });
}

function validateSpread(spec: PodSpec, at: string, errors: FieldError[]): void {
  spec.topologySpreadConstraints?.forEach((constraint, i) => {
    const field = `${at}.topologySpreadConstraints[${i}]`;
    if (!(constraint.maxSkew > 0))
      errors.push(invalid(`${field}.maxSkew`, constraint.maxSkew ?? 0, 'must be greater than zero'));
    if (!constraint.topologyKey)
      errors.push({ field: `${field}.topologyKey`, type: 'Required', detail: 'can not be empty' });
    oneOf(errors, `${field}.whenUnsatisfiable`, constraint.whenUnsatisfiable ?? '', [
      'DoNotSchedule',
      'ScheduleAnyway',
    ]);
    if (constraint.minDomains !== undefined && constraint.minDomains < 1) {
      errors.push(invalid(`${field}.minDomains`, constraint.minDomains, 'must be greater than zero'));
    }
  });
}

export function required(field: string, detail = ''): FieldError {
  return { field, type: 'Required', detail };
}

export function invalid(field: string, value: unknown, detail: string): FieldError {
  return { field, type: 'Invalid', value, detail };
}

/** Adds an error when the value is given and none of those supported. */
export function oneOf(errors: FieldError[], field: string, value: unknown, supported: readonly string[]): void {
  if (value === undefined || supported.includes(value as string)) return;
  const listed = supported.map((item) => JSON.stringify(item)).join(', ');
  errors.push({ field, type: 'Unsupported value', value, detail: `supported values: ${listed}` });
}
