// SPDX-License-Identifier: Apache-2.0
// The parts columns are made of.
import type { KubeObject } from '../../kube/object.ts';
import type { Column } from '../resource.ts';
import { age } from './human-duration.ts';

export function column<T extends KubeObject>(
  name: string,
  cell: (object: T, now: number) => unknown,
  options: { type?: Column['type']; wide?: boolean; description?: string; format?: string } = {},
): Column<T> {
  return {
    name,
    type: options.type ?? 'string',
    ...(options.format === undefined ? {} : { format: options.format }),
    description: options.description ?? '',
    priority: options.wide ? 1 : 0,
    cell,
  };
}

export const nameColumn: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'The name of the object, unique within its namespace for kinds that live in one.',
  priority: 0,
  cell: (object) => object.metadata.name,
};

export const ageColumn: Column = {
  name: 'Age',
  type: 'string',
  description: 'How long ago the server created the object.',
  priority: 0,
  cell: (object, now) => age(object.metadata.creationTimestamp, now),
};

export const createdAtColumn: Column = {
  name: 'Created At',
  type: 'date',
  description: 'When the server created the object.',
  priority: 0,
  cell: (object) => object.metadata.creationTimestamp,
};

export const nameAndAge: readonly Column[] = [nameColumn, ageColumn];
