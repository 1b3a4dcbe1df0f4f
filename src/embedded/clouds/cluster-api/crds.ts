// SPDX-License-Identifier: Apache-2.0
// The kinds of Cluster API as CRDs in words of our own: enough for clients to find them, scale them and be told what is
// wrong with a number. What they hold beyond that is kept as it is.
import type { CustomResourceDefinition } from '../../../api/crd.ts';
import type { OpenApiSchema } from '../../../api/schema.ts';
import { group, infrastructureGroup, type Version } from './objects.ts';

const free: OpenApiSchema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

function scaledSpec(): OpenApiSchema {
  return {
    ...free,
    properties: {
      replicas: { type: 'integer', format: 'int32', minimum: 0, description: 'How many Machines are wanted.' },
      paused: { type: 'boolean', description: 'Leaves the Machines alone.' },
    },
  };
}

interface Definition {
  readonly kind: string;
  readonly plural: string;
  readonly shortNames?: string[];
  readonly of?: string;
  readonly spec: OpenApiSchema;
  readonly scaled?: boolean;
  readonly columns: { name: string; type: 'string' | 'integer' | 'date'; jsonPath: string }[];
}

const age = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' } as const;
const phase = { name: 'Phase', type: 'string', jsonPath: '.status.phase' } as const;
const cluster = { name: 'Cluster', type: 'string', jsonPath: '.spec.clusterName' } as const;
const counts = [
  { name: 'Desired', type: 'integer', jsonPath: '.spec.replicas' },
  { name: 'Replicas', type: 'integer', jsonPath: '.status.replicas' },
  { name: 'Ready', type: 'integer', jsonPath: '.status.readyReplicas' },
] as const;

const definitions: readonly Definition[] = [
  { kind: 'Cluster', plural: 'clusters', shortNames: ['cl'], spec: free, columns: [phase, age] },
  {
    kind: 'MachineDeployment',
    plural: 'machinedeployments',
    shortNames: ['md'],
    spec: scaledSpec(),
    scaled: true,
    columns: [cluster, ...counts, phase, age],
  },
  {
    kind: 'MachineSet',
    plural: 'machinesets',
    shortNames: ['ms'],
    spec: scaledSpec(),
    scaled: true,
    columns: [cluster, ...counts, age],
  },
  {
    kind: 'Machine',
    plural: 'machines',
    shortNames: ['ma'],
    spec: free,
    columns: [
      cluster,
      { name: 'NodeName', type: 'string', jsonPath: '.status.nodeRef.name' },
      { name: 'ProviderID', type: 'string', jsonPath: '.spec.providerID' },
      phase,
      age,
    ],
  },
  {
    kind: 'EmbeddedMachineTemplate',
    plural: 'embeddedmachinetemplates',
    of: infrastructureGroup,
    spec: free,
    columns: [age],
  },
  { kind: 'EmbeddedMachine', plural: 'embeddedmachines', of: infrastructureGroup, spec: free, columns: [age] },
];

/** The CRDs, serving one version. */
export function clusterApiCrds(version: Version): CustomResourceDefinition[] {
  return definitions.map(({ kind, plural, shortNames, of = group, spec, scaled, columns }) => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${of}`, labels: { [`${group}/${version}`]: version } },
    spec: {
      group: of,
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        ...(shortNames ? { shortNames } : {}),
        categories: ['cluster-api'],
      },
      scope: 'Namespaced',
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          additionalPrinterColumns: [...columns],
          schema: { openAPIV3Schema: { type: 'object', properties: { spec, status: free } } },
          subresources: {
            status: {},
            ...(scaled
              ? {
                  scale: {
                    specReplicasPath: '.spec.replicas',
                    statusReplicasPath: '.status.replicas',
                    labelSelectorPath: '.status.selector',
                  },
                }
              : {}),
          },
        },
      ],
    },
  }));
}
