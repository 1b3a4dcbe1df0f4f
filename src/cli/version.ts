// SPDX-License-Identifier: Apache-2.0
// `karpenter version`: what is running, for people and for scripts.
import { readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

/** The version of this package. */
export const version: string = manifest.version;

/** The first seven digits of the commit it was built from, as `npm run build` noted it; `unknown` when it runs from its sources. */
export const commit: string = builtFrom(new URL('../build.json', import.meta.url));

function builtFrom(note: URL): string {
  try {
    return (JSON.parse(readFileSync(note, 'utf8')) as { commit: string }).commit;
  } catch {
    return 'unknown';
  }
}

export function registerVersion(program: Command): void {
  program
    .command('version')
    .description('print the version, the Node it runs on and the Kubernetes API it speaks')
    .addOption(new Option('-o, --output <format>', 'what to print').choices(['text', 'json']).default('text'))
    .action((options: { output: string }) => {
      const facts = {
        version,
        commit,
        node: process.version,
        platform: `${process.platform}-${process.arch}`,
        kubernetes: 'v1.36',
      };
      if (options.output === 'json') console.log(JSON.stringify(facts));
      else
        console.log(
          `karpenter-ts ${facts.version} (commit ${commit}, node ${facts.node}, ${facts.platform}, Kubernetes ${facts.kubernetes})`,
        );
    });
}
