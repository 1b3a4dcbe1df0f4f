// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { declaredMetrics, errorCodesOf, metricNamesIn, renderErrorsReference } from './runtime-reference.ts';

test('an error is found with its class and the first sentence about it', () => {
  const source = `
/** Nobody is home. Try again: later. */
export class AbsentError extends KarpenterError {
  constructor() {
    super('KRP_ABSENT', 'nobody is home');
  }
}

class Other {
  leave() {
    throw new KarpenterError('KRP_LEFT', \`\${name} left: \${reason(\`x\`)}\`);
  }
}
`;
  expect(errorCodesOf(source)).toMatchObject([
    { code: 'KRP_ABSENT', error: 'AbsentError', meaning: 'Nobody is home.' },
    { code: 'KRP_LEFT', error: '' },
  ]);
  const page = renderErrorsReference(errorCodesOf(source).map((code) => ({ ...code, where: 'src/x.ts' })));
  expect(page).toContain('| `KRP_ABSENT` | `AbsentError` | `src/x.ts` | Nobody is home. |');
  expect(page).toContain('| `KRP_LEFT` | – | `src/x.ts` | … left: … |');
});

test('codes in a table belong to the class of the file', () => {
  const source = `const codes = { a: 'KRP_A', b: 'KRP_B' };
/** No answer. */
export class NoAnswerError extends KarpenterError {}
`;
  expect(errorCodesOf(source).map(({ error }) => error)).toEqual(['NoAnswerError', 'NoAnswerError']);
});

test('a metric is found where it is declared', () => {
  const source = "const made = counter({ name: 'made_total', help: 'Made.' });\nmetrics.counter(made);";
  expect(metricNamesIn(source)).toEqual(['made_total']);
});

test('every metric has a well-formed name and help', async () => {
  const metrics = await declaredMetrics();
  expect(metrics.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['workqueue_depth', 'karpenter_build_info', 'karpenter_cloudprovider_errors_total']),
  );
  for (const { name, help, type, labels } of metrics) {
    expect(name).toMatch(/^[a-z][a-z0-9_]*$/);
    expect(help).toMatch(/\.$/);
    if (type === 'counter') expect(name).toMatch(/_total$/);
    expect(new Set(labels).size).toBe(labels.length);
  }
});
