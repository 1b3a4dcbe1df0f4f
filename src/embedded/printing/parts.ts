// SPDX-License-Identifier: Apache-2.0
// Cells that several kinds share.
import type { PodTemplateSpec } from '../../kube/kinds.ts';
import { compileLabelSelector, type LabelSelector, SelectorError } from '../../kube/labels.ts';

/** `app=web,tier=front`, or `<none>`. */
export function labelText(labels: Readonly<Record<string, string>> | undefined): string {
  const entries = Object.entries(labels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.length === 0 ? '<none>' : entries.map(([key, value]) => `${key}=${value}`).join(',');
}

/** A label selector as text. */
export function selectorText(selector: LabelSelector | undefined): string {
  try {
    return compileLabelSelector(selector).toString() || '<none>';
  } catch (error) {
    if (error instanceof SelectorError) return '<error>';
    throw error;
  }
}

export function containerNames(template: PodTemplateSpec | undefined): string {
  return (template?.spec?.containers ?? []).map((container) => container.name).join(',');
}

export function containerImages(template: PodTemplateSpec | undefined): string {
  return (template?.spec?.containers ?? []).map((container) => container.image ?? '').join(',');
}
