// SPDX-License-Identifier: Apache-2.0
// Disks that a LinodeNodeClass asks for besides the one with the image: made, attached and booted after the Linode itself.
// Each step looks first whether it was done: a launch that is tried again goes on where it stopped.
import type { LinodeNodeClassSpec } from '../../api/linode-node-class.ts';
import { Quantity } from '../../kube/quantity.ts';
import type { LinodeInstance } from './api-types.ts';
import type { LinodeClient } from './client.ts';

interface Disk {
  readonly id: number;
  readonly label: string;
  readonly size: number;
  readonly filesystem: string;
}

interface Config {
  readonly id: number;
  readonly devices: Readonly<Record<string, { readonly disk_id?: number | null } | null>>;
}

const mb = 1024n * 1024n;
/** What Linode gives a machine with an image to swap to, unless told. */
const usualSwapMb = 512;

/** Whether machines of a class need more than one request. */
export function needsFurnishing({ osDisk, dataDisks }: LinodeNodeClassSpec): boolean {
  return osDisk !== undefined || Object.keys(dataDisks ?? {}).length > 0;
}

/** MB of a plan's storage that the disk with the image gets; none where the plan is too small for all disks of the class. */
export function rootDiskMb(planMb: number, spec: LinodeNodeClassSpec): number {
  const swapMb = spec.swapSize ?? spec.swap_size ?? usualSwapMb;
  const dataMb = Object.values(spec.dataDisks ?? {}).reduce((sum, { size }) => sum + sizeOf(size), 0);
  const restMb = Math.max(0, planMb - swapMb - dataMb);
  if (!spec.osDisk) return restMb;
  const wantedMb = sizeOf(spec.osDisk.size);
  return wantedMb <= restMb ? wantedMb : 0;
}

/** Makes and attaches the disks, and boots. Throws what the API threw; safe to repeat. */
export async function furnish(
  client: LinodeClient,
  linode: LinodeInstance,
  spec: LinodeNodeClassSpec,
  signal: AbortSignal,
): Promise<void> {
  const base = `linode/instances/${linode.id}`;
  const { status, specs } = await client.get<LinodeInstance>(base, signal);
  if (status === 'running' || status === 'booting' || status === 'rebooting') return;
  const disks = await client.list<Disk>(`${base}/disks`, { signal });
  const [root] = disks.filter(({ filesystem }) => filesystem !== 'swap').sort((a, b) => a.id - b.id);
  // It was made as large as the plan allows: whatever the others need comes from it.
  const wantedMb = specs ? rootDiskMb(specs.disk, spec) : spec.osDisk ? sizeOf(spec.osDisk.size) : 0;
  if (root && wantedMb > 0) await shrink(client, `${base}/disks/${root.id}`, root, wantedMb, signal);
  const devices: Record<string, { disk_id: number }> = {};
  for (const [device, wanted] of Object.entries(spec.dataDisks ?? {})) {
    const label = wanted.label ?? `karpenter-${device}`;
    const found = disks.find((disk) => disk.label === label);
    const filesystem = wanted.filesystem ?? 'ext4';
    const made =
      found ?? (await client.post<Disk>(`${base}/disks`, { label, size: sizeOf(wanted.size), filesystem }, signal));
    devices[device] = { disk_id: made.id };
  }
  const [config] = await client.list<Config>(`${base}/configs`, { signal });
  if (config && Object.keys(devices).length > 0) {
    // The image's own swap disk stands at sdb; it moves behind the last disk of ours.
    const taken = Object.entries(config.devices).filter(([, device]) => device?.disk_id);
    const kept = taken.filter(([name, device]) => name === 'sda' || !(name in devices) || !device);
    const moved = taken.filter(([name]) => name !== 'sda' && name in devices);
    const free = ['sdb', 'sdc', 'sdd', 'sde', 'sdf', 'sdg', 'sdh'].filter(
      (name) => !(name in devices) && !kept.some(([other]) => other === name),
    );
    const all = {
      ...Object.fromEntries(kept),
      ...devices,
      ...Object.fromEntries(moved.slice(0, free.length).map(([, device], i) => [free[i]!, device])),
    };
    await client.put(`${base}/configs/${config.id}`, { devices: all }, signal);
  }
  await client.post(`${base}/boot`, config ? { config_id: config.id } : undefined, signal);
}

async function shrink(
  client: LinodeClient,
  path: string,
  disk: Disk,
  size: number,
  signal: AbortSignal,
): Promise<void> {
  if (disk.size === size) return;
  await client.post(`${path}/resize`, { size }, signal);
}

/** MB, as Linode counts them. */
function sizeOf(size: string | number): number {
  const bytes = Quantity.parse(String(size)).value();
  return Number((bytes + mb - 1n) / mb);
}
