// SPDX-License-Identifier: Apache-2.0
// Compiled selectors of cached objects: an object from a cache never changes, so neither does its selector.
import { compileLabelSelector, type LabelSelector, nothing, type Selector } from '../../kube/labels.ts';

const compiled = new WeakMap<object, Selector>();

/** The selector in `spec.selector`, compiled once per object. One that does not compile matches nothing. */
export function selectorOf(object: { readonly spec?: { readonly selector?: unknown } }): Selector {
  let selector = compiled.get(object);
  if (!selector) {
    selector = compile(object.spec?.selector as LabelSelector | undefined);
    compiled.set(object, selector);
  }
  return selector;
}

function compile(selector: LabelSelector | undefined): Selector {
  try {
    return compileLabelSelector(selector);
  } catch {
    // The API server refuses such selectors; one that slipped through must select no pods, least of all everybody's.
    return nothing;
  }
}
