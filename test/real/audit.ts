// SPDX-License-Identifier: Apache-2.0
// The API server's own record of what a user asked for and what it was told, next to what the user may ask for.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeObject } from '../../src/kube/object.ts';

/** One request, as the audit log has it. */
interface AuditEntry {
  readonly verb: string;
  readonly requestURI: string;
  readonly requestReceivedTimestamp: string;
  readonly objectRef?: { readonly apiGroup?: string; readonly resource: string; readonly subresource?: string };
  readonly responseStatus?: { readonly code: number; readonly message?: string };
}

/** The audit log of one user, in a folder of the test's. */
export class AuditLog {
  /** What the API server needs to be told. */
  readonly flags: readonly string[];
  readonly #path: string;

  constructor(folder: string, user: string) {
    const policy = {
      apiVersion: 'audit.k8s.io/v1',
      kind: 'Policy',
      omitStages: ['RequestReceived'],
      rules: [{ level: 'Metadata', users: [user] }, { level: 'None' }],
    };
    writeFileSync(join(folder, 'audit-policy.json'), JSON.stringify(policy));
    this.#path = join(folder, 'audit.log');
    this.flags = [`--audit-policy-file=${join(folder, 'audit-policy.json')}`, `--audit-log-path=${this.#path}`];
  }

  entries(): AuditEntry[] {
    if (!existsSync(this.#path)) return [];
    const lines = readFileSync(this.#path, 'utf8').split('\n').filter(Boolean);
    return lines.map((line) => JSON.parse(line) as AuditEntry);
  }

  /**
   * What was refused for want of rights, in words. An API server that starts refuses everything until it has read the
   * roles: what it said in these times does not count.
   */
  refusals(starting: readonly { readonly from: number; readonly to: number }[] = []): string[] {
    return this.entries()
      .filter(({ responseStatus }) => responseStatus?.code === 403)
      .filter(({ requestReceivedTimestamp }) => {
        const at = Date.parse(requestReceivedTimestamp);
        return !starting.some(({ from, to }) => at >= from && at <= to);
      })
      .map(({ verb, requestURI, responseStatus }) => `${verb} ${requestURI}: ${responseStatus?.message}`);
  }

  /** What was asked for, each right once: `list pods`, `patch nodeclaims.karpenter.sh/status`. */
  used(): Set<string> {
    return new Set(this.entries().flatMap(({ verb, objectRef }) => (objectRef ? [rightOf(verb, objectRef)] : [])));
  }
}

function rightOf(
  verb: string,
  { apiGroup = '', resource, subresource = '' }: { apiGroup?: string; resource: string; subresource?: string },
): string {
  return `${verb} ${resource}${apiGroup && `.${apiGroup}`}${subresource && `/${subresource}`}`;
}

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/**
 * The rights that the roles among these objects give, in the words of `used`. Roles for people are left out, and those of
 * whoever else is told.
 */
export function grantedBy(objects: readonly KubeObject[], isLeftOut: (subject: string) => boolean = () => false) {
  const bound = new Set(
    objects
      .filter(({ kind }) => kind === 'ClusterRoleBinding' || kind === 'RoleBinding')
      .filter((binding) => {
        const { subjects = [] } = binding as unknown as { subjects?: readonly { name: string }[] };
        return !subjects.every(({ name }) => isLeftOut(name));
      })
      .map((binding) => (binding as unknown as { roleRef: { kind: string; name: string } }).roleRef)
      .map(({ kind, name }) => `${kind}/${name}`),
  );
  const rules = objects
    .filter(({ kind, metadata }) => bound.has(`${kind}/${metadata.name}`))
    .flatMap((role) => (role as unknown as { rules: readonly Rule[] }).rules);
  const rights = rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((apiGroup) =>
      resources.flatMap((name) => {
        const [resource = '', subresource = ''] = name.split('/');
        return verbs.map((verb) => rightOf(verb, { apiGroup, resource, subresource }));
      }),
    ),
  );
  return new Set(rights);
}
