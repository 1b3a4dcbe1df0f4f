// SPDX-License-Identifier: Apache-2.0
// `npm run fuzz -- [requests|parsers] [--seconds 60] [--count N] [--seed N]`: hostile requests to the embedded API server, or
// hostile texts to everything that reads bytes from outside. Exit code 1, and what did it, when something gives way.
import { fuzzOptions } from './options.ts';

const { what } = fuzzOptions();
if (what === 'requests') await import('./run-requests.ts');
else if (what === 'parsers') await import('./run-parsers.ts');
else {
  console.error('usage: npm run fuzz -- [requests|parsers] [--seconds 60] [--count N] [--seed N]');
  process.exit(2);
}
