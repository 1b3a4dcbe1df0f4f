// SPDX-License-Identifier: Apache-2.0
// The clean run, in which no mutant is made: which tests pass which places. A test that fails here can notice nothing, and
// is not in it.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Notes } from './notes.ts';
import { ended } from './process.ts';
import { digestOf, type TestFile } from './witnesses.ts';

/** Tests of other rooms pass through controllers and providers as well, but are about something else. */
const listened = ['src/controllers/**/*.test.ts', 'src/providers/**/*.test.ts'];

/** What is recorded of all tests, those that are new or have changed since the last time run now. */
export async function recorded(copy: string, folder: string, workers: number): Promise<TestFile[]> {
  const path = join(folder, 'witnesses.jsonl');
  const notes = new Notes<TestFile>(path);
  const digests = new Map(
    globSync(listened, { cwd: copy }).map((file) => [file, digestOf(readFileSync(join(copy, file), 'utf8'))] as const),
  );
  const isNew = (file: TestFile): boolean => file.digest === digests.get(file.path);
  const known = new Set(
    notes
      .all()
      .filter(isNew)
      .map((file) => file.path),
  );
  const unknown = [...digests.keys()].filter((file) => !known.has(file)).sort();
  if (unknown.length > 0) {
    console.log(`${unknown.length} of ${digests.size} test files are run without any mistake`);
    const command = ['vitest', 'run', '--config', 'hack/mutants/vitest.config.ts', '--reporter=dot', '--no-color'];
    const env = { MUTANTS_RECORD: path, MUTANTS_WORKERS: String(workers) };
    const { code, output } = await ended([...command, ...unknown], copy, { env });
    if (code !== 0) console.log(`some fail, and are not listened to:\n${output.slice(-2_000)}`);
  }
  return [
    ...new Map(
      notes
        .all()
        .filter(isNew)
        .map((file) => [file.path, file]),
    ).values(),
  ];
}
