// SPDX-License-Identifier: Apache-2.0
// Problem files as commands take them (docs/reference/problem-file.md): how one is read, and what is said of a bad one.
import { readFileSync } from 'node:fs';
import { KarpenterError, messageOf } from '../base/errors.ts';
import { parseYamlDocuments } from '../kube/yaml.ts';
import type { Problem } from '../scheduling/problem.ts';

/** The file cannot be read as a problem. Ends the program with exit code 2. */
export class ProblemFileError extends KarpenterError {
  constructor(file: string, message: string) {
    super('KRP_PROBLEM_FILE', `${file}: ${message}`, { details: { file } });
  }
}

/** Runs a command; what is wrong with its file is said on standard error. */
export async function refusingBadFiles(run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (!(error instanceof ProblemFileError)) throw error;
    console.error(`karpenter: ${error.message}`);
    process.exitCode = 2;
  }
}

/** The problem in a file; `-` is standard input. Throws ProblemFileError. */
export function readProblem(file: string): Problem {
  let text: string;
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (error) {
    throw new ProblemFileError(file, messageOf(error));
  }
  return parseProblem(file, text);
}

/** The problem in a text; `file` is how it is called in messages. Throws ProblemFileError. */
export function parseProblem(file: string, text: string): Problem {
  return checkProblem(file, parse(file, text));
}

function parse(file: string, text: string): unknown {
  if (/^\s*[{[]/.test(text)) {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new ProblemFileError(file, `not valid JSON: ${messageOf(error)}`);
    }
  }
  let documents: unknown[];
  try {
    documents = parseYamlDocuments(text);
  } catch (error) {
    throw new ProblemFileError(file, `not valid YAML: ${messageOf(error)}`);
  }
  if (documents.length === 0) throw new ProblemFileError(file, 'the file is empty');
  if (documents.length > 1) throw new ProblemFileError(file, 'holds several YAML documents; a problem is one');
  return documents[0];
}

const lists = [
  'nodes',
  'nodeClaims',
  'podDisruptionBudgets',
  'daemonSets',
  'namespaces',
  'persistentVolumeClaims',
  'persistentVolumes',
  'storageClasses',
  'csiNodes',
] as const;

/** The outline of a problem; single broken objects are the solver's to report. */
function checkProblem(file: string, value: unknown): Problem {
  const fail = (message: string): never => {
    throw new ProblemFileError(file, message);
  };
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return fail('a problem is an object');
  const problem = value as Record<string, unknown>;
  for (const name of ['nodePools', 'pods'])
    if (!Array.isArray(problem[name])) fail(`${name} must be a list (see docs/reference/problem-file.md)`);
  for (const name of lists)
    if (problem[name] !== undefined && !Array.isArray(problem[name])) fail(`${name} must be a list`);
  for (const name of ['nodePools', 'pods', ...lists])
    for (const [i, object] of ((problem[name] ?? []) as unknown[]).entries()) {
      const wrong = outlineProblem(object);
      if (wrong) fail(`${name}[${i}]${wrong}`);
    }
  const types = problem['instanceTypes'];
  if (typeof types !== 'object' || types === null || Array.isArray(types))
    fail('instanceTypes must map NodePool names to lists of instance types');
  for (const [pool, of] of Object.entries(types as object)) {
    if (!Array.isArray(of)) fail(`instanceTypes.${pool} must be a list`);
    for (const [i, type] of (of as unknown[]).entries())
      if (!isRecord(type)) fail(`instanceTypes.${pool}[${i}] must be an object`);
  }
  return value as Problem;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const texts = ['name', 'namespace', 'uid', 'creationTimestamp', 'deletionTimestamp', 'resourceVersion'] as const;

/** What every object of a cluster has; what is wrong with it, as it goes on after the object's place. */
function outlineProblem(object: unknown): string | undefined {
  if (!isRecord(object)) return ' must be an object';
  const { metadata, spec, status } = object;
  if (!isRecord(metadata)) return '.metadata must be an object';
  for (const field of texts)
    if (metadata[field] !== undefined && typeof metadata[field] !== 'string')
      return `.metadata.${field} must be a text`;
  for (const field of ['labels', 'annotations']) {
    const map = metadata[field] ?? {};
    if (!isRecord(map) || Object.values(map).some((each) => typeof each !== 'string'))
      return `.metadata.${field} must map texts to texts`;
  }
  if (spec !== undefined && !isRecord(spec)) return '.spec must be an object';
  if (status !== undefined && !isRecord(status)) return '.status must be an object';
  return undefined;
}
