// SPDX-License-Identifier: Apache-2.0
// `karpenter convert`: NodePools and NodeClaims of `karpenter.sh/v1beta1`, as older guides show them, in `v1`.
import { readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import type { Manifest } from '../api/convert.ts';
import { messageOf } from '../base/errors.ts';
import { ManifestError } from './manifests.ts';

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
  const [{ convertText }, { stringify }] = await Promise.all([import('./convert-text.ts'), import('yaml')]);
  const objects: Manifest[] = [];
  let isWrong = false;
  for (const file of files) {
    const converted = convertText(file === '-' ? 'standard input' : file, textOf(file));
    for (const remark of converted.remarks) console.error(`karpenter: ${remark}`);
    objects.push(...converted.objects);
    isWrong ||= converted.isWrong;
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
