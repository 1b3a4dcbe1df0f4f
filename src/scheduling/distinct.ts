// SPDX-License-Identifier: Apache-2.0
// Values to small numbers: equal plain values get the same place, however they are written.

/**
 * Distinct values in the order of first sight. Values are told apart by the text they were written as; only a new text is
 * looked at closely, so that the same value written in another order is still the same.
 */
export class Distinct<T> {
  readonly all: T[] = [];
  readonly #byText = new Map<string, number>();
  readonly #byForm = new Map<string, number>();

  /** The place in `all` of the value with this text; -1 when the text is new: then `add` it. */
  place(text: string): number {
    return this.#byText.get(text) ?? -1;
  }

  /** The place of a value with a new text; `form` is what makes it equal to others. */
  add(text: string, value: T, form: unknown): number {
    return this.addAs(text, value, canonicalText(form));
  }

  /** The same where the canonical text of its form is known. */
  addAs(text: string, value: T, same: string): number {
    let place = this.#byForm.get(same);
    if (place === undefined) {
      place = this.all.length;
      this.all.push(value);
      this.#byForm.set(same, place);
    }
    this.#byText.set(text, place);
    return place;
  }
}

/** Equal for equal plain values, whatever the order of their keys. Absent and undefined are the same. */
export function canonicalText(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value !== 'object' || value === null) return String(value);
  let text = '';
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) text += `${canonicalText(value[i])},`;
    return `[${text}]`;
  }
  for (const key of Object.keys(value).sort()) {
    const field = (value as Record<string, unknown>)[key];
    if (field !== undefined) text += `${JSON.stringify(key)}:${canonicalText(field)},`;
  }
  return `{${text}}`;
}
