// SPDX-License-Identifier: Apache-2.0
// What a generated file is to the generator: a path and how its content comes about.

/** One generated file. `path` is relative to the repo, with forward slashes; `content` is the same on every run. */
export interface Generator {
  readonly path: string;
  readonly content: () => string | Promise<string>;
}
