// SPDX-License-Identifier: Apache-2.0
// CustomResourceDefinitions as objects: what is filled in and what is refused before anything is served by them.
import { deepEqual } from '../../base/freeze.ts';
import type { CustomResourceDefinition } from '../../kube/kinds.ts';
import type { FieldError } from '../../kube/schema/field-error.ts';
import { type JsonSchema, StructuralSchema } from '../../kube/schema/index.ts';
import { oneOf } from '../registry/pod-validation.ts';
import type { Strategy } from '../resource.ts';
import { label1035Problems, subdomainProblems } from '../rest/names.ts';
import { ruleErrors } from './rule-errors.ts';
import { schemaErrors } from './schema-errors.ts';
import { checkSchemaShape } from './schema-shape.ts';

export const definitionStrategy: Strategy<CustomResourceDefinition> = {
  default: ({ spec }) => {
    for (const { schema } of spec?.versions ?? []) {
      if (schema?.openAPIV3Schema) checkSchemaShape(schema.openAPIV3Schema);
    }
    if (!spec?.names) return;
    const { names } = spec;
    names.singular ??= (names.kind ?? '').toLowerCase();
    names.listKind ??= `${names.kind}List`;
    spec.conversion ??= { strategy: 'None' };
  },
  prepareCreate: (definition) => {
    delete (definition as { status?: unknown }).status;
    definition.status = {
      conditions: [],
      acceptedNames: { plural: '', kind: '' },
      storedVersions: (definition.spec?.versions ?? [])
        .filter((version) => version.storage)
        .map((version) => version.name),
    };
  },
  validate: validateDefinition,
  validateUpdate: (definition, old) => {
    const errors: FieldError[] = [];
    const immutable = (field: string, value: unknown, before: unknown): void => {
      if (value !== before) errors.push({ field, type: 'Invalid', value, detail: 'field is immutable' });
    };
    immutable('spec.group', definition.spec.group, old.spec.group);
    immutable('spec.names.plural', definition.spec.names.plural, old.spec.names.plural);
    const established = old.status?.conditions?.some(
      (condition) => condition.type === 'Established' && condition.status === 'True',
    );
    if (established) {
      immutable('spec.scope', definition.spec.scope, old.spec.scope);
      immutable('spec.names.kind', definition.spec.names.kind, old.spec.names.kind);
    }
    return errors;
  },
};

function validateDefinition(
  definition: CustomResourceDefinition,
  _context: unknown,
  old?: CustomResourceDefinition,
): FieldError[] {
  const errors: FieldError[] = [];
  const spec = definition.spec;
  if (!spec) return [required('spec')];
  const expected = `${spec.names?.plural}.${spec.group}`;
  if (definition.metadata.name !== expected) {
    errors.push({
      field: 'metadata.name',
      type: 'Invalid',
      value: definition.metadata.name,
      detail: `must be spec.names.plural+"."+spec.group`,
    });
  }
  if (!spec.group) errors.push(required('spec.group'));
  else {
    for (const detail of subdomainProblems(spec.group)) errors.push(invalid('spec.group', spec.group, detail));
    if (!spec.group.includes('.'))
      errors.push(invalid('spec.group', spec.group, 'should be a domain with at least one dot'));
  }
  if (!spec.scope) errors.push(required('spec.scope'));
  else oneOf(errors, 'spec.scope', spec.scope, ['Cluster', 'Namespaced']);
  errors.push(...nameErrors(spec));
  errors.push(...versionErrors(spec, old?.spec));
  if (spec.group?.endsWith('.k8s.io') && !definition.metadata.annotations?.['api-approved.kubernetes.io']) {
    errors.push({
      field: 'metadata.annotations[api-approved.kubernetes.io]',
      type: 'Required',
      detail:
        'protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111',
    });
  }
  return errors;
}

type Spec = CustomResourceDefinition['spec'];

function nameErrors(spec: Spec): FieldError[] {
  const errors: FieldError[] = [];
  const names = spec.names ?? {};
  for (const field of ['plural', 'singular', 'kind', 'listKind'] as const) {
    const value = names[field];
    if (!value) {
      errors.push(required(`spec.names.${field}`));
      continue;
    }
    for (const detail of label1035Problems(value.toLowerCase()))
      errors.push(invalid(`spec.names.${field}`, value, detail));
  }
  if (names.kind && names.kind === names.listKind) {
    errors.push(invalid('spec.names.listKind', names.listKind, 'kind and listKind may not be the same'));
  }
  return errors;
}

