// SPDX-License-Identifier: Apache-2.0
// Upstream's own end-to-end suite as a program: which specs it has, running some of them, what became of each.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tool } from '../../hack/tools/tools.ts';
import { RunningProgram } from './processes.ts';

/** What became of one spec. */
export interface SpecResult {
  /** Its full name, as `--ginkgo.focus` matches it. */
  readonly name: string;
  /** `passed`, or how it ended otherwise. */
  readonly state: string;
  readonly seconds: number;
  /** What failed and where, in the suite's words. */
  readonly failure?: string;
}

interface SpecReport {
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly LeafNodeType: string;
  readonly LeafNodeText: string;
  readonly State: string;
  /** In nanoseconds. */
  readonly RunTime: number;
  readonly Failure?: { readonly Message: string; readonly Location: { FileName: string; LineNumber: number } };
}

/** Some of the specs, by regular expressions over their full names. */
export interface Selection {
  /** Which of upstream's suites; the one for regressions unless told. */
  readonly suite?: 'upstream-suite' | 'upstream-performance';
  readonly focus?: string;
  readonly skip?: string;
}

interface SuiteOptions extends Selection {
  readonly kubeconfig: string;
  /** A file for everything the suite prints. */
  readonly log?: string;
}

/** Runs the specs that match, one after the other, and gives a result for each of them; others are left out. */
export async function runSuite(options: SuiteOptions): Promise<readonly SpecResult[]> {
  return run(options, []);
}

/** The specs that would run, without running them. */
export async function listSpecs(selection: Selection): Promise<readonly string[]> {
  const specs = await run({ ...selection, kubeconfig: '' }, ['--ginkgo.dry-run']);
  return specs.map(({ name }) => name);
}

async function run(options: SuiteOptions, extra: readonly string[]): Promise<readonly SpecResult[]> {
  const folder = mkdtempSync(join(tmpdir(), 'karpenter-suite-'));
  const report = join(folder, 'report.json');
  try {
    const program = new RunningProgram(
      "upstream's suite",
      await tool(options.suite ?? 'upstream-suite'),
      [
        '-test.timeout=3h',
        '--ginkgo.timeout=3h',
        '--ginkgo.grace-period=1m',
        '--ginkgo.no-color',
        `--ginkgo.json-report=${report}`,
        ...(options.focus ? [`--ginkgo.focus=${options.focus}`] : []),
        ...(options.skip ? [`--ginkgo.skip=${options.skip}`] : []),
        ...extra,
      ],
      {
        env: { ...process.env, KUBECONFIG: options.kubeconfig },
        cwd: folder,
        ...(options.log ? { log: options.log } : {}),
      },
    );
    const code = await program.ended;
    return readReport(report, `exit code ${code}:\n${program.output.slice(-4000)}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readReport(path: string, lastWords: string): readonly SpecResult[] {
  let suites: readonly { readonly SpecReports: readonly SpecReport[] | null }[];
  try {
    suites = JSON.parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    throw new Error(`upstream's suite left no report; ${lastWords}`, { cause });
  }
  const reports = suites.flatMap(({ SpecReports }) => SpecReports ?? []);
  // What runs around the specs counts only when it breaks.
  const counted = reports.filter(({ LeafNodeType, State }) =>
    LeafNodeType === 'It' ? State !== 'skipped' && State !== 'pending' : State !== 'passed',
  );
  return counted.map((report) => ({
    name: [...(report.ContainerHierarchyTexts ?? []), report.LeafNodeText || report.LeafNodeType].join(' '),
    state: report.State,
    seconds: report.RunTime / 1e9,
    ...(report.Failure ? { failure: failureOf(report.Failure) } : {}),
  }));
}

function failureOf({ Message, Location }: NonNullable<SpecReport['Failure']>): string {
  return `${Message} (${Location.FileName}:${Location.LineNumber})`;
}
