// SPDX-License-Identifier: Apache-2.0
// The rules of roles and of bindings to them.
import { deepEqual } from '../../base/freeze.ts';
import type { RoleBinding } from '../../kube/kinds.ts';
import type { FieldError } from '../../kube/schema/field-error.ts';
import type { PolicyRule } from '../rbac.ts';

/** What is wrong with the rules of a role; those of a namespace are about resources only. */
export function ruleErrors(rules: readonly PolicyRule[] | undefined, namespaced: boolean): FieldError[] {
  const errors: FieldError[] = [];
  (rules ?? []).forEach((rule, i) => {
    const at = `rules[${i}]`;
    if (!rule.verbs?.length) errors.push(required(`${at}.verbs`, 'verbs must contain at least one value'));
    if (rule.nonResourceURLs?.length) {
      if (namespaced) {
        const detail = 'namespaced rules cannot apply to non-resource URLs';
        errors.push({ field: `${at}.nonResourceURLs`, type: 'Invalid', value: rule.nonResourceURLs, detail });
      }
      return;
    }
    if (!rule.apiGroups?.length) {
      errors.push(required(`${at}.apiGroups`, 'resource rules must supply at least one api group'));
    }
    if (!rule.resources?.length) {
      errors.push(required(`${at}.resources`, 'resource rules must supply at least one resource'));
    }
  });
  return errors;
}

/** A binding is to one role for good: what it grants must not change under those it names. */
export function roleRefErrors(
  { roleRef }: Pick<RoleBinding, 'roleRef'>,
  old: Pick<RoleBinding, 'roleRef'>,
): FieldError[] {
  return deepEqual(roleRef, old.roleRef)
    ? []
    : [{ field: 'roleRef', type: 'Invalid', value: roleRef, detail: 'cannot change roleRef' }];
}

function required(field: string, detail: string): FieldError {
  return { field, type: 'Required', detail };
}
