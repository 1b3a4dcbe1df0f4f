// SPDX-License-Identifier: Apache-2.0
// What Deployments, ReplicaSets, DaemonSets, StatefulSets and Jobs have in common: a selector and a template.
import { deepEqual } from '../../base/freeze.ts';
import type { PodTemplateSpec } from '../../kube/kinds.ts';
import { compileLabelSelector, type LabelSelector, SelectorError } from '../../kube/labels.ts';
import type { FieldError } from '../../kube/schema/field-error.ts';
import { defaultPodSpec } from './pod-defaults.ts';
import { invalid, oneOf, required, validatePodSpec } from './pod-validation.ts';

export function defaultTemplate(template: PodTemplateSpec | undefined): void {
  if (template?.spec) defaultPodSpec(template.spec);
}

/** A workload's selector must be there and pick its own pods. */
export function selectorMatchesTemplate(
  selector: LabelSelector | undefined,
  template: PodTemplateSpec | undefined,
): FieldError[] {
  const errors: FieldError[] = [];
  const empty =
    selector && Object.keys(selector.matchLabels ?? {}).length === 0 && (selector.matchExpressions ?? []).length === 0;
  const labels = template?.metadata?.labels;
  const mismatch = invalid(
    'spec.template.metadata.labels',
    labels ?? {},
    '`selector` does not match template `labels`',
  );
  if (!selector) errors.push(required('spec.selector'), mismatch);
  else if (empty) errors.push(invalid('spec.selector', {}, 'empty selector is invalid for deployment'));
  if (selector && !empty) {
    try {
      if (!compileLabelSelector(selector).matches(labels)) {
        errors.push(mismatch);
      }
    } catch (error) {
      if (!(error instanceof SelectorError)) throw error;
      errors.push(invalid('spec.selector', selector, error.message));
    }
  }
  return errors;
}

/** The template of a workload whose pods are kept running. */
export function validateTemplate(
  template: PodTemplateSpec | undefined,
  restartPolicies: readonly string[],
): FieldError[] {
  const errors = validatePodSpec(template?.spec, 'spec.template.spec');
  if (errors.length === 0)
    oneOf(errors, 'spec.template.spec.restartPolicy', template?.spec?.restartPolicy, restartPolicies);
  return errors;
}

export function notNegative(field: string, value: number | undefined): FieldError[] {
  return value !== undefined && value < 0 ? [invalid(field, value, 'must be greater than or equal to 0')] : [];
}

export function immutable(field: string, value: unknown, old: unknown): FieldError[] {
  return deepEqual(value, old) ? [] : [invalid(field, value, 'field is immutable')];
}
