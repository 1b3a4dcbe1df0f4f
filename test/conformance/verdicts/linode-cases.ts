// SPDX-License-Identifier: Apache-2.0
// Verdicts on LinodeNodeClass, in both versions that are served: they have one schema, so the rules are the same.
import { CaseList, condition, without } from './verdict-case.ts';

type Fields = Readonly<Record<string, unknown>>;

const spec = (fields: Fields) => ({ spec: fields });
const kubelet = (fields: Fields) => spec({ kubelet: fields });
const many = (count: number, text = 'item') => Array.from({ length: count }, (_, i) => `${text}-${i}`);

const classes = new CaseList('LinodeNodeClass');

classes.valid('empty', {}, 'nothing is required');
classes.valid('empty-spec', spec({}), 'an empty spec');
classes.invalid('spec-list', { spec: [] }, 'a spec is no list');
classes.valid(
  'full-instance',
  spec({
    image: 'linode/ubuntu22.04',
    authorizedKeys: ['ssh-ed25519 AAAA one'],
    authorizedUsers: ['admin'],
    tags: ['team-a', 'env:prod'],
    firewallID: 7,
    backupsEnabled: true,
    diskEncryption: 'enabled',
    swapSize: 512,
    osDisk: { size: '20Gi', label: 'system', filesystem: 'ext4' },
    dataDisks: { sdb: { size: '10Gi' }, sdh: { size: 1024, filesystem: 'raw', diskID: 0 } },
    configuration: { kernel: 'linode/grub2' },
    placementGroup: { id: 12, compliant_only: true },
    vpcID: 3,
    subnetID: 4,
    publicNetworking: true,
    ipv6Options: { enableSLAAC: true, enableRanges: false, isPublicIPv6: true },
    bootstrap: { join: 'k3s', preJoinCommands: ['apt-get update'], postJoinCommands: ['true'] },
  }),
  'everything of Instance mode at once',
);
classes.valid(
  'full-lke',
  spec({ tags: ['lke'], firewallID: 1, diskEncryption: 'disabled', lkeK8sVersion: 'v1.31.8+lke1' }),
  'everything of LKE mode at once',
);
classes.valid('unknown-field', spec({ linodeType: 'g6-standard-2' }), 'fields that nobody knows are dropped');

classes.valid('image-100', spec({ image: 'i'.repeat(100) }), 'an image may have 100 characters');
classes.invalid('image-101', spec({ image: 'i'.repeat(101) }), 'and no more');
classes.invalid('image-number', spec({ image: 22 }), 'an image is text');
classes.invalid('keys-twice', spec({ authorizedKeys: ['key', 'key'] }), 'each key is given once');
classes.invalid('keys-101', spec({ authorizedKeys: many(101) }), 'a hundred keys are enough');
classes.invalid('key-long', spec({ authorizedKeys: ['k'.repeat(10_001)] }), 'a key has an end');
classes.invalid('users-twice', spec({ authorizedUsers: ['me', 'me'] }), 'each user is named once');
classes.invalid('user-65', spec({ authorizedUsers: ['u'.repeat(65)] }), 'names of users are short');
classes.invalid('users-101', spec({ authorizedUsers: many(101) }), 'and at most a hundred');
classes.valid('tag-3', spec({ tags: ['abc'] }), 'a tag has three characters at least');
classes.invalid('tag-2', spec({ tags: ['ab'] }), 'and not two');
classes.valid('tag-50', spec({ tags: ['t'.repeat(50)] }), 'fifty at most');
classes.invalid('tag-51', spec({ tags: ['t'.repeat(51)] }), 'and no more');
classes.invalid('tags-twice', spec({ tags: ['team', 'team'] }), 'each tag is given once');
classes.valid('tags-50', spec({ tags: many(50) }), 'there may be fifty tags');
classes.invalid('tags-51', spec({ tags: many(51) }), 'and no more');

for (const field of ['firewallID', 'vpcID']) {
  const name = field.toLowerCase();
  classes.valid(`${name}-1`, spec({ [field]: 1 }), 'numbers of things begin with one');
  classes.invalid(`${name}-0`, spec({ [field]: 0 }), 'nothing has the number 0');
  classes.invalid(`${name}-text`, spec({ [field]: '1' }), 'a number is no text');
}
classes.valid('subnet', spec({ vpcID: 3, subnetID: 4 }), 'a subnet of a VPC');
classes.invalid('subnet-no-vpc', spec({ subnetID: 4 }), 'a subnet needs its VPC');
classes.invalid('subnet-0', spec({ vpcID: 3, subnetID: 0 }), 'and a number that is one');
classes.invalid('backups-text', spec({ backupsEnabled: 'true' }), 'a truth value, not a word');
classes.invalid('encryption-true', spec({ diskEncryption: true }), 'a word, not a truth value');
classes.invalid('encryption-on', spec({ diskEncryption: 'on' }), 'and one of two');

