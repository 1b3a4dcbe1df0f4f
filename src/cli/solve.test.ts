// SPDX-License-Identifier: Apache-2.0
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { registerSolve } from './solve.ts';

const problem = `
nodePools:
  - metadata: { name: general }
    spec: { template: { spec: { requirements: [] } } }
instanceTypes:
  general:
    - name: box
      requirements: []
      capacity: { cpu: "2", memory: 4Gi, pods: "10" }
      offerings:
        - price: 0.5
          requirements:
            - { key: topology.kubernetes.io/zone, operator: In, values: [a] }
            - { key: karpenter.sh/capacity-type, operator: In, values: [spot] }
pods:
  - { metadata: { name: fits }, spec: { containers: [{ resources: { requests: { cpu: "1" } } }] } }
  - { metadata: { name: huge }, spec: { containers: [{ resources: { requests: { cpu: "9" } } }] } }
`;

describe('karpenter solve', () => {
  let folder: string;
  let said: string[];
  let complained: string[];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'solve-'));
    said = [];
    complained = [];
    vi.spyOn(console, 'log').mockImplementation((text: string) => void said.push(text));
    vi.spyOn(console, 'error').mockImplementation((text: string) => void complained.push(text));
  });
  afterEach(() => {
    vi.restoreAllMocks();
    rmSync(folder, { recursive: true });
    process.exitCode = undefined;
  });

  async function run(text: string, ...flags: string[]): Promise<void> {
    const file = join(folder, 'problem');
    writeFileSync(file, text);
    const program = new Command().exitOverride();
    registerSolve(program);
    await program.parseAsync(['node', 'karpenter', 'solve', file, ...flags]);
  }

  test('prints a table of what to buy and what has no place', async () => {
    await run(problem);
    expect(said[0]).toMatch(/general +box +1 +0\.5000 +1 +1 +0 +any/);
    expect(said[0]).toMatch(/default\/huge +it asks for 9 cpu/);
    expect(process.exitCode).toBeUndefined();
  });
  test('prints JSON when asked, from JSON too', async () => {
    await run(problem, '-o', 'json');
    expect(JSON.parse(said[0]!)).toMatchObject({ newNodeClaims: [{ nodePool: 'general', pods: ['default/fits'] }] });
    await run('{"nodePools":[],"instanceTypes":{},"pods":[]}', '-o', 'json');
    expect(JSON.parse(said[1]!)).toMatchObject({ stats: { pods: 0 } });
  });
  test('explains a pod', async () => {
    await run(problem, '--explain', 'huge');
    expect(said[0]).toContain('nearest: box (cpu 2 of 9)');
  });
  test('exits with 1 for pods without a place only when asked', async () => {
    await run(problem, '--exit-code');
    expect(process.exitCode).toBe(1);
  });
  test.each([
    ['{"pods": [', 'not valid JSON'],
    ['a: [', 'not valid YAML'],
    ['', 'empty'],
    ['[]', 'a problem is an object'],
    ['pods: []', 'nodePools must be a list'],
    ['{"pods":[],"nodePools":[],"instanceTypes":[]}', 'instanceTypes must map'],
    ['{"pods":[],"nodePools":[],"instanceTypes":{},"nodes":3}', 'nodes must be a list'],
    [
      '{"pods":[{"kind":"Job","metadata":{}}],"nodePools":[],"instanceTypes":{}}',
      'pods[0] must be a Pod, and is a "Job"',
    ],
    [
      '{"pods":[],"nodePools":[],"instanceTypes":{},"daemonsets":[]}',
      'daemonsets is not part of a problem: daemonSets is',
    ],
    ['{"pods":[],"nodePools":[],"instanceTypes":{},"now":"noon"}', 'now must be a time'],
    [
      '{"pods":[],"nodePools":[],"instanceTypes":{},"state":{"candidates":3}}',
      'state.candidates must be a list of names',
    ],
    ['{"pods":[],"nodePools":[],"instanceTypes":{},"state":{"promised":[]}}', 'state.promised must map texts to texts'],
    [
      '{"pods":[],"nodePools":[],"instanceTypes":{},"labels":{"a":{"wellKnown":3}}}',
      'labels.a.wellKnown must be a list',
    ],
    [
      '{"pods":[],"nodePools":[],"instanceTypes":{},"settings":{"preferencePolicy":"ignore"}}',
      'must be Respect or Ignore',
    ],
    [
      '{"pods":[],"nodePools":[],"instanceTypes":{},"settings":{"maxInstanceTypes":0}}',
      'must be a positive whole number',
    ],
    [
      '{"pods":[],"nodePools":[{"metadata":{"name":"a"}}],"instanceTypes":{"b":[]}}',
      'instanceTypes.b: no NodePool has this name',
    ],
  ])('says what is wrong with %j and exits with 2', async (text, expected) => {
    await run(text);
    expect(complained[0]).toContain(expected);
    expect(process.exitCode).toBe(2);
  });
});
