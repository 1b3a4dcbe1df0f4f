// SPDX-License-Identifier: Apache-2.0
// The embedded API server answers every case as kube-apiserver 1.36 does: over HTTPS and in its own process.
import { afterAll, beforeAll, describe } from 'vitest';
import { allCases } from './cases/index.ts';
import { type EmbeddedSubjects, startEmbedded } from './embedded.ts';
import { conformance, reportWriter } from './suite.ts';

let subjects: EmbeddedSubjects;
beforeAll(async () => {
  subjects = await startEmbedded();
});
afterAll(() => subjects?.close());

const [apart, together] = [allCases.filter((each) => !each.controllers), allCases.filter((each) => each.controllers)];
const report = reportWriter('embedded', allCases.length);

describe('over HTTPS', () => {
  conformance(() => subjects.https, apart, report);
  conformance(() => subjects.clusterHttps, together, report);
});

describe('in process', () => {
  conformance(
    () => subjects.inProcess,
    apart.filter((each) => !each.wire),
  );
  conformance(() => subjects.clusterInProcess, together);
});
