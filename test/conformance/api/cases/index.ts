// SPDX-License-Identifier: Apache-2.0
// All cases, area by area.
import type { ConformanceCase } from '../case.ts';
import { accessCases } from './access.ts';
import { applyCases } from './apply.ts';
import { badRequestCases } from './bad-requests.ts';
import { bluntCases } from './blunt-refusals.ts';
import { concurrencyCases } from './concurrency.ts';
import { controllerCases } from './controllers.ts';
import { crudCases } from './crud.ts';
import { customCases } from './custom-resources.ts';
import { definitionCases } from './definitions.ts';
import { deletionCases } from './deletion.ts';
import { listCases } from './lists.ts';
import { logCases } from './logs.ts';
import { ownerCases } from './owners.ts';
import { patchCases } from './patches.ts';
import { presentationCases } from './presentation.ts';
import { ruleCases } from './rules.ts';
import { subresourceCases } from './subresources.ts';
import { validationCases } from './validation.ts';
import { watchCases } from './watches.ts';
import { workloadCases } from './workloads.ts';

export const allCases: readonly ConformanceCase[] = [
  ...crudCases,
  ...concurrencyCases,
  ...patchCases,
  ...applyCases,
  ...ownerCases,
  ...watchCases,
  ...listCases,
  ...deletionCases,
  ...customCases,
  ...definitionCases,
  ...ruleCases,
  ...subresourceCases,
  ...logCases,
  ...validationCases,
  ...presentationCases,
  ...accessCases,
  ...badRequestCases,
  ...bluntCases,
  ...controllerCases,
  ...workloadCases,
];
