// SPDX-License-Identifier: Apache-2.0
// Who may act: the settings of leader election, and where its Lease lives.
import { KarpenterError } from '../base/errors.ts';
import type { Random } from '../base/random.ts';

/** Where Kubernetes tells a pod its own namespace. */
export const namespaceFile = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/** Nothing says where the Lease should be. */
export class LeaseNamespaceError extends KarpenterError {
  constructor() {
    super(
      'KRP_LEASE_NAMESPACE',
      'leader election needs a namespace for its Lease, and outside a cluster there is none to fall back to: ' +
        'set --leader-election-namespace (or LEADER_ELECTION_NAMESPACE, or SYSTEM_NAMESPACE), ' +
        'or run a single replica with --disable-leader-election',
    );
  }
}

/**
 * The namespace of the Lease: the setting, else the system namespace, else the namespace of the pod. `readFile` gives
 * the text of a file or undefined. Throws `LeaseNamespaceError` when there is none.
 */
export function leaseNamespace(
  settings: { readonly leaderElectionNamespace: string; readonly systemNamespace: string },
  readFile: (path: string) => string | undefined,
): string {
  const namespace =
    settings.leaderElectionNamespace || settings.systemNamespace || readFile(namespaceFile)?.trim() || undefined;
  if (namespace === undefined) throw new LeaseNamespaceError();
  return namespace;
}

/** An identity that no other candidate has: the host, and a part by chance for a process that starts again on it. */
export function candidateIdentity(hostname: string, random: Random): string {
  return `${hostname}_${random.uuid()}`;
}

/** The lease went to somebody else, or could not be renewed: this process must not act any more. */
export class LeadershipLostError extends KarpenterError {
  constructor() {
    super('KRP_LEADERSHIP_LOST', 'leader election lost');
  }
}
