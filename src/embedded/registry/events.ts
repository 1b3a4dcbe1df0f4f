// SPDX-License-Identifier: Apache-2.0
// Events: one store behind two groups. They are kept in the form of the core group.
import { deepFreeze } from '../../base/freeze.ts';
import type { KubeObject } from '../../kube/object.ts';
import * as print from '../printing/core.ts';
import type { Resource } from '../resource.ts';
import { pathSegmentProblems } from '../rest/names.ts';
import { admissionFor } from '../shapes/admit.ts';
import { define } from './define.ts';

type Fields = Record<string, unknown>;

/** The fields that have another name in events.k8s.io, by their name in the core group. */
const renamed: Readonly<Record<string, string>> = {
  involvedObject: 'regarding',
  message: 'note',
  firstTimestamp: 'deprecatedFirstTimestamp',
  lastTimestamp: 'deprecatedLastTimestamp',
  count: 'deprecatedCount',
  source: 'deprecatedSource',
  reportingComponent: 'reportingController',
};
const toCore = Object.fromEntries(Object.entries(renamed).map(([core, other]) => [other, core]));

function text(object: KubeObject, ...path: string[]): string {
  let at: unknown = object;
  for (const key of path) at = typeof at === 'object' && at !== null ? (at as Fields)[key] : undefined;
  return typeof at === 'string' ? at : '';
}

const involved =
  (field: string) =>
  (event: KubeObject): string =>
    text(event, 'involvedObject', field);

const fields = {
  'involvedObject.kind': involved('kind'),
  'involvedObject.namespace': involved('namespace'),
  'involvedObject.name': involved('name'),
  'involvedObject.uid': involved('uid'),
  'involvedObject.apiVersion': involved('apiVersion'),
  'involvedObject.resourceVersion': involved('resourceVersion'),
  'involvedObject.fieldPath': involved('fieldPath'),
  reason: (event: KubeObject): string => text(event, 'reason'),
  reportingComponent: (event: KubeObject): string => text(event, 'reportingComponent'),
  source: (event: KubeObject): string => text(event, 'source', 'component') || text(event, 'reportingComponent'),
  type: (event: KubeObject): string => text(event, 'type'),
};

export const coreEvents: Resource = define({
  group: '',
  kind: 'Event',
  namespaced: true,
  createOnUpdate: true,
  sharesParts: true,
  shortNames: ['ev'],
  columns: print.eventColumns,
  fields,
  strategy: {
    validateName: pathSegmentProblems,
    default: (event) => {
      const fields = event as unknown as Fields;
      fields['source'] ??= {};
      fields['reportingComponent'] ??= '';
      fields['reportingInstance'] ??= '';
    },
    validate: (event) => {
      const namespace = text(event, 'involvedObject', 'namespace');
      const own = event.metadata.namespace;
      // Events of what is in no namespace are kept in the default one.
      if (namespace === own || (namespace === '' && own === 'default')) return [];
      return [
        {
          field: 'involvedObject.namespace',
          type: 'Invalid',
          value: namespace,
          detail: 'does not match event.namespace',
        },
      ];
    },
  },
});

const shown = new WeakMap<KubeObject, KubeObject>();

function rename(object: KubeObject, names: Readonly<Record<string, string>>, apiVersion: string): KubeObject {
  const result: Fields = {};
  for (const [key, value] of Object.entries(object)) result[names[key] ?? key] = value;
  result['apiVersion'] = apiVersion;
  return result as unknown as KubeObject;
}

const admit = admissionFor('events.k8s.io', 'v1', 'Event');

/** The same events under events.k8s.io/v1. */
export const newEvents: Resource = {
  ...coreEvents,
  group: 'events.k8s.io',
  fields: {
    ...fields,
    ...Object.fromEntries(
      Object.entries(fields)
        .filter(([name]) => name.startsWith('involvedObject.'))
        .map(([name, get]) => [name.replace('involvedObject', 'regarding'), get]),
    ),
    reportingController: fields.reportingComponent,
  },
  versions: [
    {
      name: 'v1',
      status: false,
      columns: coreEvents.versions[0]!.columns,
      ...(admit ? { admit } : {}),
      decode: (event) => rename(event, toCore, 'v1'),
      encode: (event) => {
        let converted = shown.get(event);
        if (!converted) {
          converted = rename(event, renamed, 'events.k8s.io/v1');
          if (Object.isFrozen(event)) shown.set(event, deepFreeze(converted));
        }
        return converted;
      },
    },
  ],
};
