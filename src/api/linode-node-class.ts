// SPDX-License-Identifier: Apache-2.0
// LinodeNodeClass (karpenter.k8s.linode/v1, and v1alpha1 with the same schema): what the machines of a NodePool on Linode
// are made of, in LKE mode and in Instance mode.
import { type ConditionTypes, readyCondition } from './conditions.ts';
import { defineKind, type ObjectOf } from './kind.ts';
import {
  array,
  boolean,
  integer,
  map,
  object,
  quantity,
  type Schema,
  string,
  type TypeOf,
  type ValidationRule,
} from './schema.ts';
import { conditionList } from './shared-schemas.ts';

const id = (description: string) => integer({ description, minimum: 1 });

const reservedKeys: readonly ValidationRule[] = [
  {
    rule: "self.all(x, x=='cpu' || x=='memory' || x=='ephemeral-storage' || x=='pid')",
    message: 'only cpu, memory, ephemeral-storage and pid can be reserved',
  },
];

const reserved = (description: string) =>
  map(string({ maxLength: 30, pattern: '^\\+?(\\d+(\\.\\d*)?|\\.\\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\\d+)?$' }), {
    description,
    maxProperties: 4,
    rules: reservedKeys,
  });

const evictionSignals =
  "['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available']";
const evictionKeys: readonly ValidationRule[] = [
  {
    rule: `self.all(x, x in ${evictionSignals})`,
    message:
      'the signals are memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available',
  },
];
const evictionPattern = '^((\\d{1,2}(\\.\\d{1,2})?|100(\\.0{1,2})?)%|(\\d+(\\.\\d+)?([KMGTPE]i?|[mkMGTPE])?))$';
const thresholds = (description: string) =>
  map(string({ maxLength: 30, pattern: evictionPattern }), { description, maxProperties: 6, rules: evictionKeys });

const kubelet = object({
  description:
    'Settings of the kubelet. In Instance mode they are delivered to the machine; in LKE mode the kubelet is LKE’s own, and they only tell the scheduler what to expect.',
  rules: [
    {
      rule: 'has(self.evictionSoft) ? self.evictionSoft.all(e, has(self.evictionSoftGracePeriod) && e in self.evictionSoftGracePeriod) : true',
      message: 'each signal of evictionSoft needs an evictionSoftGracePeriod',
    },
    {
      rule: 'has(self.evictionSoftGracePeriod) ? self.evictionSoftGracePeriod.all(e, has(self.evictionSoft) && e in self.evictionSoft) : true',
      message: 'each evictionSoftGracePeriod needs a signal in evictionSoft',
    },
  ],
  fields: {
    clusterDNS: array(string({ maxLength: 45 }), {
      description: 'Addresses of the DNS servers that pods use.',
      maxItems: 10,
    }),
    maxPods: integer({ description: 'How many pods a machine takes; 110 unless told.', format: 'int32', minimum: 0 }),
    podsPerCore: integer({
      description: 'How many pods a machine takes per CPU; 0 sets no limit. maxPods is a limit besides.',
      format: 'int32',
      minimum: 0,
    }),
    systemReserved: reserved('Kept for the system of the machine.'),
    kubeReserved: reserved('Kept for the parts of Kubernetes.'),
    evictionHard: thresholds('When the kubelet evicts at once: amounts or percentages by signal.'),
    evictionSoft: thresholds('When the kubelet evicts after a while: amounts or percentages by signal.'),
    evictionSoftGracePeriod: map(string({ maxLength: 30, pattern: '^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$' }), {
      description: 'How long a signal of evictionSoft must last.',
      maxProperties: 6,
      rules: evictionKeys,
    }),
    evictionMaxPodGracePeriod: integer({
      description: 'The longest time, in seconds, that a pod gets when it is evicted for a soft signal.',
      format: 'int32',
    }),
    cpuCFSQuota: boolean({ description: 'Whether CPU limits of containers are enforced.' }),
  },
});
export type LinodeKubelet = TypeOf<typeof kubelet>;

