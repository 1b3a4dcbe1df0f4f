// SPDX-License-Identifier: Apache-2.0
// Starts a `karpenter up` of any origin, uses it once over HTTPS, and ends it: what the parts `clone` and `pack` share.
import { readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { parse } from 'yaml';
import { RunningProgram } from '../../test/real/processes.ts';

interface Kubeconfig {
  clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
  users: { user: { token: string } }[];
}

/**
 * Runs `command` (which must end in `karpenter up`) in `folder` and fails unless a cluster answers and ends cleanly.
 * Behind npm the signal goes to the whole process group, as from a terminal, and npm's own exit code does not count.
 */
export async function tryUp(
  command: string,
  args: readonly string[],
  folder: string,
  { behindNpm = false }: { behindNpm?: boolean } = {},
): Promise<void> {
  const started = performance.now();
  const path = join(folder, 'ci.kubeconfig');
  rmSync(path, { force: true });
  const up = new RunningProgram('karpenter up', command, [...args, '--port', '0', '--kubeconfig-out', path], {
    cwd: folder,
    group: behindNpm,
  });
  const config = await up.until(() => parse(readFileSync(path, 'utf8')) as Kubeconfig, 30_000);
  const ready = Math.round(performance.now() - started);
  const { server, 'certificate-authority-data': ca } = config.clusters[0]!.cluster;
  const dispatcher = new Agent({ connect: { ca: Buffer.from(ca, 'base64') } });
  const answer = await request(`${server}/api/v1/nodes`, {
    dispatcher,
    headers: { authorization: `Bearer ${config.users[0]!.user.token}` },
  });
  const nodes = (await answer.body.json()) as { items: unknown[] };
  await dispatcher.close();
  const code = await up.stop(behindNpm ? 'SIGINT' : 'SIGTERM');
  if (!(await stopsListening(Number(new URL(server).port)))) throw new Error(`${server} still listens after the end`);
  if (answer.statusCode !== 200 || nodes.items.length !== 2 || (code !== 0 && !behindNpm)) {
    throw new Error(
      `expected 200, 2 nodes and exit code 0; got ${answer.statusCode}, ${nodes.items.length}, ${code}\n${up.output}`,
    );
  }
  console.log(`karpenter up answered with 2 nodes (kubeconfig after ${ready} ms) and ended cleanly`);
}

/** Whether the port is closed within five seconds: npm may be gone a moment before what it started. */
async function stopsListening(port: number): Promise<boolean> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect({ port, host: '127.0.0.1' });
      socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
      socket.on('connect', () => socket.destroy());
    });
    if (!open) return true;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return false;
}
