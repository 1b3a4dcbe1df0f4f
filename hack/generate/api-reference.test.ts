// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { defineKind } from '../../src/api/kind.ts';
import { array, integer, map, object, quantity, string } from '../../src/api/schema.ts';
import { referencePage } from './api-reference.ts';

const kind = defineKind({
  group: 'example.com',
  version: 'v1',
  kind: 'Thing',
  plural: 'things',
  shortNames: ['th'],
  categories: ['all'],
  namespaced: true,
  description: 'A thing.',
  spec: object({
    description: 'What it should be.',
    required: ['parts'],
    fields: {
      parts: array(
        object({
          description: 'One part.',
          required: ['mode'],
          fields: { mode: string({ description: 'How.', enum: ['A', 'B'], default: 'A' }) },
        }),
        { description: 'Its parts.', maxItems: 3, rules: [{ rule: 'true', message: 'parts must fit' }] },
      ),
      size: integer({ description: 'How large | how small.', format: 'int32', minimum: 1, maximum: 9 }),
      amounts: map(quantity, { description: 'How much.' }),
    },
    rules: [{ rule: 'true', message: 'it must make sense' }],
  }),
  status: object({ description: 'What it is.', fields: {} }),
  columns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size', priority: 1 }],
});

test('a page names the resource, its columns, every field and every rule', () => {
  expect(referencePage(kind)).toMatchInlineSnapshot(`
    "<!-- Generated from src/api by \`npm run generate\`. Do not edit. -->

    # Thing

    A thing.

    |  |  |
    |---|---|
    | apiVersion | \`example.com/v1\` |
    | kind | \`Thing\` |
    | resource | \`things\` |
    | short names | \`th\` |
    | categories | \`all\` |
    | scope | namespaced |
    | subresources | \`status\` |

    ## Columns of \`kubectl get\`

    | column | shows | when |
    |---|---|---|
    | Size | \`.spec.size\` | wide |

    ## spec

    What it should be.

    | field | type | default | meaning |
    |---|---|---|---|
    | \`parts\` | list of objects | required | Its parts.<br>At most 3 items. |
    | \`size\` | int32 | – | How large \\| how small.<br>1 to 9. |
    | \`amounts\` | map to quantity | – | How much. |

    Rules:

    - it must make sense.
    - \`parts\`: parts must fit.

    ## spec.parts[]

    One part.

    | field | type | default | meaning |
    |---|---|---|---|
    | \`mode\` | \`A\`, \`B\` | \`A\` | How. |

    ## status

    What it is.

    | field | type | default | meaning |
    |---|---|---|---|

    How these checks differ from upstream Karpenter: [differences](differences.md).
    "
  `);
});
