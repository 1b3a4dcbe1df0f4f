// SPDX-License-Identifier: Apache-2.0
// What admission cannot check: labels that belong to the autoscaler or to a provider, and values that make no sense.
// The outcome becomes the condition ValidationSucceeded of a NodePool or NodeOverlay.
import { messageOf } from '../base/errors.ts';
import { durationMs } from './duration.ts';
import { commonLabelSet, type LabelSet, labels, normalizeLabelKey, restrictedLabelProblem } from './labels.ts';
import { labelKeyProblem, labelValueProblem } from './names.ts';
import { type NodeOverlay, standardResources } from './node-overlay.ts';
import type { NodePool } from './node-pool.ts';
import { type Requirement, requirementOperators, type Taint } from './shared-schemas.ts';

/** What was found, in the order of the fields. Without problems the object may be used; warnings are for the log. */
export interface ValidationResult {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

class Findings implements ValidationResult {
  readonly problems: string[] = [];
  readonly warnings: string[] = [];

  problem(where: string, text: string | undefined): void {
    if (text !== undefined) this.problems.push(`${where}: ${text}`);
  }
}

/** Checks a NodePool against the labels that its provider knows. */
export function validateNodePool(pool: NodePool, set: LabelSet = commonLabelSet): ValidationResult {
  const findings = new Findings();
  const { template, disruption } = pool.spec;
  for (const [key, value] of Object.entries(template.metadata?.labels ?? {})) {
    const where = `label ${key}`;
    if (key === labels.nodePool) findings.problem(where, 'it is set by the NodePool itself');
    findings.problem(where, labelKeyProblem(key));
    findings.problem(where, prefixed(`value ${JSON.stringify(value)}: `, labelValueProblem(value)));
    findings.problem(where, restrictedLabelProblem(set, key));
  }
  checkAnnotations(findings, template.metadata?.annotations ?? {});
  const seen = new Set<string>();
  checkTaints(findings, 'taint', template.spec.taints ?? [], seen);
  checkTaints(findings, 'startup taint', template.spec.startupTaints ?? [], seen);
  for (const requirement of template.spec.requirements) {
    checkRequirement(findings, requirement, set);
    if (requirement.key === labels.nodePool)
      findings.problem(`requirement ${requirement.key}`, 'it is set by the NodePool itself');
  }
  findings.problem('expireAfter', durationProblem(template.spec.expireAfter));
  findings.problem('terminationGracePeriod', durationProblem(template.spec.terminationGracePeriod));
  findings.problem('consolidateAfter', durationProblem(disruption?.consolidateAfter));
  return findings;
}

/** Checks a NodeOverlay against the labels that are known; the set of all providers, when there are several. */
export function validateNodeOverlay(overlay: NodeOverlay, set: LabelSet = commonLabelSet): ValidationResult {
  const findings = new Findings();
  for (const requirement of overlay.spec.requirements) {
    checkRequirement(findings, requirement, set);
    if (requirement.operator === 'NotIn' && !requirement.values?.length)
      findings.problem(`requirement ${requirement.key}`, 'operator NotIn needs at least one value');
  }
  for (const name of Object.keys(overlay.spec.capacity ?? {})) {
    if ((standardResources as readonly string[]).includes(name))
      findings.problem(`capacity ${name}`, 'an overlay may only add extended resources');
  }
  return findings;
}

/** An API server takes 256 KiB of annotations on an object; a NodeClaim needs some for itself. */
const annotationRoom = (256 - 16) * 1024;

/** A pool whose NodeClaims the API server refuses would keep the pods that are planned onto them for ever. */
function checkAnnotations(findings: Findings, annotations: Readonly<Record<string, string>>): void {
  let size = 0;
  for (const [key, value] of Object.entries(annotations)) {
    findings.problem(`annotation ${key}`, labelKeyProblem(key.toLowerCase()));
    size += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (size > annotationRoom)
    findings.problem('annotations', `${size} bytes are more than the ${annotationRoom} there is room for`);
}

function checkTaints(findings: Findings, what: string, taints: readonly Taint[], seen: Set<string>): void {
  for (const taint of taints) {
    const where = `${what} ${taint.key}`;
    findings.problem(where, labelKeyProblem(taint.key));
    // Upstream holds the value of a taint to the rules of a key.
    if (taint.value)
      findings.problem(where, prefixed(`value ${JSON.stringify(taint.value)}: `, labelKeyProblem(taint.value)));
    if (!['NoSchedule', 'PreferNoSchedule', 'NoExecute', '', undefined].includes(taint.effect))
      findings.problem(where, `effect ${JSON.stringify(taint.effect)} is unknown`);
    const identity = `${taint.key}:${taint.effect}`;
    if (seen.has(identity)) findings.problem(where, `there is another taint with the effect ${taint.effect}`);
    seen.add(identity);
  }
}

function checkRequirement(findings: Findings, requirement: Requirement, set: LabelSet): void {
  const { operator, values = [], minValues } = requirement;
  const key = normalizeLabelKey(set, requirement.key);
  const where = `requirement ${requirement.key}`;
  if (!requirementOperators.includes(operator))
    findings.problem(where, `operator ${JSON.stringify(operator)} is unknown`);
  findings.problem(where, restrictedLabelProblem(set, key));
  findings.problem(where, labelKeyProblem(key));
  for (const value of values)
    findings.problem(where, prefixed(`value ${JSON.stringify(value)}: `, labelValueProblem(value)));
  switch (operator) {
    case 'In':
      checkKnownValues(findings, where, key, requirement, set);
      if (values.length === 0) findings.problem(where, 'operator In needs at least one value');
      if (minValues !== undefined && values.length < minValues)
        findings.problem(where, `operator In with minValues ${minValues} needs at least that many values`);
      break;
    case 'Gt':
    case 'Lt':
    case 'Gte':
    case 'Lte':
      if (values.length !== 1 || !isWholeNumber(values[0]!))
        findings.problem(where, `operator ${operator} needs exactly one value, a whole number of at least 0`);
      break;
    case 'NotIn':
    case 'Exists':
    case 'DoesNotExist':
      break;
  }
}

/** Where the values of a label are a closed set, enough of those asked for must be in it. */
function checkKnownValues(
  findings: Findings,
  where: string,
  key: string,
  requirement: Requirement,
  set: LabelSet,
): void {
  const known = set.wellKnown.has(key) ? set.knownValues.get(key) : undefined;
  if (known === undefined) return;
  const { values = [], minValues } = requirement;
  const usable = values.filter((value) => known.has(value));
  const unknown = values.filter((value) => !known.has(value));
  const expected = [...known].join(', ');
  if (usable.length === 0) findings.problem(where, `none of its values is one of ${expected}`);
  else if (minValues !== undefined && usable.length < minValues)
    findings.problem(
      where,
      `only ${usable.length} of its values are among ${expected}, fewer than minValues ${minValues}`,
    );
  else if (unknown.length > 0)
    findings.warnings.push(`${where}: values ${unknown.join(', ')} are ignored; known are ${expected}`);
}

function isWholeNumber(text: string): boolean {
  return /^\+?[0-9]+$/.test(text) && text.length <= 63 && BigInt(text.replace('+', '')) < 2n ** 63n;
}

function durationProblem(text: string | undefined): string | undefined {
  try {
    durationMs(text);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

function prefixed(prefix: string, text: string | undefined): string | undefined {
  return text === undefined ? undefined : prefix + text;
}
