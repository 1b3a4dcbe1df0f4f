// SPDX-License-Identifier: Apache-2.0
// Whether a Machine still is what its MachineDeployment would make today.
import { createHash } from 'node:crypto';
import { canonicalJson } from './canonical-json.ts';
import { type Hub, ownersOf } from './hub.ts';
import {
  groupOf,
  isSameReference,
  type Machine,
  type MachineSpec,
  type ObjectReference,
  rollsByItself,
  type Scalable,
} from './kinds.ts';
import { annotations } from './names.ts';

/** Reasons for drift, each in one word. */
export const driftReasons = {
  member: 'MemberDrifted',
  infrastructure: 'InfrastructureTemplateDrifted',
  bootstrap: 'BootstrapTemplateDrifted',
  version: 'VersionDrifted',
  failureDomain: 'FailureDomainDrifted',
  template: 'TemplateContentDrifted',
  labels: 'LabelsDrifted',
} as const;

/** How the template that a Machine was made from differs from the one that is wanted, by name; '' when it does not. */
export function templateDrift(made: MachineSpec, wanted?: MachineSpec | null): string {
  wanted ??= {};
  if (!isSameReference(made.infrastructureRef, wanted.infrastructureRef)) return driftReasons.infrastructure;
  if (isBootstrapDifferent(made.bootstrap, wanted.bootstrap)) return driftReasons.bootstrap;
  if (differ(made.version, wanted.version)) return driftReasons.version;
  return differ(made.failureDomain, wanted.failureDomain) ? driftReasons.failureDomain : '';
}

function isBootstrapDifferent(made: MachineSpec['bootstrap'], wanted: MachineSpec['bootstrap']): boolean {
  return !isSameReference(made?.configRef, wanted?.configRef) || differ(made?.dataSecretName, wanted?.dataSecretName);
}

/** Absent and empty are the same. */
function differ(a = '', b = ''): boolean {
  return a !== b;
}

/**
 * Why a Machine is not what its owner would make today. Where Cluster API replaces Machines itself it is left to do so:
 * two who do it would do it twice.
 */
export async function driftOf(hub: Hub, machine: Machine, owner: Scalable, signal: AbortSignal): Promise<string> {
  const made = madeFrom(machine, hub);
  const named = made ? templateDrift(made, owner.spec?.template?.spec) : '';
  if (named === '') return contentDrift(hub, machine, owner, signal);
  return ownersOf(machine)[0]?.startsWith('MachineDeployment/') && rollsByItself(owner) ? '' : named;
}

/**
 * What the templates of a member look like inside, as a short hash: templates should never change under their name, but
 * user data and kubelet settings do. undefined when none of them can be read. Takes the template of what made a Machine.
 */
export async function templateHash(
  hub: Hub,
  spec: MachineSpec | undefined,
  namespace: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const refs = [spec?.infrastructureRef, spec?.bootstrap?.configRef].filter((ref): ref is ObjectReference =>
    Boolean(ref?.name),
  );
  const contents: unknown[] = [];
  for (const ref of refs) {
    const template = await hub.template(ref, namespace, signal);
    if (template?.spec !== undefined) contents.push([groupOf(ref), ref.kind, ref.name, template.spec]);
  }
  if (contents.length === 0) return undefined;
  return createHash('sha256').update(canonicalJson(contents)).digest('hex').slice(0, 16);
}

/** The template that a Machine was made from. */
export function madeFrom(machine: Machine, hub: Hub): MachineSpec | undefined {
  const set = machine.metadata.ownerReferences?.find(({ kind }) => kind === 'MachineSet')?.name;
  return set ? hub.view.sets.get(`${machine.metadata.namespace}/${set}`)?.spec?.template?.spec : undefined;
}

/** Whether the templates changed inside since the Machine was claimed. */
async function contentDrift(hub: Hub, machine: Machine, owner: Scalable, signal: AbortSignal): Promise<string> {
  const recorded = machine.metadata.annotations?.[annotations.templateHash];
  if (recorded === undefined) return '';
  const now = await templateHash(hub, owner.spec?.template?.spec, machine.metadata.namespace ?? '', signal);
  return now !== undefined && now !== recorded ? driftReasons.template : '';
}
