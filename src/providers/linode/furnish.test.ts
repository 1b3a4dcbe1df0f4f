// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { LinodeInstance } from './api-types.ts';
import type { LinodeClient } from './client.ts';
import { furnish, rootDiskMb } from './furnish.ts';

test('what is done a second time finds the disk with the image, in whatever order disks are told', async () => {
  const disks = [
    { id: 13, label: 'karpenter-sdc', size: 10_240, filesystem: 'ext4' },
    { id: 12, label: '512 MB Swap Image', size: 512, filesystem: 'swap' },
    { id: 11, label: 'Debian 12 Disk', size: 50_688, filesystem: 'ext4' },
  ];
  const written: string[] = [];
  const client = {
    get: () => Promise.resolve({ id: 7, status: 'offline', specs: { disk: 51_200 } }),
    list: (path: string) => Promise.resolve(path.endsWith('/disks') ? disks : []),
    post: (path: string, body: unknown) => {
      written.push(`${path} ${JSON.stringify(body)}`);
      return Promise.resolve({});
    },
  } as unknown as LinodeClient;
  const spec = { osDisk: { size: '20Gi' }, dataDisks: { sdc: { size: '10Gi' } } };
  await furnish(client, { id: 7 } as LinodeInstance, spec, new AbortController().signal);
  expect(written).toEqual(['linode/instances/7/disks/11/resize {"size":20480}', 'linode/instances/7/boot undefined']);
});

test('swap takes its part of the plan, under whichever name it is asked for', () => {
  const sizes = [{}, { swapSize: 1024 }, { swap_size: 2048 }].map((spec) => rootDiskMb(51_200, spec));
  expect(sizes).toEqual([51_200 - 512, 51_200 - 1024, 51_200 - 2048]);
});