const immutable = (field: string): readonly ValidationRule[] => [
  { rule: 'self == oldSelf', message: `${field} cannot be changed` },
];

const diskSize: Schema<string | number> = {
  openapi: { ...quantity.openapi, description: 'Its size, such as 20Gi.' },
};
const diskFields = {
  diskID: integer({
    description: 'Not to be given: disks are made with their machine. Kept for manifests that carry 0.',
  }),
  size: diskSize,
  label: string({ description: 'Its label; made up unless told.', maxLength: 48 }),
  filesystem: string({
    description: 'What it is formatted as; ext4 unless told.',
    enum: ['raw', 'swap', 'ext3', 'ext4', 'initrd'],
  }),
};

const disk = (description: string) => object({ description, required: ['size'], fields: diskFields });
const dataDevices = ['sdb', 'sdc', 'sdd', 'sde', 'sdf', 'sdg', 'sdh'] as const;

const linodeNodeClassSpec = object({
  description: 'What machines are made of. Everything is optional.',
  rules: [
    {
      rule: '!(has(self.swapSize) && has(self.swap_size)) || self.swapSize == self.swap_size',
      message: 'swapSize and swap_size are two names of one field: give one of them',
    },
    { rule: '!has(self.subnetID) || has(self.vpcID)', message: 'subnetID needs vpcID' },
    {
      rule: '!has(self.userData) || !has(self.bootstrap) || !has(self.bootstrap.join)',
      message: 'userData replaces what bootstrap.join renders: give one of them',
    },
  ],
  fields: {
    image: string({
      description:
        'Instance mode: the image of the machines, such as linode/ubuntu22.04 (which it is unless told) or private/12345. In LKE mode LKE chooses the image.',
      maxLength: 100,
    }),
    authorizedKeys: array(string({ maxLength: 10000 }), {
      description: 'Instance mode: public SSH keys for root.',
      listType: 'set',
      maxItems: 100,
    }),
    authorizedUsers: array(string({ maxLength: 64 }), {
      description: 'Instance mode: users of the Linode account whose SSH keys are put on the machine.',
      listType: 'set',
      maxItems: 100,
    }),
    tags: array(string({ minLength: 3, maxLength: 50 }), {
      description: 'Tags of the machines (and in LKE mode of their node pools). A change is carried out in place.',
      listType: 'set',
      maxItems: 50,
    }),
    firewallID: id('The Cloud Firewall of the machines.'),
    backupsEnabled: boolean({ description: 'Instance mode: whether Linode backs the machines up (for a price).' }),
    diskEncryption: string({ description: 'Whether local disks are encrypted.', enum: ['enabled', 'disabled'] }),
    swapSize: integer({ description: 'Instance mode: size of the swap disk in MB; 512 unless told.', minimum: 0 }),
    swap_size: integer({ description: 'Another name of swapSize.', minimum: 0 }),
    osDisk: disk('Instance mode: the disk with the image; all that the plan has unless told.'),
    dataDisks: object({
      description: 'Instance mode: more disks, by device. The plan’s storage is shared among all of them.',
      fields: Object.fromEntries(dataDevices.map((name) => [name, disk(`The disk at /dev/${name}.`)])) as Record<
        (typeof dataDevices)[number],
        ReturnType<typeof disk>
      >,
    }),
    configuration: object({
      description: 'Instance mode: how the machine boots.',
      fields: { kernel: string({ description: 'The kernel, such as linode/grub2 or linode/latest-64bit.' }) },
    }),
    placementGroup: object({
      description: 'Instance mode: the placement group of the machines.',
      required: ['id'],
      fields: {
        id: id('Its number.'),
        compliant_only: boolean({ description: 'Refuse a machine that would break the rule of the group.' }),
      },
    }),
    vpcID: id('Instance mode: the VPC that machines are put into.'),
    subnetID: id('Instance mode: the subnet of that VPC. Left out, the VPC must have exactly one.'),
    publicNetworking: boolean({
      description:
        'Instance mode: whether a machine in a VPC also gets an interface to the public Internet. Left out, it does not: its VPC address is translated to a public one (NAT 1:1).',
    }),
    ipv6Options: object({
      description: 'Instance mode: IPv6 of the VPC interface.',
      fields: {
        enableSLAAC: boolean({ description: 'Take an address by SLAAC.', rules: immutable('enableSLAAC') }),
        enableRanges: boolean({ description: 'Take a routed range.', rules: immutable('enableRanges') }),
        isPublicIPv6: boolean({
          description: 'Reachable from the Internet by IPv6.',
          rules: immutable('isPublicIPv6'),
        }),
      },
    }),
    kubelet,
    lkeK8sVersion: string({
      description:
        'LKE Enterprise: the Kubernetes version of the nodes, such as v1.31.8+lke1. It must be that of the control plane.',
      maxLength: 64,
    }),
    bootstrap: object({
      description: 'Instance mode: how a machine joins the cluster.',
      fields: {
        join: string({
          description:
            'With which program: kubeadm or k3s. Left out, k3s where the API server says that it is one, else kubeadm.',
          enum: ['kubeadm', 'k3s'],
        }),
        preJoinCommands: array(string({ maxLength: 16384 }), {
          description: 'Commands that run as root before the machine joins.',
          maxItems: 50,
        }),
        postJoinCommands: array(string({ maxLength: 16384 }), {
          description: 'Commands that run as root after it joined.',
          maxItems: 50,
        }),
      },
    }),
    userData: string({
      description:
        'Instance mode: user data of your own instead of what is rendered, with ${…} for what differs by machine: ${NODE_NAME}, ${API_SERVER}, ${CA_DATA}, ${CA_HASH}, ${TOKEN}, ${NODE_LABELS}, ${NODE_TAINTS}, ${KUBERNETES_VERSION}, ${CLUSTER_NAME}, ${REGION}, ${INSTANCE_TYPE}. $${…} is left as ${…}.',
      maxLength: 65535,
    }),
  },
});
export type LinodeNodeClassSpec = TypeOf<typeof linodeNodeClassSpec>;
export type LinodeDisk = NonNullable<LinodeNodeClassSpec['osDisk']>;