classes.valid('swap-0', spec({ swapSize: 0 }), 'no swap at all');
classes.invalid('swap-negative', spec({ swapSize: -1 }), 'less than none cannot be');
classes.valid('swap-other-name', spec({ swap_size: 256 }), 'the other name of the field');
classes.invalid('swap-other-negative', spec({ swap_size: -1 }), 'with the same bound');
classes.valid('swap-both-same', spec({ swapSize: 256, swap_size: 256 }), 'both names with one value');
classes.invalid('swap-both', spec({ swapSize: 256, swap_size: 512 }), 'but not with two');

for (const [name, disk] of [
  ['os', (fields: Fields) => spec({ osDisk: fields })],
  ['data', (fields: Fields) => spec({ dataDisks: { sdc: fields } })],
] as const) {
  classes.valid(`${name}-disk-bytes`, disk({ size: 1_073_741_824 }), 'a size in bytes');
  classes.invalid(`${name}-disk-no-size`, disk({ label: 'a' }), 'a disk has a size');
  classes.invalid(`${name}-disk-words`, disk({ size: 'large' }), 'which is a quantity');
  classes.valid(`${name}-disk-label-48`, disk({ size: '1Gi', label: 'l'.repeat(48) }), 'a label has 48 characters');
  classes.invalid(`${name}-disk-label-49`, disk({ size: '1Gi', label: 'l'.repeat(49) }), 'and no more');
  classes.invalid(`${name}-disk-xfs`, disk({ size: '1Gi', filesystem: 'xfs' }), 'Linode cannot make every filesystem');
  classes.invalid(`${name}-disk-id-text`, disk({ size: '1Gi', diskID: '0' }), 'the number that is not to be given');
}
classes.valid('data-disk-sdi', spec({ dataDisks: { sdi: {} } }), 'there is no such device: the field is dropped');
classes.invalid('configuration-text', spec({ configuration: 'linode/grub2' }), 'a configuration is an object');
classes.invalid('kernel-number', spec({ configuration: { kernel: 6 } }), 'a kernel is text');
classes.invalid(
  'placement-no-id',
  spec({ placementGroup: { compliant_only: true } }),
  'a group is named by its number',
);
classes.invalid('placement-0', spec({ placementGroup: { id: 0 } }), 'which is at least one');
classes.invalid('placement-compliant', spec({ placementGroup: { id: 1, compliant_only: 'no' } }), 'a truth value');
classes.valid('version-64', spec({ lkeK8sVersion: 'v'.repeat(64) }), 'a version may be long');
classes.invalid('version-65', spec({ lkeK8sVersion: 'v'.repeat(65) }), 'but not endless');

classes.valid('join-kubeadm', spec({ bootstrap: { join: 'kubeadm' } }), 'one way to join');
classes.invalid('join-other', spec({ bootstrap: { join: 'rke2' } }), 'there are two');
classes.invalid('commands-51', spec({ bootstrap: { preJoinCommands: many(51) } }), 'fifty commands before');
classes.invalid('commands-after-51', spec({ bootstrap: { postJoinCommands: many(51) } }), 'and fifty after');
classes.invalid('command-long', spec({ bootstrap: { preJoinCommands: ['c'.repeat(16_385)] } }), 'each has an end');
classes.invalid('command-after-long', spec({ bootstrap: { postJoinCommands: ['c'.repeat(16_385)] } }), 'of these too');
classes.valid('user-data', spec({ userData: '#!/bin/sh\n${NODE_NAME}' }), 'user data of their own');
classes.valid('user-data-most', spec({ userData: 'u'.repeat(65_535) }), 'as much as Linode takes');
classes.invalid('user-data-long', spec({ userData: 'u'.repeat(65_536) }), 'and no more');
classes.valid(
  'user-data-commands',
  spec({ userData: '#!/bin/sh', bootstrap: { preJoinCommands: ['true'] } }),
  'what does not render a way to join may stay',
);
classes.invalid(
  'user-data-join',
  spec({ userData: '#!/bin/sh', bootstrap: { join: 'k3s' } }),
  'user data and a way to join exclude each other',
);

