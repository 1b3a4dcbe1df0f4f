// SPDX-License-Identifier: Apache-2.0
// The truth: every case of the conformance suite, asked of a real kube-apiserver 1.36.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe } from 'vitest';
import { parse } from 'yaml';
import { agentFor } from '../conformance/api/caller.ts';
import { allCases } from '../conformance/api/cases/index.ts';
import { overHttps } from '../conformance/api/subjects.ts';
import { conformance, reportWriter, type Subject } from '../conformance/api/suite.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';

let alone: ControlPlane | undefined;
let withControllers: ControlPlane | undefined;
const agent = agentFor(undefined);

beforeAll(async () => {
  alone = await startControlPlane();
  withControllers = await startControlPlane({ workloads: true });
});
afterAll(async () => {
  await agent.destroy();
  await withControllers?.stop();
  await alone?.stop();
});

function subjectOf(plane: ControlPlane | undefined): Subject {
  const { users } = parse(readFileSync(plane!.kubeconfig, 'utf8')) as { users: { user: { token: string } }[] };
  return overHttps({ url: plane!.url, token: users[0]!.user.token }, agent);
}

const report = reportWriter('real', allCases.length);

describe('a real API server', () => {
  conformance(
    () => subjectOf(alone),
    allCases.filter((each) => !each.controllers),
    report,
  );
});

describe('a real API server with controllers', () => {
  conformance(
    () => subjectOf(withControllers),
    allCases.filter((each) => each.controllers),
    report,
  );
});
