// SPDX-License-Identifier: Apache-2.0
// `npm run test:real`: against programs we did not write. They share two cores and a few ports: one file at a time.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/real/**/*.test.ts'],
    globalSetup: ['test/real/build-tools.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    fileParallelism: false,
  },
});