const linodeNodeClassStatus = object({
  description: 'Whether the class can be used.',
  fields: {
    linodeImages: array(
      object({
        description: 'An image that machines are made from.',
        required: ['id'],
        fields: {
          id: string({ description: 'Its id.' }),
          label: string({ description: 'Its label.' }),
          deprecated: boolean({ description: 'Linode will remove it.' }),
        },
      }),
      { description: 'Instance mode: the image that the class names, as the account has it.', listType: 'atomic' },
    ),
    conditions: conditionList,
  },
});
export type LinodeNodeClassStatus = TypeOf<typeof linodeNodeClassStatus>;

export const linodeNodeClassConditions = {
  /** The token is accepted, and in LKE mode the cluster was found. */
  accountReady: 'AccountReady',
  /** Everything that the class names exists and can be used in the region. */
  validationSucceeded: 'ValidationSucceeded',
} as const;

export const linodeNodeClassConditionTypes: ConditionTypes = {
  root: readyCondition,
  dependents: [linodeNodeClassConditions.accountReady, linodeNodeClassConditions.validationSucceeded],
};

/** LinodeNodeClass as the API server serves it. */
export const linodeNodeClassKind = defineKind({
  group: 'karpenter.k8s.linode',
  version: 'v1',
  alsoServed: ['v1alpha1'],
  kind: 'LinodeNodeClass',
  plural: 'linodenodeclasses',
  shortNames: ['lnc', 'lncs'],
  categories: ['karpenter'],
  namespaced: false,
  description: 'A LinodeNodeClass says what the machines of a NodePool on Linode (Akamai) are made of.',
  spec: linodeNodeClassSpec,
  specRequired: false,
  status: linodeNodeClassStatus,
  columns: [
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Image', type: 'string', jsonPath: '.spec.image', priority: 1 },
    {
      name: 'Reason',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="ValidationSucceeded")].message',
      priority: 1,
    },
  ],
});
export type LinodeNodeClass = ObjectOf<typeof linodeNodeClassKind>;
