// SPDX-License-Identifier: Apache-2.0
// The scheduler-config document: defaults for topology spread, as a cluster administrator gives them to kube-scheduler.
import { KarpenterError, messageOf } from '../base/errors.ts';
import { deepFreeze } from '../base/freeze.ts';
import { isQualifiedName } from '../kube/labels.ts';
import { parseYaml } from '../kube/yaml.ts';

/** A constraint for pods that name none themselves. Selectors come from the pod's owner, so there are none here. */
export interface DefaultSpreadConstraint {
  readonly maxSkew: number;
  readonly topologyKey: string;
  readonly whenUnsatisfiable: 'DoNotSchedule' | 'ScheduleAnyway';
  readonly minDomains?: number;
  readonly nodeAffinityPolicy?: 'Honor' | 'Ignore';
  readonly nodeTaintsPolicy?: 'Honor' | 'Ignore';
}

export interface SchedulerConfig {
  readonly podTopologySpread: { readonly defaultConstraints: readonly DefaultSpreadConstraint[] };
}

/** What is used when no document is given. */
export const emptySchedulerConfig: SchedulerConfig = deepFreeze({ podTopologySpread: { defaultConstraints: [] } });

/** The document is not what it must be; the message names every problem with its field. */
export class SchedulerConfigError extends KarpenterError {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super('KRP_SCHEDULER_CONFIG', `is not a valid scheduler config: ${problems.join('; ')}`);
    this.problems = problems;
  }
}

/** Reads a YAML or JSON document. Fields that are not known are refused. Throws `SchedulerConfigError`. */
export function readSchedulerConfig(text: string): SchedulerConfig {
  let document: unknown;
  try {
    document = parseYaml(text);
  } catch (error) {
    throw new SchedulerConfigError([messageOf(error)]);
  }
  const problems = new Problems();
  const root = problems.object('', document ?? {}, ['podTopologySpread']);
  const spread = problems.object('podTopologySpread', root['podTopologySpread'] ?? {}, ['defaultConstraints']);
  const path = 'podTopologySpread.defaultConstraints';
  const list = spread['defaultConstraints'] ?? [];
  if (!Array.isArray(list)) problems.add(path, 'must be a list');
  const items: unknown[] = Array.isArray(list) ? list : [];
  const constraints = items.map((item, i) => readConstraint(problems, `${path}[${i}]`, item));
  const seen = new Set<string>();
  for (const [i, { topologyKey, whenUnsatisfiable }] of constraints.entries()) {
    // What is no text is complained about already.
    if (typeof topologyKey !== 'string' || topologyKey === '' || typeof whenUnsatisfiable !== 'string') continue;
    const pair = `${topologyKey}, ${whenUnsatisfiable}`;
    if (seen.has(pair)) problems.add(`${path}[${i}]`, `repeats the pair (${pair})`);
    seen.add(pair);
  }
  if (problems.found.length > 0) throw new SchedulerConfigError(problems.found);
  return deepFreeze({ podTopologySpread: { defaultConstraints: constraints } });
}

const constraintFields = [
  'maxSkew',
  'topologyKey',
  'whenUnsatisfiable',
  'labelSelector',
  'minDomains',
  'nodeAffinityPolicy',
  'nodeTaintsPolicy',
  'matchLabelKeys',
];

function readConstraint(problems: Problems, path: string, item: unknown): DefaultSpreadConstraint {
  const fields = problems.object(path, item, constraintFields);
  if (!isPositiveInt(fields['maxSkew'])) problems.add(`${path}.maxSkew`, 'must be a whole number above 0');
  const key = fields['topologyKey'];
  if (typeof key !== 'string' || key === '') problems.add(`${path}.topologyKey`, 'must be set');
  else for (const problem of isQualifiedName(key)) problems.add(`${path}.topologyKey`, problem);
  problems.word(path, fields, 'whenUnsatisfiable', ['DoNotSchedule', 'ScheduleAnyway'], true);
  problems.word(path, fields, 'nodeAffinityPolicy', ['Honor', 'Ignore'], false);
  problems.word(path, fields, 'nodeTaintsPolicy', ['Honor', 'Ignore'], false);
  if (fields['labelSelector'] != null) {
    problems.add(`${path}.labelSelector`, "must not be set: it comes from the pod's owner");
  }
  const labelKeys = fields['matchLabelKeys'];
  if (labelKeys != null && !(Array.isArray(labelKeys) && labelKeys.length === 0)) {
    problems.add(`${path}.matchLabelKeys`, 'must be empty');
  }
  if (fields['minDomains'] != null && !isPositiveInt(fields['minDomains'])) {
    problems.add(`${path}.minDomains`, 'must be a whole number above 0');
  }
  const { labelSelector: _selector, matchLabelKeys: _keys, ...kept } = fields;
  return Object.fromEntries(
    Object.entries(kept).filter(([, value]) => value !== null),
  ) as unknown as DefaultSpreadConstraint;
}

class Problems {
  readonly found: string[] = [];

  add(path: string, problem: string): void {
    this.found.push(path === '' ? problem : `${path}: ${problem}`);
  }

  /** The value as an object; what it may not have is noted. */
  object(path: string, value: unknown, known: readonly string[]): Record<string, unknown> {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      this.add(path, path === '' ? 'the document must be an object' : 'must be an object');
      return {};
    }
    for (const field of Object.keys(value)) if (!known.includes(field)) this.add(path, `unknown field "${field}"`);
    return value as Record<string, unknown>;
  }

  word(path: string, fields: Record<string, unknown>, name: string, words: string[], required: boolean): void {
    const value = fields[name];
    if (value == null && !required) return;
    if (!words.includes(value as string)) this.add(`${path}.${name}`, `must be ${words.join(' or ')}`);
  }
}

function isPositiveInt(value: unknown): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value > 0;
}
