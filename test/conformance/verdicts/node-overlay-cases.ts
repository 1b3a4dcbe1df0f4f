// SPDX-License-Identifier: Apache-2.0
// Verdicts on NodeOverlays.
import { addRequirementCases } from './requirement-cases.ts';
import { CaseList, condition, without } from './verdict-case.ts';

type Fields = Readonly<Record<string, unknown>>;

const overlay = (spec: Fields = {}): Fields => ({ spec: { requirements: [], ...spec } });

const list = new CaseList('NodeOverlay');
list.valid('minimal', overlay(), 'requirements are enough');
list.invalid('no-spec', {}, 'the spec is required');
list.invalid('no-requirements', { spec: {} }, 'so are requirements');
addRequirementCases(list, (requirements) => overlay({ requirements }));
list.valid(
  'key-nodepool',
  overlay({ requirements: [{ key: 'karpenter.sh/nodepool', operator: 'Exists' }] }),
  'an overlay may be for one pool',
);
list.invalid(
  'not-in-none',
  overlay({ requirements: [{ key: 'a', operator: 'NotIn', values: [] }] }),
  'NotIn needs a value here',
);
list.invalid('not-in-absent', overlay({ requirements: [{ key: 'a', operator: 'NotIn' }] }), 'and values at all');
list.valid(
  'min-values',
  overlay({ requirements: [{ key: 'a', operator: 'Exists', minValues: 99 }] }),
  'minValues is unknown here, and dropped',
);

for (const price of ['0', '0.432', '42', '007', '1.50'])
  list.valid(`price-${price}`, overlay({ price }), `${price} is a price`);
const badPrices = {
  plus: '+42',
  minus: '-1',
  point: '.5',
  open: '42.',
  percent: '42%',
  comma: '3,14',
  exponent: '1e10',
  hex: '0x42',
  word: 'free',
  letter: '42a',
  tail: '42 ',
  head: ' 42',
  points: '42.0.0',
  empty: '',
  arabic: '٤٢',
  newline: '42\n',
};
for (const [name, price] of Object.entries(badPrices))
  list.invalid(`price-bad-${name}`, overlay({ price }), `${JSON.stringify(price)} is no price`);
list.invalid('price-number', overlay({ price: 42 }), 'a price is a text');

const adjustments = {
  plus: '+1',
  minus: '-1',
  fraction: '+0.5',
  point: '-.5',
  'plus-percent': '+10%',
  'plus-much': '+1000.5%',
  'minus-percent': '-10%',
  'minus-fraction': '-25.5%',
  'minus-99': '-99.99%',
  'minus-100': '-100%',
  'minus-large': '-129',
  'point-percent': '+.5%',
};
for (const [name, priceAdjustment] of Object.entries(adjustments))
  list.valid(`adjust-${name}`, overlay({ priceAdjustment }), `${priceAdjustment} is a change of price`);
const badAdjustments = {
  unsigned: '1',
  'unsigned-percent': '1%',
  'unsigned-fraction': '1.3',
  'below-100': '-101%',
  'below-100-fraction': '-100.5%',
  sign: '-',
  'sign-percent': '+%',
  open: '+1.',
  'point-percent': '-.5%',
  two: '+1%%',
  word: 'half',
  empty: '',
  space: '+ 1',
};
for (const [name, priceAdjustment] of Object.entries(badAdjustments))
  list.invalid(
    `adjust-bad-${name}`,
    overlay({ priceAdjustment }),
    `${JSON.stringify(priceAdjustment)} is no change of price`,
  );
list.invalid(
  'price-both',
  overlay({ price: '1', priceAdjustment: '+1%' }),
  'price and change of price exclude each other',
);

list.valid(
  'capacity',
  overlay({ capacity: { 'example.com/gpu': 4, hugepages: '1Gi' } }),
  'extended resources may be added',
);
list.valid('capacity-none', overlay({ capacity: {} }), 'or none');
for (const name of ['cpu', 'memory', 'ephemeral-storage', 'pods'])
  list.invalid(
    `capacity-${name}`,
    overlay({ capacity: { [name]: 1, 'example.com/gpu': 4 } }),
    `${name} may not be changed`,
  );
list.invalid('capacity-word', overlay({ capacity: { 'example.com/gpu': 'many' } }), 'amounts are quantities');
list.valid('weight-10000', overlay({ weight: 10000 }), 'the greatest weight');
list.invalid('weight-10001', overlay({ weight: 10001 }), 'not more');
list.valid('weight-1', overlay({ weight: 1 }), 'the least weight');
list.invalid('weight-0', overlay({ weight: 0 }), 'not less');
list.validUpdate('update', overlay({ price: '1' }), overlay({ priceAdjustment: '+1' }), 'everything may change');
list.invalidUpdate(
  'update-both',
  overlay({ price: '1' }),
  overlay({ price: '1', priceAdjustment: '+1' }),
  'as long as the rules hold',
);
list.validStatus('status', overlay(), { conditions: [condition()] }, 'a full status');
list.invalidStatus(
  'status-no-reason',
  overlay(),
  { conditions: [without(condition(), 'reason')] },
  'a condition needs a reason',
);
list.invalidStatus('status-twice', overlay(), { conditions: [condition(), condition()] }, 'each type is there once');

export const nodeOverlayCases = list.cases;
