// SPDX-License-Identifier: Apache-2.0
// What `npm run nightly` runs as tests: like `npm run test:real`, for what takes too long there.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/nightly/**/*.test.ts'],
    globalSetup: ['test/real/build-tools.ts'],
    testTimeout: 240_000,
    hookTimeout: 240_000,
    fileParallelism: false,
  },
});
