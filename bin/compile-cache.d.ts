// SPDX-License-Identifier: Apache-2.0
// The types of compile-cache.js, for our own TypeScript.
export const compileWhole: string;
type Environment = Readonly<Record<string, string | undefined>>;
export function compileCacheFolder(env?: Environment): string | undefined;
export function keepCompiledCode(env?: Environment): void;
