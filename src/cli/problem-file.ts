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

/** The lists of a problem, and what is in them. */
const kinds: ReadonlyMap<string, string> = new Map([
  ['nodePools', 'NodePool'],
  ['pods', 'Pod'],
  ['nodes', 'Node'],
  ['nodeClaims', 'NodeClaim'],
  ['podDisruptionBudgets', 'PodDisruptionBudget'],
  ['daemonSets', 'DaemonSet'],
  ['namespaces', 'Namespace'],
  ['persistentVolumeClaims', 'PersistentVolumeClaim'],
  ['persistentVolumes', 'PersistentVolume'],
  ['storageClasses', 'StorageClass'],
  ['csiNodes', 'CSINode'],
]);
const fields = [...kinds.keys(), 'now', 'instanceTypes', 'labels', 'state', 'settings'];

/** The outline of a problem; single broken objects are the solver's to report. */
function checkProblem(file: string, value: unknown): Problem {
  const fail = (message: string): never => {
    throw new ProblemFileError(file, message);
  };
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return fail('a problem is an object');
  const problem = value as Record<string, unknown>;
  for (const name of ['nodePools', 'pods'])
    if (!Array.isArray(problem[name])) fail(`${name} must be a list (see docs/reference/problem-file.md)`);
  for (const [name, kind] of kinds) {
    if (problem[name] !== undefined && !Array.isArray(problem[name])) fail(`${name} must be a list`);
    for (const [i, object] of ((problem[name] ?? []) as unknown[]).entries()) {
      const wrong = outlineProblem(object, kind);
      if (wrong) fail(`${name}[${i}]${wrong}`);
    }
  }
  const meant = misspelt(Object.keys(problem), fields);
  if (meant) fail(`${meant.from} is not part of a problem: ${meant.to} is`);
  const wrong = restProblem(problem);
  if (wrong !== undefined) fail(wrong);
  checkTypes(problem, fail);
  return value as Problem;
}

/** What is wrong with the parts that are no lists of objects. */
function restProblem({ now, settings, labels = {}, state = {} }: Record<string, unknown>): string | undefined {
  return nowProblem(now) ?? settingsProblem(settings) ?? labelsProblem(labels) ?? stateProblem(state);
}

function checkTypes(problem: Record<string, unknown>, fail: (message: string) => never): void {
  const types = problem['instanceTypes'];
  if (typeof types !== 'object' || types === null || Array.isArray(types))
    fail('instanceTypes must map NodePool names to lists of instance types');
  for (const [pool, of] of Object.entries(types as object)) {
    if (!Array.isArray(of)) fail(`instanceTypes.${pool} must be a list`);
    for (const [i, type] of (of as unknown[]).entries())
      if (!isRecord(type)) fail(`instanceTypes.${pool}[${i}] must be an object`);
  }
  const pools = (problem['nodePools'] as Problem['nodePools']).map(({ metadata }) => metadata.name ?? '');
  const sold = Object.keys(types as object);
  const stranger = sold.find((pool) => !pools.includes(pool));
  if (stranger !== undefined && pools.some((pool) => !sold.includes(pool)))
    fail(`instanceTypes.${stranger}: no NodePool has this name, and one has no instance types`);
}

/** A name that is not among the known ones, where it looks as if one of them was meant that is missing. */
function misspelt(names: readonly string[], known: readonly string[]): { from: string; to: string } | undefined {
  const plain = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  const missing = known.filter((name) => !names.includes(name));
  for (const from of names) {
    if (known.includes(from)) continue;
    const to = missing.find(
      (name) => [plain(name), `${plain(name)}s`].includes(plain(from)) || `${plain(from)}s` === plain(name),
    );
    if (to !== undefined) return { from, to };
  }
  return undefined;
}

function nowProblem(now: unknown): string | undefined {
  if (now === undefined || (typeof now === 'string' && !Number.isNaN(Date.parse(now)))) return undefined;
  return 'now must be a time, such as 2026-01-31T12:00:00Z';
}

const choices: Readonly<Record<string, readonly string[]>> = {
  preferencePolicy: ['Respect', 'Ignore'],
  minValuesPolicy: ['Strict', 'BestEffort'],
  reservedOfferingMode: ['Strict', 'Fallback'],
};

function settingsProblem(settings: unknown): string | undefined {
  if (settings === undefined) return undefined;
  if (!isRecord(settings)) return 'settings must be an object';
  for (const [name, allowed] of Object.entries(choices))
    if (settings[name] !== undefined && !allowed.includes(settings[name] as string))
      return `settings.${name} must be ${allowed.join(' or ')}`;
  const most = settings['maxInstanceTypes'];
  if (most !== undefined && !(Number.isInteger(most) && (most as number) > 0))
    return 'settings.maxInstanceTypes must be a positive whole number';
  return undefined;
}

const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every((each) => typeof each === 'string');
const isTextMap = (value: unknown): boolean =>
  isRecord(value) && Object.values(value).every((each) => typeof each === 'string');

function labelsProblem(labels: unknown): string | undefined {
  if (!isRecord(labels)) return 'labels must map NodePool names to the labels of their cloud';
  for (const [pool, rules] of Object.entries(labels)) {
    if (!isRecord(rules)) return `labels.${pool} must be an object`;
    for (const name of ['wellKnown', 'restrictedDomains'])
      if (!isTexts(rules[name] ?? [])) return `labels.${pool}.${name} must be a list of texts`;
    if (!isTextMap(rules['normalized'] ?? {})) return `labels.${pool}.normalized must map texts to texts`;
    const values = rules['normalizedValues'] ?? {};
    if (!isRecord(values) || !Object.values(values).every(isTextMap))
      return `labels.${pool}.normalizedValues must map names of labels to maps of texts`;
    if (typeof (rules['reservationId'] ?? '') !== 'string') return `labels.${pool}.reservationId must be a text`;
  }
  return undefined;
}

function stateProblem(state: unknown): string | undefined {
  if (!isRecord(state)) return 'state must be an object';
  for (const name of ['markedForDeletion', 'disruptionReasons', 'candidates', 'closedToMoves'])
    if (!isTexts(state[name] ?? [])) return `state.${name} must be a list of names`;
  for (const name of ['promised', 'nominations'])
    if (!isTextMap(state[name] ?? {})) return `state.${name} must map texts to texts`;
  return undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const texts = ['name', 'namespace', 'uid', 'creationTimestamp', 'deletionTimestamp', 'resourceVersion'] as const;

/** What every object of a cluster has; what is wrong with it, as it goes on after the object's place. */
function outlineProblem(object: unknown, kind: string): string | undefined {
  if (!isRecord(object)) return ' must be an object';
  const { metadata, spec, status } = object;
  if (object['kind'] !== undefined && object['kind'] !== kind)
    return ` must be a ${kind}, and is a ${JSON.stringify(object['kind'])}`;
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
