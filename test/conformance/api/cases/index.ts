// SPDX-License-Identifier: Apache-2.0
// All cases, area by area.
import type { ConformanceCase } from '../case.ts';
import { applyCases } from './apply.ts';
import { concurrencyCases } from './concurrency.ts';
import { crudCases } from './crud.ts';
import { deletionCases } from './deletion.ts';
import { listCases } from './lists.ts';
import { patchCases } from './patches.ts';
import { watchCases } from './watches.ts';

export const allCases: readonly ConformanceCase[] = [
  ...crudCases,
  ...concurrencyCases,
  ...patchCases,
  ...applyCases,
  ...watchCases,
  ...listCases,
  ...deletionCases,
];
