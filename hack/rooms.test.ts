// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { violationsOf } from './rooms.ts';

describe('the house rule', () => {
  test('lets a room import itself, base and the rooms listed for it', () => {
    const text = "import { a } from './a.ts';\nimport { b } from '../base/b.ts';\nimport { c } from '../api/c.ts';\n";
    expect(violationsOf('src/kube/x.ts', text)).toEqual([]);
  });

  test('names the line of a forbidden import, also over several lines, dynamic or re-exported', () => {
    expect(violationsOf('src/embedded/x.ts', "\nimport {\n  solve,\n} from '../scheduling/solve.ts';\n")).toEqual([
      'src/embedded/x.ts:2: embedded may not import scheduling/solve',
    ]);
    expect(violationsOf('src/api/x.ts', "const a = await import('../kube/client.ts');")).toHaveLength(1);
    expect(violationsOf('src/api/x.ts', "export * from '../kube/client.ts';")).toHaveLength(1);
  });

  test('opens single files, and types alone, to scheduling', () => {
    expect(violationsOf('src/scheduling/x.ts', "import { Quantity } from '../kube/quantity.ts';")).toEqual([]);
    expect(violationsOf('src/scheduling/x.ts', "import type { Pod } from '../kube/kinds.ts';")).toEqual([]);
    expect(violationsOf('src/scheduling/x.ts', "import { kinds } from '../kube/kinds.ts';")).toHaveLength(1);
    expect(violationsOf('src/scheduling/x.ts', "import { KubeClient } from '../kube/client.ts';")).toHaveLength(1);
  });

  test('keeps time, chance, the network and the environment injected', () => {
    for (const use of ['Date.now()', 'new Date()', 'setTimeout(f, 1)', 'Math.random()', 'fetch(url)', 'process.env']) {
      expect(violationsOf('src/kube/x.ts', `const x = ${use};`), use).toHaveLength(1);
    }
    expect(violationsOf('src/base/clock.ts', 'const x = Date.now();')).toEqual([]);
    expect(violationsOf('src/cli/x.ts', "plant('cuts-grace');")).toHaveLength(1);
    expect(violationsOf('src/simulation/run.ts', "plant('cuts-grace');")).toHaveLength(1);
    expect(violationsOf('src/kube/x.ts', '// Date.now() is for the clock\nconst y = new Date(5);')).toEqual([]);
  });

  test('keeps scheduling free of async code', () => {
    expect(violationsOf('src/scheduling/x.ts', 'export async function f() {}')).toHaveLength(1);
  });

  test('lets tests look anywhere but at the command line', () => {
    expect(violationsOf('src/embedded/x.test.ts', "import { a } from '../scheduling/a.ts'; Date.now();")).toEqual([]);
    expect(violationsOf('src/kube/x.test.ts', "import { a } from '../cli/main.ts';")).toHaveLength(1);
  });

  test('refuses a folder that is not a room', () => {
    expect(violationsOf('src/utils/x.ts', '')).toHaveLength(1);
  });
});
