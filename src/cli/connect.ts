// SPDX-License-Identifier: Apache-2.0
// The way to a real API server, from a kubeconfig or the pod's service account.
import type { Clock } from '../base/clock.ts';
import type { Transport } from '../kube/transport.ts';
import { homeDirectory } from './home.ts';
import { version } from './version.ts';

/** Opens it; nothing is sent yet. Without a path: KUBECONFIG, the service account, ~/.kube/config. Throws KubeconfigError. */
export async function connect(path: string | undefined, clock: Clock): Promise<Transport> {
  // Loaded here: a command that needs no API server does not wait for them.
  const [{ HttpTransport }, { findConnection }, { machineIo }] = await Promise.all([
    import('../kube/http-transport.ts'),
    import('../kube/kubeconfig.ts'),
    import('../kube/credential-io.ts'),
  ]);
  const connection = findConnection({
    path: path || undefined,
    env: process.env,
    homeDirectory: homeDirectory(),
    io: machineIo(process.env, process.stdin.isTTY),
    clock,
  });
  return new HttpTransport({ ...connection, userAgent: `karpenter/${version}` });
}
