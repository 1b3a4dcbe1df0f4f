// SPDX-License-Identifier: Apache-2.0
// `crds/*.yaml`: our CRDs for kubectl and charts.
import { stringify } from 'yaml';
import { apiKinds, type CustomResourceDefinition } from '../../src/api/crd.ts';
import { crdOf, type Kind } from '../../src/api/kind.ts';
import type { Generator } from './generator.ts';

/** A CRD as YAML that every YAML 1.1 reader (kubectl's among them) takes for the same value. */
export function crdYaml(crd: CustomResourceDefinition): string {
  const text = stringify(crd, { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false });
  return `# Generated from src/api by \`npm run generate\`. Do not edit.\n---\n${text}`;
}

function crdGenerator(kind: Kind): Generator {
  return { path: `crds/${kind.group}_${kind.plural}.yaml`, content: () => crdYaml(crdOf(kind)) };
}

/** One file per kind, named `<group>_<plural>.yaml`. */
export const crdGenerators: readonly Generator[] = apiKinds.map(crdGenerator);
