// SPDX-License-Identifier: Apache-2.0
// Every defect, trap and gap that the description of the existing provider marks, and where it is seen not to be one here.
// Those about Machines and replicas are also played on the real managers, as scenarios.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { scenarios } from './testing/scenarios.ts';

interface Mark {
  /** Its section and kind. */
  readonly mark: string;
  readonly about: string;
  /** Parts of titles of tests, by file. */
  readonly seen: Readonly<Record<string, readonly string[]>>;
  /** Parts of names of scenarios. */
  readonly played?: readonly string[];
}

const here = 'src/providers/cluster-api';
const provider = `${here}/provider.test.ts`;
const launching = `${here}/launching.test.ts`;
const removing = `${here}/removing.test.ts`;
const drift = `${here}/drift.test.ts`;
const catalog = `${here}/catalog.test.ts`;
const shape = `${here}/shape.test.ts`;
const ledger = `${here}/ledger.test.ts`;
const settings = `${here}/settings.test.ts`;
const whole = `${here}/whole.test.ts`;
const nodeClass = `${here}/node-class-controller.test.ts`;
const charts = 'test/real/charts.test.ts';
const real = 'test/real/cluster-api.test.ts';

const marks: readonly Mark[] = [
  {
    mark: '§1 GAP',
    about: 'only MachineDeployments',
    seen: { [launching]: ['MachineSets are members too'], [`${here}/orphans.test.ts`]: ['§1 GAP: orphan Machines'] },
    played: ['a MachineSet of its own', 'machines without an owner'],
  },
  {
    mark: '§1.1 GAP',
    about: 'no switch for a controller inside the management cluster',
    seen: { [settings]: ['§1.1 GAP: the cluster that the controller runs in'] },
  },
  {
    mark: '§1.1 GAP',
    about: 'no filter by Cluster or namespace',
    seen: {
      [catalog]: ['§1.1 GAP: a NodeClass keeps to a namespace and to a Cluster'],
      [provider]: ['§1.1 GAP: NodeClaims of another cluster'],
    },
  },
  {
    mark: '§2 GAP',
    about: 'no minimum size',
    seen: { [ledger]: ['§2 GAP: never goes below the minimum'], [removing]: ['§2 GAP: keeps the minimum size'] },
    played: ['a minimum size is kept'],
  },
  { mark: '§2 TRAP', about: 'no pods without maxPods', seen: { [shape]: ['§2 TRAP: has room for 110 pods'] } },
  { mark: '§2 GAP', about: 'taints', seen: { [shape]: ['§2 GAP: has the taints'] } },
  { mark: '§2 GAP', about: 'dra-driver', seen: { [shape]: ['§2 GAP: has devices of a driver'] } },
  {
    mark: '§2 BUG',
    about: 'an amount that cannot be read ends the process',
    seen: {
      [shape]: ['§2 BUG: %s'],
      [catalog]: ['§2 BUG: one that cannot be read costs only itself'],
      [nodeClass]: ['names the member that cannot be used and why'],
    },
  },
  {
    mark: '§2 TRAP',
    about: 'an annotation that Cluster API writes as well',
    seen: { [launching]: ["§2 TRAP: Cluster API's own annotation"] },
  },
  {
    mark: '§3 TRAP',
    about: 'several copies of the definitions',
    seen: { [charts]: ['holds our definitions, and nothing of them is lost'] },
  },
  { mark: '§4 BUG', about: 'a selector replaces the member label', seen: { [catalog]: ['§4 TRAP: the member label'] } },
  {
    mark: '§4 GAP',
    about: 'paused, deleting, rolling and broken members',
    seen: {
      [catalog]: ['§4 GAP: a paused one is known'],
      [launching]: ['a member that says it cannot make Machines'],
      [removing]: ['§6.4 TRAP: waits for a rollout'],
    },
  },
  {
    mark: '§5 GAP',
    about: 'labels that Cluster API was told to copy',
    seen: { [settings]: ['§5 GAP: more labels'], [catalog]: ['§5 GAP: have the labels that Cluster API was told'] },
  },
  {
    mark: '§5 GAP',
    about: 'capacity of the infrastructure template',
    seen: { [shape]: ['§5 GAP: comes from the infrastructure'], [catalog]: ['§5 GAP: come from the status'] },
  },
  { mark: '§5 GAP', about: 'overhead', seen: { [catalog]: ['§5 GAP: keep something for the system'] } },
  { mark: '§5 BUG', about: 'names that are shared or empty', seen: { [catalog]: ['§5 BUG: have names of their own'] } },
  {
    mark: '§5 BUG',
    about: 'a maximum that a batch exceeds',
    seen: { [ledger]: ['§5 BUG: refuses what does not fit'], [launching]: ['§5 BUG: a batch does not exceed'] },
    played: ['a maximum size is kept inside one batch'],
  },
  {
    mark: '§6.1 GAP',
    about: 'NodeClasses that are missing or not ready',
    seen: { [launching]: ['§6.1 GAP: is refused for a NodeClass'] },
  },
  {
    mark: '§6.1 GAP',
    about: 'the first type by name is bought',
    seen: { [launching]: ['§6.1 GAP: takes the cheapest'] },
    played: ['machines move to a MachineDeployment that is cheaper'],
  },
  {
    mark: '§6.2 BUG',
    about: 'a list that fails counts as empty',
    seen: { [launching]: ['§6.2 BUG: Machines that cannot be listed'] },
    played: ['the management cluster restarts in the middle of a launch'],
  },
  {
    mark: '§6.2 BUG',
    about: 'a Machine with two NodeClaims',
    seen: {
      [launching]: ['§6.2 BUG: no Machine ever has two', '§6.2 BUG: a Machine that somebody claimed'],
      [`${here}/many.test.ts`]: ['1,000 NodeClaims over 50 MachineDeployments'],
      [`${here}/planted.test.ts`]: ['cluster-api-binds-twice'],
    },
    played: ['from nothing to five machines'],
  },
  {
    mark: '§6.2 TRAP',
    about: 'Machines that were there before are taken',
    seen: {
      [launching]: ['§6.2 TRAP: never takes a Machine that was there before'],
      [ledger]: ['§6.2 TRAP: keeps Machines apart'],
      [`${here}/planted.test.ts`]: ['cluster-api-adopts-strangers'],
    },
    played: ['a machine that somebody else has'],
  },
  {
    mark: '§6.2 TRAP',
    about: 'the member label in the template',
    seen: { [launching]: ['§6.2 TRAP: works when the member label is in the template'] },
    played: ['the member label may be in the template'],
  },
  {
    mark: '§6.4 BUG',
    about: 'each retry lowers replicas again',
    seen: {
      [removing]: ['§6.4 BUG: lowers replicas once'],
      [`${here}/planted.test.ts`]: ['cluster-api-lowers-again'],
    },
    played: ['managers that stand still'],
  },
  {
    mark: '§6.4 TRAP',
    about: 'lowering in the middle of a rollout',
    seen: { [removing]: ['§6.4 TRAP: waits for a rollout', 'when the wrong Machine was chosen'] },
    played: ['a rollout of Cluster API itself', 'a Machine that somebody deletes', 'somebody scales the same'],
  },
  {
    mark: '§6.6 BUG',
    about: 'one Machine hides all others',
    seen: { [provider]: ['§6.6 BUG: one Machine whose MachineDeployment is gone'] },
    played: ['a MachineDeployment that is deleted'],
  },
  {
    mark: '§6.9 GAP',
    about: 'no drift',
    seen: {
      [drift]: ['§6.9 GAP: %s', '§15 (61): is left to Cluster API', 'comes from labels that the member tells'],
    },
    played: ['machines follow a new template'],
  },
  {
    mark: '§6.10 BUG',
    about: 'a NodeClaim that timed out leaves its Machine behind',
    seen: {
      [provider]: ['§6.10 BUG: a NodeClaim that ended', '§6.10 BUG: also one'],
      [whole]: ['machines that never get'],
    },
    played: ['a NodeClaim that ends before its machine has an id'],
  },
  {
    mark: '§8 GAP',
    about: 'a NodeClass is ready whatever there is',
    seen: { [nodeClass]: ['says that its selector matches nothing', 'says that the kinds of Cluster API are missing'] },
  },
  {
    mark: '§9 TRAP',
    about: 'PEM that is not base64',
    seen: { [settings]: ['§9 TRAP: the authority may be PEM or base64'] },
  },
  {
    mark: '§9 GAP',
    about: 'no validation, a token that never changes',
    seen: {
      [settings]: ['§9 GAP: a token may come from a file', 'settings that contradict each other'],
      'src/kube/kubeconfig.test.ts': ['what is written in is read again once the server has rejected it'],
    },
  },
  {
    mark: '§10 GAP',
    about: 'no metrics, no events',
    seen: { [launching]: ['§10 GAP: and all of it is counted'], [nodeClass]: ["toContain('InvalidMember')"] },
  },
  {
    mark: '§11 GAP',
    about: 'a token in clear in the pod',
    seen: { 'test/real/golden/everything.yaml': ['key: CLUSTER_API_TOKEN'], [charts]: ['toMatchFileSnapshot'] },
  },
  {
    mark: '§11 TRAP',
    about: 'rights in the management cluster',
    seen: { [real]: ['nothing that the controller asked of either cluster was refused', 'it holds no right'] },
  },
  {
    mark: '§14 GAP',
    about: 'prices, spot, repair policies',
    seen: {
      [shape]: ['§14 GAP: the price', '§14 GAP: is spot by label'],
      [catalog]: ['§14 GAP: have their price from the table'],
      [whole]: ['§14 GAP: a NodeOverlay says what machines cost'],
      [`${here}/health-checks.test.ts`]: ['§14 GAP: without MachineHealthChecks', 'adds its conditions'],
    },
  },
];

test.each(marks.map((each) => [each.mark, each.about, each] as const))('%s: %s', (_, __, { seen, played = [] }) => {
  for (const [file, titles] of Object.entries(seen)) {
    const text = readFileSync(file, 'utf8');
    for (const title of titles) expect(text, file).toContain(title);
  }
  for (const name of played) expect(scenarios.filter((scenario) => scenario.name.startsWith(name))).toHaveLength(1);
});
