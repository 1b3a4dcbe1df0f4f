// SPDX-License-Identifier: Apache-2.0
// The real helm, with a home of its own: nothing of the user's is read or written.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { tool } from '../../hack/tools/tools.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { execute, type Finished } from './processes.ts';

const home = mkdtempSync(join(tmpdir(), 'karpenter-helm-'));

/** Runs helm against the cluster of a kubeconfig, or none. */
export async function helm(args: readonly string[], kubeconfig = '/dev/null'): Promise<Finished> {
  const env = { PATH: process.env['PATH'], HOME: home, KUBECONFIG: kubeconfig };
  return execute(await tool('helm'), args, { env, timeoutMs: 110_000 });
}

/** The manifests of a chart of ours, as helm renders them for Kubernetes 1.36. */
export function template(chart: 'karpenter' | 'karpenter-crd', ...args: readonly string[]): Promise<Finished> {
  const where = ['--namespace', 'kube-system', '--kube-version', '1.36.1'];
  return helm(['template', chart, `charts/${chart}`, ...where, ...args]);
}

/** The objects of a stream of YAML documents. */
export function objectsIn(manifests: string): KubeObject[] {
  return parseAllDocuments(manifests).map((document) => document.toJS() as KubeObject);
}
