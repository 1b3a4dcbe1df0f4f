// SPDX-License-Identifier: Apache-2.0
// `karpenter convert`: NodePools and NodeClaims of `karpenter.sh/v1beta1`, as older guides show them, in `v1`.
import { readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { messageOf } from '../base/errors.ts';
import { ManifestError, objectsOf } from './manifests.ts';

interface ConvertFlags {
  readonly output: 'json' | 'yaml';
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
    for (const given of objectsOf(file === '-' ? 'standard input' : file, textOf(file))) {
      const { object, notes } = toV1(given);
      const { kind = 'object', metadata } = object as { kind?: string; metadata?: { name?: string } | null };
      const which = `${kind} ${metadata?.name ?? '?'}`;
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

function textOf(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (error) {
    throw new ManifestError(file === '-' ? 'standard input' : file, messageOf(error));
  }
}
