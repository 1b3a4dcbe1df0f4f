// SPDX-License-Identifier: Apache-2.0
// The corpus of verdicts: valid and invalid objects of all our kinds. It is put to our schema validation, to the
// embedded API server, to a real kube-apiserver with our CRDs and to one with upstream's.
import { clusterApiNodeClassCases } from './cluster-api-cases.ts';
import { linodeNodeClassCases } from './linode-cases.ts';
import { nodeClaimCases } from './node-claim-cases.ts';
import { nodeOverlayCases } from './node-overlay-cases.ts';
import { nodePoolCases } from './node-pool-cases.ts';
import { capacityBufferCases, kwokNodeClassCases } from './other-cases.ts';
import type { VerdictCase } from './verdict-case.ts';

export type { CandidateObject, VerdictCase, VerdictKind } from './verdict-case.ts';

/** All cases, in a fixed order. */
export const corpus: readonly VerdictCase[] = [
  ...nodePoolCases,
  ...nodeClaimCases,
  ...nodeOverlayCases,
  ...capacityBufferCases,
  ...kwokNodeClassCases,
  ...clusterApiNodeClassCases,
  ...linodeNodeClassCases,
];
