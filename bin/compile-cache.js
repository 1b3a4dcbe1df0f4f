// SPDX-License-Identifier: Apache-2.0
// Plain JavaScript for any Node: keeps what V8 compiled (and our types stripped) from one start to the next, so that a
// command answers sooner. In the user's own cache directory, never in a shared one: whoever can write there runs code here.
import module from 'node:module';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import v8 from 'node:v8';

/**
 * V8 leaves a function uncompiled until it is first called, and Node keeps what is compiled when a file is loaded: without this
 * nearly every function would be compiled again in every process, in the middle of its first work.
 */
export const compileWhole = '--no-lazy';

/** Where compiled code is kept; undefined where the user has no place for it. */
export function compileCacheFolder(env = process.env) {
  try {
    const given = env.XDG_CACHE_HOME;
    return join(given && isAbsolute(given) ? given : join(homedir(), '.cache'), 'karpenter-ts', 'compiled');
  } catch {
    // A user without a home directory.
    return undefined;
  }
}

/** Keeps compiled code from now on, where that can be done. Never fails: a read-only place is no reason not to start. */
export function keepCompiledCode(env = process.env) {
  const folder = compileCacheFolder(env);
  // NODE_COMPILE_CACHE and NODE_DISABLE_COMPILE_CACHE stay the user's own say.
  if (folder === undefined || env.NODE_COMPILE_CACHE) return;
  const kept = module.enableCompileCache?.(folder);
  // Where nothing can be kept, compiling what is never called would be in vain.
  if (kept?.status === module.constants.compileCacheStatus.ENABLED) v8.setFlagsFromString(compileWhole);
}