classes.valid(
  'kubelet-full',
  kubelet({
    clusterDNS: ['10.0.0.10', 'fd00::10'],
    maxPods: 0,
    podsPerCore: 0,
    systemReserved: { cpu: '100m', memory: '.5Gi', 'ephemeral-storage': '1e9', pid: '+1000' },
    kubeReserved: { cpu: '1', memory: '1.' },
    evictionHard: { 'memory.available': '5%', 'nodefs.available': '99.99%', 'nodefs.inodesFree': '100.00%' },
    evictionSoft: { 'imagefs.available': '1.5Gi', 'imagefs.inodesFree': '5k', 'pid.available': '1000' },
    evictionSoftGracePeriod: { 'imagefs.available': '1m30s', 'imagefs.inodesFree': '1.5h', 'pid.available': '100µs' },
    evictionMaxPodGracePeriod: -1,
    cpuCFSQuota: false,
  }),
  'every setting of the kubelet',
);
classes.invalid('kubelet-dns-46', kubelet({ clusterDNS: ['d'.repeat(46)] }), 'no address is as long as that');
classes.invalid('kubelet-dns-11', kubelet({ clusterDNS: many(11) }), 'nor are there so many servers');
classes.invalid('kubelet-pods-negative', kubelet({ maxPods: -1 }), 'pods are counted from none');
classes.invalid('kubelet-pods-int32', kubelet({ maxPods: 2_147_483_648 }), 'with 32 bits');
classes.invalid('kubelet-per-core-negative', kubelet({ podsPerCore: -1 }), 'also per core');
classes.invalid('kubelet-per-core-int32', kubelet({ podsPerCore: 2_147_483_648 }), 'with as many bits');
classes.invalid('kubelet-grace-int32', kubelet({ evictionMaxPodGracePeriod: 2_147_483_648 }), 'so is a grace period');
classes.invalid('kubelet-quota-text', kubelet({ cpuCFSQuota: 'false' }), 'a truth value');
for (const field of ['systemReserved', 'kubeReserved']) {
  const name = field.toLowerCase();
  classes.invalid(`${name}-other`, kubelet({ [field]: { 'nvidia.com/gpu': '1' } }), 'four things can be reserved');
  classes.invalid(`${name}-negative`, kubelet({ [field]: { cpu: '-1' } }), 'amounts are not negative');
  classes.invalid(`${name}-words`, kubelet({ [field]: { memory: 'some' } }), 'and quantities');
  classes.invalid(`${name}-empty`, kubelet({ [field]: { memory: '' } }), 'not empty ones');
  classes.invalid(`${name}-number`, kubelet({ [field]: { cpu: 1 } }), 'as text');
  classes.invalid(`${name}-long`, kubelet({ [field]: { cpu: '1'.repeat(31) } }), 'of thirty characters');
}
for (const field of ['evictionHard', 'evictionSoft']) {
  const name = field.toLowerCase();
  // Whatever is said of soft signals here, a grace period is not what is missing.
  const grace = field === 'evictionSoft' && { evictionSoftGracePeriod: { 'memory.available': '1m' } };
  const signal = (amount: string) => kubelet({ [field]: { 'memory.available': amount }, ...grace });
  classes.valid(`${name}-amount`, signal('100Mi'), 'an amount');
  classes.valid(`${name}-share`, signal('7.25%'), 'a share');
  classes.valid(`${name}-all`, signal('100%'), 'even all of it');
  classes.invalid(`${name}-more-than-all`, signal('100.01%'), 'but not more');
  classes.invalid(`${name}-three-digits`, signal('101%'), 'than that');
  classes.invalid(`${name}-negative`, signal('-5%'), 'nor less than nothing');
  classes.invalid(`${name}-exponent`, signal('1e9'), 'powers of ten are not read by every kubelet');
  classes.invalid(`${name}-long`, signal('1'.repeat(31)), 'amounts are short');
}
classes.invalid('evictionhard-other', kubelet({ evictionHard: { 'cpu.available': '5%' } }), 'there are six signals');
classes.invalid(
  'evictionsoft-no-grace',
  kubelet({ evictionSoft: { 'memory.available': '5%' } }),
  'a soft signal needs a grace period',
);
classes.invalid(
  'evictionsoft-other-grace',
  kubelet({
    evictionSoft: { 'memory.available': '5%' },
    evictionSoftGracePeriod: { 'nodefs.available': '1m' },
  }),
  'its own, not that of another',
);
classes.invalid(
  'grace-no-signal',
  kubelet({ evictionSoftGracePeriod: { 'memory.available': '1m' } }),
  'and a grace period its signal',
);
for (const [name, time] of [
  ['days', '1d'],
  ['no-unit', '30'],
  ['negative', '-1m'],
  ['empty', ''],
  ['long', `${'1'.repeat(30)}s`],
] as const)
  classes.invalid(
    `grace-${name}`,
    kubelet({ evictionSoft: { 'pid.available': '5%' }, evictionSoftGracePeriod: { 'pid.available': time } }),
    'a grace period is a duration as Go writes it',
  );

