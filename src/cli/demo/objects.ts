// SPDX-License-Identifier: Apache-2.0
// The objects that scenarios are made of.
import type { Deployment, PodSpec } from '../../kube/kinds.ts';

export interface DeploymentOptions {
  readonly replicas: number;
  readonly image?: string;
  readonly requests?: Readonly<Record<string, string>>;
  /** Merged over the pods' spec. */
  readonly spec?: Partial<PodSpec>;
}

/** A deployment of one container in the namespace `default`, its pods labelled `app: <name>`. */
export function deployment(name: string, options: DeploymentOptions): Deployment {
  const { replicas, image = 'public.ecr.aws/eks-distro/kubernetes/pause:3.7', requests, spec } = options;
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
        spec: {
          terminationGracePeriodSeconds: 0,
          containers: [{ name, image, ...(requests ? { resources: { requests: { ...requests } } } : {}) }],
          ...spec,
        },
      },
    },
  };
}
