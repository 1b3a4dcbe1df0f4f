// SPDX-License-Identifier: Apache-2.0
// Compiled selectors of cached objects: an object from a cache never changes, so neither does its selector.
import { compileLabelSelector, type LabelSelector, nothing, type Selector } from '../../kube/labels.ts';

const compiled = new WeakMap<object, Selector>();

/** The selector in `spec.selector`, compiled once: every version of an object has the same. One that does not compile matches nothing. */
export function selectorOf(object: { readonly spec?: { readonly selector?: unknown } }): Selector {
  const given = object.spec?.selector as LabelSelector | undefined;
  if (!given || !Object.isFrozen(given)) return compile(given);
  let selector = compiled.get(given);
  if (!selector) {
    selector = compile(given);
    compiled.set(given, selector);
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