function versionErrors(spec: Spec, old: Spec | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const versions = spec.versions ?? [];
  // The only version is read as if it stood beside the versions, as it did when there was but one.
  const single = versions.length === 1;
  versions.forEach((version, i) => {
    const at = `spec.versions[${i}]`;
    for (const detail of label1035Problems(version.name ?? ''))
      errors.push(invalid(`${at}.name`, version.name, detail));
    if (!version.schema?.openAPIV3Schema) errors.push(required(`${at}.schema.openAPIV3Schema`));
    else if (version.schema.openAPIV3Schema.type !== 'object') {
      errors.push(
        invalid(`${at}.schema.openAPIV3Schema.type`, version.schema.openAPIV3Schema.type ?? '', 'must be object'),
      );
    } else {
      const schema = version.schema.openAPIV3Schema as JsonSchema;
      const below = single ? 'spec.validation.openAPIV3Schema' : `${at}.schema.openAPIV3Schema`;
      const before = old?.versions.find(({ name }) => name === version.name)?.schema?.openAPIV3Schema;
      errors.push(...contentErrors(schema, below, before as JsonSchema | undefined));
    }
    errors.push(...columnErrors(version, single ? 'spec' : at), ...scaleErrors(version, single ? 'spec' : at));
  });
  const names = versions.map((version) => version.name);
  if (new Set(names).size < names.length) {
    errors.push(invalid('spec.versions', names, 'must contain unique version names'));
  }
  const stored = versions.filter((version) => version.storage).length;
  if (stored !== 1) {
    errors.push(
      invalid(
        'spec.versions',
        versions.map((version) => version.name),
        'must have exactly one version marked as storage version',
      ),
    );
  }
  if (spec.conversion && spec.conversion.strategy !== 'None') {
    errors.push(
      invalid('spec.conversion.strategy', spec.conversion.strategy, 'the embedded server converts by None only'),
    );
  }
  return errors;
}

/** Rules are judged once the schema stands, and not again when it did not change. */
function contentErrors(schema: JsonSchema, at: string, before: JsonSchema | undefined): FieldError[] {
  const { problems } = new StructuralSchema(schema);
  const patterns = problems.filter(({ field }) => field.endsWith('pattern'));
  const errors = [
    ...patterns.map((problem) => ({ ...problem, field: `${at}.${problem.field}` })),
    ...schemaErrors(schema, at),
  ];
  if (errors.length > 0 || (before !== undefined && deepEqual(schema, before))) return errors;
  const rules = ruleErrors(schema, at);
  // What the API server knows and we do not cannot be run: better refused now than at every object.
  const unknown = problems.map((problem) => ({ ...problem, field: `${at}.${problem.field}` }));
  return rules.length > 0 ? rules : unknown;
}

type Version = Spec['versions'][number];

function columnErrors({ additionalPrinterColumns = [] }: Version, at: string): FieldError[] {
  return additionalPrinterColumns.flatMap(({ name, type, jsonPath }, i) => {
    const field = `${at}.additionalPrinterColumns[${i}]`;
    return [
      ...(name ? [] : [required(`${field}.name`)]),
      ...(type ? [] : [required(`${field}.type`)]),
      ...(jsonPath ? [] : [required(`${field}.JSONPath`)]),
    ];
  });
}

function scaleErrors({ subresources }: Version, at: string): FieldError[] {
  const scale = subresources?.scale;
  if (!scale) return [];
  const under = (field: string, path: string | undefined, roots: readonly string[], needed: boolean): FieldError[] => {
    const where = `${at}.subresources.scale.${field}`;
    if (!path) return needed ? [required(where)] : [];
    if (roots.some((root) => path.startsWith(`${root}.`))) return [];
    return [invalid(where, path, `should be a json path under ${roots.join(' or ')}`)];
  };
  return [
    ...under('specReplicasPath', scale.specReplicasPath, ['.spec'], true),
    ...under('statusReplicasPath', scale.statusReplicasPath, ['.status'], true),
    ...under('labelSelectorPath', scale.labelSelectorPath, ['.spec', '.status'], false),
  ];
}

function required(field: string): FieldError {
  return { field, type: 'Required', detail: '' };
}

function invalid(field: string, value: unknown, detail: string): FieldError {
  return { field, type: 'Invalid', value, detail };
}
