// SPDX-License-Identifier: Apache-2.0
// The embedded server as a subject: alone and with its controllers, through both of its doors.
import { RealClock } from '../../../src/base/clock.ts';
import { SystemRandom } from '../../../src/base/random.ts';
import { ApiServer } from '../../../src/embedded/api-server.ts';
import { EmbeddedCluster } from '../../../src/embedded/cluster.ts';
import { agentFor } from './caller.ts';
import { inProcess, overHttps } from './subjects.ts';
import type { Subject } from './suite.ts';

export interface EmbeddedSubjects {
  /** The API server alone. */
  readonly https: Subject;
  readonly inProcess: Subject;
  /** With controllers. */
  readonly clusterHttps: Subject;
  readonly clusterInProcess: Subject;
  close(): Promise<void>;
}

const administrator = { username: 'admin', groups: ['system:masters'] };

/** Starts both servers, each on a port of its own. */
export async function startEmbedded(): Promise<EmbeddedSubjects> {
  const parts = { clock: new RealClock(), random: new SystemRandom() };
  const server = new ApiServer(parts);
  const cluster = await EmbeddedCluster.start({ ...parts, baseNodes: [] });
  const [listener, clusterListener] = [await server.listen(), await cluster.server.listen()];
  const agents = [agentFor(listener.certificateAuthority), agentFor(clusterListener.certificateAuthority)] as const;
  const token = server.authenticator.issue(administrator);
  const clusterToken = cluster.server.authenticator.issue(administrator);
  return {
    https: overHttps({ url: listener.url, token }, agents[0]),
    inProcess: inProcess(server),
    clusterHttps: overHttps({ url: clusterListener.url, token: clusterToken }, agents[1]),
    clusterInProcess: inProcess(cluster.server),
    close: async () => {
      await Promise.all(agents.map((agent) => agent.destroy()));
      await cluster.close();
      await server.close();
    },
  };
}
