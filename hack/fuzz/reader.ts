// SPDX-License-Identifier: Apache-2.0
// What reads bytes from outside, and how the readers of this folder are written.

export interface Parser {
  readonly name: string;
  /** Texts it takes, to begin with. */
  readonly seeds: readonly string[];
  /** Words that its language is made of. */
  readonly words?: readonly string[];
  /** Its texts are JSON whose reader is not of interest: what the JSON says is. */
  readonly structured?: boolean;
  readonly parse: (text: string) => unknown;
}

/** JSON or nothing: what comes after the JSON reader is what is looked at. */
export function json(read: (value: unknown) => unknown): (text: string) => unknown {
  return (text) => {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return undefined;
    }
    return read(value);
  };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
