// SPDX-License-Identifier: Apache-2.0
// The emulated Linode API in the hands of clients nobody here wrote: `linode-cli` from PyPI, and linodego.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { pythonTool, tool } from '../../hack/tools/tools.ts';
import { RealClock } from '../../src/base/clock.ts';
import { SeededRandom } from '../../src/base/random.ts';
import { LinodeApi } from '../../src/embedded/clouds/linode/api.ts';

const run = promisify(execFile);
const token = 'linode-token';
const delays = {
  assignMs: 50,
  listMs: 50,
  provisionMs: 50,
  installMs: 50,
  bootMs: 100,
  readyMs: 50,
  shutdownMs: 50,
  deleteMs: 50,
  replaceMs: 100,
  kubeconfigMs: 100,
};

let api: LinodeApi;
let port: number;
let url: string;

beforeEach(async () => {
  api = new LinodeApi({ clock: new RealClock(), random: new SeededRandom(1), delays });
  ({ url, port } = await api.listen());
});
afterEach(() => api.close());

describe('linodego', () => {
  let program: string;
  beforeAll(async () => {
    program = await tool('linode-client');
  });

  it('lists, creates, scales, finds, updates and deletes, and waits when it is told to', async () => {
    api.capacity.set('g6-dedicated-2', 'us-ord', 0);
    api.faults.add({ kind: { status: 429, headers: { 'retry-after': '1' } }, path: /^\/account\/settings$/ });
    const { stdout } = await run(program, [], { env: { LINODE_URL: url, LINODE_TOKEN: token } });
    expect(JSON.parse(stdout)).toEqual({
      types: 47,
      standard2: [2, 4096, 0.036, 'id-cgk'],
      regions: 34,
      availability: 1,
      // Eight pages of a hundred.
      availabilities: 783,
      images: 36,
      kernels: 4,
      versions: 24,
      user: 'karpenter',
      cluster: ['from-go', 'standard', 'ready', 1],
      pool: ['g6-standard-2', 1, 'a', 'team', 2],
      linodeOfPool: ['running', true, []],
      kubeconfig: true,
      poolsLeft: [2, 1],
      clusterGone: 404,
      instance: ['provisioning', 'running', true, 1],
      updated: ['from-go-2', 'one,two'],
      parts: [1, 2, 1],
      tag: true,
      network: ['from-go', true, 400],
      placement: ['from-go', 1, true],
      keys: ['from-go', 1],
      refused: [400, '[400] [region] Region is not valid', 404, 400, 401, 404],
      throttled: [false, true],
    });
    expect(api.ledger.living()).toEqual([]);
    expect(api.ledger.calls.filter(({ status }) => status === 429)).toHaveLength(1);
  });
});

describe('linode-cli', () => {
  let program: string;
  let home: string;
  beforeAll(async () => {
    program = await pythonTool('linode-cli');
    home = mkdtempSync(join(tmpdir(), 'linode-cli-'));
  });
  afterAll(() => rmSync(home, { recursive: true, force: true }));

  const environment = () => ({
    PATH: process.env['PATH'],
    HOME: home,
    LINODE_CLI_TOKEN: token,
    LINODE_CLI_API_SCHEME: 'http',
    LINODE_CLI_API_HOST: `127.0.0.1:${port}`,
    LINODE_CLI_API_VERSION: 'v4beta',
  });
  /** A command line without quotes; what it prints as JSON. */
  const asked = async (line: string): Promise<Record<string, unknown>[]> => {
    const { stdout } = await run(program, [...line.split(' '), '--json', '--no-defaults'], { env: environment() });
    return stdout.trim() === '' ? [] : (JSON.parse(stdout) as Record<string, unknown>[]);
  };

  it('looks around: plans, regions, versions', async () => {
    const types = await asked('linodes types');
    expect(types.map(({ id }) => id)).toContain('g6-standard-2');
    expect(await asked('regions list')).toHaveLength(34);
    expect((await asked('lke versions-list'))[0]).toMatchObject({ id: '1.36' });
  });

  it('makes a cluster and a pool, scales it, and deletes them', async () => {
    const [cluster] = await asked(
      'lke cluster-create --label from-cli --region us-ord --k8s_version 1.36 --node_pools.type g6-standard-1 --node_pools.count 1',
    );
    const id = String(cluster!['id']);
    const [pool] = await asked(`lke pool-create ${id} --type g6-standard-2 --count 1 --tags from-cli`);
    const poolId = String(pool!['id']);
    await asked(`lke pool-update ${id} ${poolId} --count 3`);
    // One line for each node.
    const pools = await asked(`lke pools-list ${id}`);
    expect(pools.filter((line) => line['type'] === 'g6-standard-2' && line['id'] === pool!['id'])).not.toEqual([]);
    expect(api.ledger.pools().map(({ count }) => count)).toEqual([1, 3]);
    await asked(`lke pool-delete ${id} ${poolId}`);
    await asked(`lke cluster-delete ${id}`);
    expect(api.ledger.clusters()).toEqual([]);
  });

  it('makes a Linode with tags, filters by them, and deletes it', async () => {
    const [linode] = await asked(
      'linodes create --label from-cli --region us-ord --type g6-standard-1 --image linode/ubuntu24.04 --root_pass aComplex-P4ss --tags from-cli --tags other',
    );
    expect(await asked('linodes list --tags from-cli')).toMatchObject([{ id: linode!['id'] }]);
    expect(await asked('linodes list --tags nobody')).toEqual([]);
    expect((await asked('tags list')).map(({ label }) => label)).toEqual(['from-cli', 'other']);
    await asked(`linodes delete ${String(linode!['id'])}`);
    expect(api.ledger.living()).toEqual([]);
  });

  it('shows what was wrong', async () => {
    const refused = run(program, ['linodes', 'create', '--region', 'nowhere', '--type', 'g6-standard-1', '--json'], {
      env: environment(),
    });
    await expect(refused).rejects.toThrow(/Region is not valid/);
    const stranger = run(program, ['linodes', 'list', '--json'], {
      env: { ...environment(), LINODE_CLI_TOKEN: 'nobody' },
    });
    await expect(stranger).rejects.toThrow(/Invalid Token/);
  });
});
