// SPDX-License-Identifier: Apache-2.0
// `karpenter simulate` as a command: what it prints and with which code it ends. Worlds of a few minutes are enough.
import { spawnSync } from 'node:child_process';
import { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { plant } from '../base/defects.ts';
import type { RunReport } from '../simulation/run.ts';
import { scenarios } from '../simulation/scenarios.ts';
import { registerSimulate } from './simulate.ts';

interface Printed extends RunReport {
  readonly shortest?: { readonly events: number; readonly of: number; readonly violations: readonly unknown[] };
}

/** As people run it. */
function simulate(...args: string[]): { code: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['bin/karpenter.js', 'simulate', ...args], {
    encoding: 'utf8',
  });
  return { code: status, stdout, stderr };
}

describe('a world whose promises are kept', () => {
  const world = ['small', '--seed', '5', '--hours', '0.2'];

  test('ends with 0 and a summary', () => {
    const { code, stdout, stderr } = simulate(...world);
    expect(code).toBe(0);
    expect(stderr).toContain('note: nothing is changed and nothing fails in 0.2 h');
    expect(stdout.split('\n')[0]).toMatch(/^scenario small, seed 5, 0.2 h: \d+ nodes and \d+ pods at the median$/);
    for (const line of ['cost', 'pending', 'disruptions', 'happenings', 'faults', 'invariants', 'hash']) {
      expect(stdout).toMatch(new RegExp(`^  ${line} +\\S`, 'm'));
    }
    expect(stdout).not.toContain('VIOLATED');
  });

  test('says everything as JSON, the same for the same seed, and nothing else on standard output', () => {
    const [first, second] = [simulate(...world, '-o', 'json'), simulate(...world, '-o', 'json')];
    expect([first.code, second.code]).toEqual([0, 0]);
    const report = JSON.parse(first.stdout) as Printed;
    expect(report).toMatchObject({
      scenario: 'small',
      seed: 5,
      hours: 0.2,
      hash: expect.stringMatching(/^[0-9a-f]{32}$/),
      violations: [],
      summary: { cost: expect.any(Number), medianNodes: expect.any(Number), medianPods: expect.any(Number) },
    });
    expect(Object.keys(report.coverage).some((name) => name.startsWith('invariant/'))).toBe(true);
    expect(report.shortest).toBeUndefined();
    expect(second.stdout).toBe(first.stdout);
  });
});

test.each([
  [['nowhere'], 'no scenario is named nowhere; there are faults, busy, calm, small'],
  [['small', '--hours', '0'], 'a positive number'],
  [['small', '--hours', 'many'], 'a positive number'],
  [['small', '--seed', '-1'], 'a whole number'],
  [['small', '--events', '1.5'], 'a whole number'],
  [['small', '-o', 'xml'], 'Allowed choices are json, text'],
  [['small', '--sed', '5'], 'Did you mean --seed?'],
  [['small', 'large'], 'too many arguments'],
])('%j is asked wrongly: 2, and a word about it', (args, message) => {
  const { code, stdout, stderr } = simulate(...args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(message);
});

describe('in the process', () => {
  let printed: string[];
  beforeEach(() => {
    printed = [];
    vi.spyOn(console, 'log').mockImplementation((line: string) => void printed.push(line));
  });
  afterEach(() => {
    plant(undefined);
    process.exitCode = undefined;
    vi.restoreAllMocks();
  });

  /** The exit code of a run, and what it printed. */
  async function run(...args: string[]): Promise<{ code: typeof process.exitCode; text: string }> {
    const program = new Command('karpenter').exitOverride();
    registerSimulate(program);
    await program.parseAsync(['node', 'karpenter', 'simulate', ...args]);
    return { code: process.exitCode, text: printed.splice(0).join('\n') };
  }

  test('a broken promise ends with 1, and is shown with the shortest story that leads to it', async () => {
    plant('ignores-disruption-budgets');
    const world = ['small', '--seed', '2', '--hours', '1'];
    const { code, text } = await run(...world);
    expect(code).toBe(1);
    const told = /^VIOLATED, seed 2: karpenter simulate small --seed 2 --hours 1 --events (\d+)$/m.exec(text);
    expect(text).toMatch(/^ {2}\d{4}-\S+Z pods\/moved-gently: /m);
    expect(text).toMatch(new RegExp(`^shortest prefix that fails: ${told?.[1]} of \\d+ happenings and faults$`, 'm'));
    expect(text).toMatch(/^what led to it:\n {2}\S/m);

    // The line that is told fails again.
    const again = await run(...world, '--events', told![1]!, '--no-shrink', '-o', 'json');
    const report = JSON.parse(again.text) as Printed;
    expect([again.code, report.violations.length > 0, report.shortest]).toEqual([1, true, undefined]);
  }, 30_000);

  test('the JSON of a broken promise has the shortest story', async () => {
    plant('collects-strangers');
    const { code, text } = await run('small', '--seed', '1', '--hours', '0.5', '-o', 'json');
    const { violations, shortest, trace } = JSON.parse(text) as Printed;
    expect(code).toBe(1);
    expect(violations[0]).toMatchObject({ invariant: 'machines/strangers-stay', message: expect.any(String) });
    expect(shortest?.events).toBeLessThanOrEqual(shortest!.of);
    expect(shortest?.violations.length).toBeGreaterThan(0);
    expect(trace.length).toBeGreaterThan(0);
  }, 30_000);

  test('without events nothing happens that was planned', async () => {
    const { code, text } = await run('small', '--seed', '1', '--hours', '0.5', '--events', '0', '-o', 'json');
    const { coverage } = JSON.parse(text) as Printed;
    const planned = Object.entries(coverage).filter(([name]) => /^(?:fault|happening)\//.test(name));
    expect([code, planned.length > 20, planned.filter(([, count]) => count > 0)]).toEqual([0, true, []]);
  });

  test('the help names every scenario', () => {
    const program = new Command('karpenter');
    registerSimulate(program);
    const help = program.commands[0]!.helpInformation().replaceAll(/\s+/g, ' ');
    expect(scenarios.filter(({ name }) => !help.includes(name))).toEqual([]);
  });
});
