// SPDX-License-Identifier: Apache-2.0
// `karpenter convert`: NodePools and NodeClaims of `karpenter.sh/v1beta1`, as older guides show them, in `v1`.
import { readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { KarpenterError, messageOf } from '../base/errors.ts';

interface ConvertFlags {
  readonly output: 'json' | 'yaml';
}

/** A manifest that cannot be read. */
export class ManifestError extends KarpenterError {
  constructor(file: string, message: string) {
    super('KRP_MANIFEST', `${file}: ${message}`, { details: { file } });
  }
}

/** Adds the `convert` command. */
export function registerConvert(program: Command): void {
  program
    .command('convert')
    .description('write NodePools and NodeClaims of karpenter.sh/v1beta1 as v1; everything else passes as it is')
    .argument('[files...]', 'manifests, YAML or JSON; - or nothing is standard input')
    .addOption(new Option('-o, --output <format>', 'how to write it').choices(['json', 'yaml']).default('yaml'))
    .action((files: string[], { output }: ConvertFlags) => convert(files.length > 0 ? files : ['-'], output));
}

async function convert(files: readonly string[], format: ConvertFlags['output']): Promise<void> {
  const [{ toV1 }, { problemsOf }, { stringify }] = await Promise.all([
    import('../api/convert.ts'),
    import('./manifest-problems.ts'),
    import('yaml'),
  ]);
  const objects: Record<string, unknown>[] = [];
  let isWrong = false;
  for (const file of files) {
    for (const given of await objectsIn(file)) {
      const { object, notes } = toV1(given);
      const { kind, metadata = {} } = object as { kind: string; metadata?: { name?: string } };
      const which = `${kind} ${metadata.name ?? '?'}`;
      for (const note of notes) console.error(`karpenter: ${which}: ${note}`);
      for (const problem of problemsOf(object)) {
        console.error(`karpenter: ${which} is not valid: ${problem}`);
        isWrong = true;
      }
      objects.push(object);
    }
  }
  const [only] = objects;
  const list = { apiVersion: 'v1', kind: 'List', items: objects };
  process.stdout.write(
    format === 'json'
      ? `${JSON.stringify(objects.length === 1 ? only : list, undefined, 2)}\n`
      : objects.map((object) => stringify(object, { aliasDuplicateObjects: false })).join('---\n'),
  );
  if (isWrong) process.exitCode = 1;
}

/** The objects of a manifest, those of Lists one by one. Throws ManifestError. */
async function objectsIn(file: string): Promise<Record<string, unknown>[]> {
  const { parseAllDocuments } = await import('yaml');
  const name = file === '-' ? 'standard input' : file;
  let text: string;
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (error) {
    throw new ManifestError(name, messageOf(error));
  }
  const documents = parseAllDocuments(text);
  const found: Record<string, unknown>[] = [];
  for (const document of Array.isArray(documents) ? documents : []) {
    const [error] = document.errors;
    if (error) throw new ManifestError(name, error.message);
    const value: unknown = document.toJS();
    if (value === null) continue;
    if (!isObject(value) || typeof value['kind'] !== 'string') throw new ManifestError(name, 'not a Kubernetes object');
    const items: unknown = value['kind'] === 'List' ? value['items'] : [value];
    if (!Array.isArray(items) || !items.every(isObject)) throw new ManifestError(name, 'a List without objects');
    found.push(...items);
  }
  if (found.length === 0) throw new ManifestError(name, 'there is nothing in it');
  return found;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
