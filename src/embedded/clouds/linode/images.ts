// SPDX-License-Identifier: Apache-2.0
// What a Linode can be made of: images and kernels.

/** An image, with the names of the API's fields. */
export interface Image {
  readonly id: string;
  readonly label: string;
  readonly deprecated: boolean;
  readonly size: number;
  readonly created: string;
  readonly updated: string;
  readonly description: string;
  readonly created_by: string;
  readonly type: string;
  readonly tags: readonly string[];
  readonly is_public: boolean;
  readonly is_shared: boolean;
  readonly vendor: string | null;
  readonly expiry: string | null;
  readonly eol: string | null;
  readonly regions: null;
  readonly status: string;
  readonly capabilities: readonly string[];
  readonly image_sharing: null;
}

type Row = readonly [name: string, label: string, vendor: string, size: number, deprecated: boolean, letters: string];

/** `c`: runs cloud-init; `d`: can go to distributed sites. */
const rows: readonly Row[] = [
  ['almalinux10', 'AlmaLinux 10', 'AlmaLinux', 3500, false, 'c'],
  ['almalinux8', 'AlmaLinux 8', 'AlmaLinux', 4000, false, 'cd'],
  ['almalinux9', 'AlmaLinux 9', 'AlmaLinux', 2500, false, 'cd'],
  ['alpine3.21', 'Alpine 3.21', 'Alpine', 500, false, 'c'],
  ['alpine3.22', 'Alpine 3.22', 'Alpine', 500, false, 'c'],
  ['alpine3.23', 'Alpine 3.23', 'Alpine', 500, false, 'c'],
  ['arch', 'Arch Linux', 'Arch', 2500, false, 'c'],
  ['centos-stream10', 'CentOS Stream 10', 'CentOS', 3500, false, 'c'],
  ['centos-stream9', 'CentOS Stream 9', 'CentOS', 2400, false, 'cd'],
  ['debian11', 'Debian 11', 'Debian', 1500, false, 'cd'],
  ['debian12', 'Debian 12', 'Debian', 1800, false, 'cd'],
  ['debian13', 'Debian 13', 'Debian', 1800, false, 'cd'],
  ['fedora43', 'Fedora 43', 'Fedora', 3000, false, 'c'],
  ['gentoo', 'Gentoo', 'Gentoo', 7000, false, 'c'],
  ['kali', 'Kali Linux', 'Kali', 1536, false, 'c'],
  ['debian12-kube-v1.33.10', 'Kubernetes 1.33.10 on Debian 12', 'Debian', 3500, false, 'c'],
  ['debian12-kube-v1.34.6', 'Kubernetes 1.34.6 on Debian 12', 'Debian', 3500, false, 'c'],
  ['debian12-kube-v1.35.3', 'Kubernetes 1.35.3 on Debian 12', 'Debian', 3500, false, 'c'],
  ['debian12-kube-v1.36.0', 'Kubernetes 1.36.0 on Debian 12', 'Debian', 3000, false, 'c'],
  ['rocky10', 'Rocky Linux 10', 'Rocky', 3500, false, 'c'],
  ['rocky8', 'Rocky Linux 8', 'Rocky', 4000, false, 'cd'],
  ['rocky9', 'Rocky Linux 9', 'Rocky', 2500, false, 'cd'],
  ['slackware15.0', 'Slackware 15.0', 'Slackware', 11600, false, ''],
  ['ubuntu22.04', 'Ubuntu 22.04 LTS', 'Ubuntu', 3500, false, 'cd'],
  ['ubuntu22.04-kube', 'Ubuntu 22.04 LTS KPP', 'Ubuntu', 3500, false, 'c'],
  ['ubuntu24.04-kube-vmulti', 'Ubuntu 24.04 for LKE', 'Ubuntu', 4000, false, 'c'],
  ['ubuntu24.04', 'Ubuntu 24.04 LTS', 'Ubuntu', 3500, false, 'cd'],
  ['ubuntu24.04-nvidia', 'Ubuntu 24.04 LTS NVIDIA', 'Ubuntu', 4500, false, 'cd'],
  ['alpine3.20', 'Alpine 3.20', 'Alpine', 400, true, 'c'],
  ['centos7', 'CentOS 7', 'CentOS', 2800, true, 'd'],
  ['fedora42', 'Fedora 42', 'Fedora', 3000, true, 'c'],
  ['opensuse15.6', 'openSUSE Leap 15.6', 'openSUSE', 1200, true, 'c'],
  ['ubuntu20.04', 'Ubuntu 20.04 LTS', 'Ubuntu', 3500, true, 'cd'],
  ['ubuntu25.10', 'Ubuntu 25.10', 'Ubuntu', 3500, true, 'c'],
  ['debian9', 'Debian 9', 'Debian', 1500, true, 'd'],
  ['debian10', 'Debian 10', 'Debian', 1500, true, 'd'],
];

const released = '2024-01-01T00:00:00';
/** Those without an end roll on. */
const rolling = ['arch', 'gentoo', 'kali', 'slackware15.0'];

export const images: readonly Image[] = rows.map(([name, label, vendor, size, deprecated, letters]) => ({
  id: `linode/${name}`,
  label,
  deprecated,
  size,
  created: released,
  updated: released,
  description: '',
  created_by: 'linode',
  type: 'manual',
  tags: [],
  is_public: true,
  is_shared: false,
  vendor,
  expiry: null,
  eol: rolling.includes(name) ? null : '2030-01-01T00:00:00',
  regions: null,
  status: 'available',
  capabilities: [
    ...(letters.includes('c') ? ['cloud-init'] : []),
    ...(letters.includes('d') ? ['distributed-sites'] : []),
  ],
  image_sharing: null,
}));

const byId = new Map(images.map((image) => [image.id, image]));

export function imageNamed(id: string): Image | undefined {
  return byId.get(id);
}

interface Kernel {
  readonly id: string;
  readonly label: string;
  readonly version: string;
  readonly kvm: boolean;
  readonly architecture: string;
  readonly pvops: boolean;
  readonly deprecated: boolean;
  readonly built: string | null;
}

const kernel = (id: string, label: string, version: string, built: string | null = null): Kernel => ({
  id: `linode/${id}`,
  label,
  version,
  kvm: true,
  architecture: id.endsWith('32bit') ? 'i386' : 'x86_64',
  pvops: true,
  deprecated: false,
  built,
});

export const kernels: readonly Kernel[] = [
  kernel('latest-64bit', 'Latest 64 bit (6.14.3-x86_64-linode168)', '6.14.3', released),
  kernel('latest-2.6-32bit', 'Latest 2.6 (2.6.39.1-linode34)', '2.6.39', released),
  kernel('grub2', 'GRUB 2', '2.06'),
  kernel('direct-disk', 'Direct Disk', ''),
];
