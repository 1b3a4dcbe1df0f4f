// SPDX-License-Identifier: Apache-2.0
// Set up before each test file of a mutated copy: notes which of its tests pass which changed places, and how long they take.
// Only those can notice a mistake there, and only what is well without one.
import { appendFileSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { afterAll, afterEach, beforeEach, expect } from 'vitest';
import { passed } from './active.ts';
import { digestOf, type TestFile, type WitnessTest } from './witnesses.ts';

const record = process.env['MUTANTS_RECORD'];

if (record) {
  const tests: WitnessTest[] = [];
  // What is passed while a file is read is passed by all of its tests.
  let atImport: readonly string[] | undefined;
  let begun = 0;

  beforeEach(() => {
    atImport ??= [...passed];
    passed.clear();
    begun = performance.now();
  });

  afterEach(({ task }) => {
    if (task.result?.state === 'fail') return;
    const ms = Math.round(performance.now() - begun);
    tests.push({ name: task.fullTestName, ms, passes: [...new Set([...(atImport ?? []), ...passed])] });
  });

  afterAll(() => {
    const path = expect.getState().testPath!;
    const file: TestFile = {
      path: relative(process.cwd(), path),
      digest: digestOf(readFileSync(path, 'utf8')),
      tests,
    };
    appendFileSync(record, `${JSON.stringify(file)}\n`);
  });
}