classes.validUpdate(
  'update',
  spec({ image: 'a', tags: ['one'] }),
  spec({ image: 'b' }),
  'nearly everything may change',
);
classes.invalidUpdate('update-subnet', spec({ vpcID: 3, subnetID: 4 }), spec({ subnetID: 4 }), 'if rules still hold');
classes.invalidUpdate('update-tag', spec({ tags: ['one'] }), spec({ tags: ['a'] }), 'and bounds as well');
for (const field of ['enableSLAAC', 'enableRanges', 'isPublicIPv6']) {
  const ipv6 = (value: boolean) => spec({ ipv6Options: { [field]: value } });
  const name = `ipv6-${field.toLowerCase()}`;
  classes.invalid(`${name}-text`, spec({ ipv6Options: { [field]: 'true' } }), 'a truth value');
  classes.validUpdate(`${name}-same`, ipv6(true), { ...ipv6(true), metadata: { labels: { a: 'b' } } }, 'it may stay');
  classes.invalidUpdate(`${name}-on`, ipv6(false), ipv6(true), 'it cannot be turned on');
  classes.invalidUpdate(`${name}-off`, ipv6(true), ipv6(false), 'nor off');
  classes.validUpdate(`${name}-given`, spec({}), ipv6(true), 'but given where it was not');
  classes.validUpdate(`${name}-left-out`, ipv6(true), spec({}), 'and left out');
}
classes.validStatus(
  'status',
  {},
  {
    linodeImages: [{ id: 'linode/ubuntu22.04', label: 'Ubuntu 22.04', deprecated: false }],
    conditions: [condition({ type: 'AccountReady' }), condition({ type: 'ValidationSucceeded', status: 'False' })],
  },
  'what the controller found',
);
classes.invalidStatus('status-image-no-id', {}, { linodeImages: [{ label: 'a' }] }, 'an image has an id');
classes.invalidStatus(
  'status-no-reason',
  {},
  { conditions: [without(condition(), 'reason')] },
  'a condition needs a reason',
);

// Every rule and a pattern of each kind once more, by the other version.
const alpha = new CaseList('LinodeNodeClass', 'karpenter.k8s.linode/v1alpha1');
alpha.valid('empty', {}, 'nothing is required');
alpha.valid(
  'full',
  spec({
    image: 'linode/debian12',
    vpcID: 3,
    subnetID: 4,
    swap_size: 0,
    osDisk: { size: '20Gi' },
    bootstrap: { join: 'kubeadm' },
    kubelet: { systemReserved: { cpu: '100m' }, evictionHard: { 'memory.available': '100Mi' } },
  }),
  'much at once',
);
alpha.invalid('subnet-no-vpc', spec({ subnetID: 4 }), 'a subnet needs its VPC');
alpha.invalid('swap-both', spec({ swapSize: 256, swap_size: 512 }), 'one field, one value');
alpha.invalid('user-data-join', spec({ userData: 'x', bootstrap: { join: 'k3s' } }), 'one way to join');
alpha.invalid('reserved-other', kubelet({ kubeReserved: { gpu: '1' } }), 'four things can be reserved');
alpha.invalid('reserved-words', kubelet({ kubeReserved: { cpu: 'one' } }), 'in quantities');
alpha.invalid('evictionhard-other', kubelet({ evictionHard: { swap: '1%' } }), 'there are six signals');
alpha.invalid('evictionhard-words', kubelet({ evictionHard: { 'pid.available': 'few' } }), 'with amounts or shares');
alpha.invalid('evictionsoft-no-grace', kubelet({ evictionSoft: { 'pid.available': '5%' } }), 'a signal has its time');
alpha.invalid(
  'grace-no-signal',
  kubelet({ evictionSoftGracePeriod: { 'pid.available': '1m' } }),
  'and a time its signal',
);
alpha.invalid('disk-words', spec({ osDisk: { size: 'large' } }), 'a size is a quantity');
alpha.invalid('tags-twice', spec({ tags: ['team', 'team'] }), 'each tag is given once');
alpha.validUpdate('update', spec({ image: 'a' }), spec({ image: 'b' }), 'an image may change');
for (const field of ['enableSLAAC', 'enableRanges', 'isPublicIPv6'])
  alpha.invalidUpdate(
    `update-${field.toLowerCase()}`,
    spec({ ipv6Options: { [field]: true } }),
    spec({ ipv6Options: { [field]: false } }),
    'IPv6 of a class stays as it is',
  );
alpha.validStatus('status', {}, { conditions: [condition()] }, 'the status by the other version');

export const linodeNodeClassCases = [...classes.cases, ...alpha.cases];
