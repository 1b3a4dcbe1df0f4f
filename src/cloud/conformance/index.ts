// SPDX-License-Identifier: Apache-2.0
// `karpenter-ts/cloud/conformance`: says whether a provider keeps the contract of `karpenter-ts/cloud`. Bring a harness and a
// test runner: `testConformance('mine', newHarness, { describe, test })`.
export { type ConformanceCase, type Method, methods } from './case.ts';
export type {
  CloudFault,
  ExistingMachine,
  HarnessFactory,
  NodeClassRef,
  NodeClassState,
  ProviderHarness,
} from './harness.ts';
export { type CaseResult, conformanceCases, runCase, runConformance, type TestRunner, testConformance } from './run.ts';
