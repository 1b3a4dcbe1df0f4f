// SPDX-License-Identifier: Apache-2.0
// Label selectors, compiled once: a pass meets the same few in hundreds of pods, and again as it weakens their wishes.
import { compileLabelSelector, type LabelSelector, type Selector } from '../kube/labels.ts';

/** By the text of what was written. Compiled selectors never change, so passes can share them. */
const known = new Map<string, Selector>();
const maxKnown = 4096;

/** Like `compileLabelSelector`. Throws SelectorError. */
export function selectorOf(selector: LabelSelector | null | undefined): Selector {
  const text = JSON.stringify(selector) ?? '';
  let compiled = known.get(text);
  if (!compiled) {
    compiled = compileLabelSelector(selector);
    if (known.size >= maxKnown) known.clear();
    known.set(text, compiled);
  }
  return compiled;
}
