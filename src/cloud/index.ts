// SPDX-License-Identifier: Apache-2.0
// `karpenter-ts/cloud`: what the author of a provider works against.
export {
  capacityTypes,
  commonLabelSet,
  extendLabelSet,
  type LabelSet,
  type LabelSetExtension,
  labels,
} from '../api/labels.ts';
export type { NodeClaim } from '../api/node-claim.ts';
export type { NodePool } from '../api/node-pool.ts';
export {
  CreateError,
  InsufficientCapacityError,
  NodeClaimNotFoundError,
  NodeClassNotReadyError,
  UnevaluatedNodePoolError,
} from './errors.ts';
export type { CloudProvider, Instance, InstanceType, RegistrationHook, RepairPolicy } from './provider.ts';
