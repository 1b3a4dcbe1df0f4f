// SPDX-License-Identifier: Apache-2.0
import type { Deployment } from '../../kube/kinds.ts';

/** A Deployment in the namespace `default`, whose pods ask for this much CPU and are labelled `app: <name>`. */
export function deployment(name: string, replicas: number, cpu = '1'): Deployment {
  const labels = { app: name };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'main', image: 'pause', resources: { requests: { cpu } } }] },
      },
    },
  };
}
