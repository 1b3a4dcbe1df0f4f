// SPDX-License-Identifier: Apache-2.0
// Asks an API server, whichever it is, for its verdict on a case of the corpus.
import { apiKinds, type CustomResourceDefinition } from '../../../src/api/crd.ts';
import type { Transport, TransportResponse } from '../../../src/kube/transport.ts';
import type { CandidateObject, VerdictCase } from './verdict-case.ts';

/** What a server said: the code of its answer, and its words. */
export interface Verdict {
  readonly valid: boolean;
  readonly code: number;
  readonly message: string;
}

/** Creates the CRDs and waits until the server serves them. Fails with the server's words when it refuses one. */
export async function installCrds(
  transport: Transport,
  crds: readonly CustomResourceDefinition[],
  pause: () => Promise<unknown>,
): Promise<void> {
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  for (const crd of crds) {
    const answer = await transport.request({ method: 'POST', path, body: crd });
    if (answer.status !== 201) throw new Error(`${crd.metadata.name}: ${messageOf(answer)}`);
  }
  for (const crd of crds) {
    for (let tries = 0; !(await isEstablished(transport, `${path}/${crd.metadata.name}`)); tries++) {
      if (tries > 100) throw new Error(`${crd.metadata.name} is not established`);
      await pause();
    }
  }
}

async function isEstablished(transport: Transport, path: string): Promise<boolean> {
  const { body } = await transport.request({ method: 'GET', path });
  const crd = body as {
    spec: { group: string; names: { plural: string }; versions: { name: string }[] };
    status?: { conditions?: { type: string; status: string }[] };
  };
  const is = (type: string, status: string): boolean =>
    crd.status?.conditions?.some((condition) => condition.type === type && condition.status === status) ?? false;
  // A schema that is not structural, or too costly, shows here and nowhere else.
  if (is('NonStructuralSchema', 'True')) throw new Error(`${path}: the schema is not structural`);
  if (!is('Established', 'True')) return false;
  const { group, names, versions } = crd.spec;
  const served = await transport.request({
    method: 'GET',
    path: `/apis/${group}/${versions[0]!.name}/${names.plural}`,
  });
  return served.status === 200;
}

/** The verdict of a server on a case. What it creates for it, it removes. */
export async function judge(transport: Transport, verdictCase: VerdictCase): Promise<Verdict> {
  const { object, old, subresource } = verdictCase;
  const collection = collectionOf(object);
  const path = `${collection}/${object.metadata.name}`;
  const created = await transport.request({ method: 'POST', path: collection, body: old ?? object });
  try {
    if (old === undefined) return verdictOf(created, 201);
    if (created.status !== 201) throw new Error(`${verdictCase.id}: the old object was refused: ${messageOf(created)}`);
    const { resourceVersion } = (created.body as CandidateObject).metadata;
    const body = { ...object, metadata: { ...object.metadata, resourceVersion } };
    const target = subresource ? `${path}/${subresource}` : path;
    return verdictOf(await transport.request({ method: 'PUT', path: target, body }), 200);
  } finally {
    if (created.status === 201) await transport.request({ method: 'DELETE', path });
  }
}

function collectionOf(object: CandidateObject): string {
  const { plural } = apiKinds.find((kind) => kind.kind === object.kind)!;
  const { namespace } = object.metadata;
  return `/apis/${object.apiVersion}/${namespace ? `namespaces/${namespace}/` : ''}${plural}`;
}

/** Only a refusal for what the object says counts as one: anything else is a fault of the server or of the test. */
function verdictOf(answer: TransportResponse, success: number): Verdict {
  const message = messageOf(answer);
  if (answer.status === success) return { valid: true, code: answer.status, message: '' };
  if (answer.status === 422 || answer.status === 400) return { valid: false, code: answer.status, message };
  throw new Error(`unexpected answer ${answer.status}: ${message}`);
}

function messageOf(answer: TransportResponse): string {
  return (answer.body as { message?: string } | undefined)?.message ?? JSON.stringify(answer.body);
}
