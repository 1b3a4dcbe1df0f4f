// SPDX-License-Identifier: Apache-2.0
// Texts of others as parts of a URL or of a header's name.

/** Percent-encoded; half a character, which JSON and YAML may hold and UTF-8 may not, becomes the sign for one that is lost. */
export function percentEncoded(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}
