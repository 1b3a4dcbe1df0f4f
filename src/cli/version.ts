// SPDX-License-Identifier: Apache-2.0
// `karpenter version`: what is running, for people and for scripts.
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

/** The version of this package. */
export const version: string = manifest.version;

export function registerVersion(program: Command): void {
  program
    .command('version')
    .description('print the version, the Node it runs on and the Kubernetes API it speaks')
    .option('-o, --output <format>', 'text or json', 'text')
    .action((options: { output: string }) => {
      const facts = {
        version,
        node: process.version,
        platform: `${process.platform}-${process.arch}`,
        kubernetes: 'v1.36',
      };
      if (options.output === 'json') console.log(JSON.stringify(facts));
      else
        console.log(
          `karpenter-ts ${facts.version} (node ${facts.node}, ${facts.platform}, Kubernetes ${facts.kubernetes})`,
        );
    });
}
