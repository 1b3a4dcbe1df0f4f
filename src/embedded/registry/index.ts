// SPDX-License-Identifier: Apache-2.0
// All built-in kinds.
import type { Resource } from '../resource.ts';
import { appsResources } from './apps.ts';
import { batchResources } from './batch.ts';
import { coreResources } from './core.ts';
import { otherResources } from './other.ts';
import { reviewResources } from './reviews.ts';

export const builtInResources: readonly Resource[] = [
  ...coreResources,
  ...appsResources,
  ...batchResources,
  ...otherResources,
  ...reviewResources,
];
