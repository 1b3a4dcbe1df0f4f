// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/conformance/**/*.test.ts', 'hack/**/*.test.ts'],
    testTimeout: 30_000,
    // A world that is made before each test is the slow part of it.
    hookTimeout: 30_000,
    // Two cores: more workers only fight for them.
    maxWorkers: 2,
  },
});
