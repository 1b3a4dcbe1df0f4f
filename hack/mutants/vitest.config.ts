// SPDX-License-Identifier: Apache-2.0
// How the tests of a mutated copy are run.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts'],
    setupFiles: ['hack/mutants/recorder.ts'],
    // Time that passes because a machine is busy must not count as a mistake that was noticed.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    maxWorkers: Number(process.env['MUTANTS_WORKERS'] ?? 1),
    // Beside the copy, which is made anew for every run.
    fsModuleCachePath: '../vitest-cache',
  },
});
