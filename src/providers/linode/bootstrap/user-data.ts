// SPDX-License-Identifier: Apache-2.0
// The user data by which a new Linode joins the cluster: a #cloud-config that writes a bootstrap kubeconfig and the
// settings of the kubelet, installs what is missing and runs kubeadm or k3s. Or the user's own, with blanks filled in.
import { stringify } from 'yaml';
import type { LinodeKubelet, LinodeNodeClassSpec } from '../../../api/linode-node-class.ts';
import type { Taint } from '../../../api/shared-schemas.ts';
import { KarpenterError } from '../../../base/errors.ts';
import type { ClusterInfo } from './cluster-info.ts';

export interface UserDataOptions {
  readonly cluster: ClusterInfo;
  readonly clusterName: string;
  readonly region: string;
  readonly instanceType: string;
  /** `id.secret`. */
  readonly token: string;
  readonly nodeName: string;
  readonly labels: Readonly<Record<string, string>>;
  /** All that the node has from its birth. */
  readonly taints: readonly Taint[];
  readonly spec: LinodeNodeClassSpec;
  /** As the scheduler reckons with it: what the kubelet reserves must be the same. */
  readonly kubeReserved: Readonly<Record<string, string>>;
  readonly maxPods: number;
}

/** User data cannot be made as the NodeClass asks. */
export class UserDataError extends KarpenterError {
  constructor(message: string) {
    super('KRP_LINODE_USER_DATA', message);
  }
}

/** What Linode takes, before it is encoded. */
const largest = 65_535;
const folder = '/etc/karpenter';
/** Stands where the id of the Linode goes, which only the machine itself can know. */
const idMark = 'LINODE_ID';
const providerId = `linode://${idMark}`;

interface File {
  readonly path: string;
  readonly permissions: string;
  readonly content: string;
}

/** The user data, not yet encoded. Throws UserDataError when it is too large or names a blank that nobody fills. */
export function renderUserData(options: UserDataOptions): string {
  const { spec, cluster } = options;
  const text =
    spec.userData === undefined
      ? (spec.bootstrap?.join ?? cluster.distribution) === 'k3s'
        ? k3s(options)
        : kubeadm(options)
      : fill(spec.userData, options);
  const size = Buffer.byteLength(text);
  if (size > largest) throw new UserDataError(`the user data has ${size} bytes; Linode takes ${largest}`);
  return text;
}

function kubeadm(options: UserDataOptions): string {
  const { spec } = options;
  const join = `kubeadm join --config ${folder}/join.yaml`;
  const after = commandsOf(spec.bootstrap?.postJoinCommands);
  return cloudConfig(options, {
    files: [
      file(`${folder}/bootstrap.conf`, bootstrapKubeconfig(options)),
      file(`${folder}/join.yaml`, joinConfiguration(options)),
      file(`${folder}/patches/kubeletconfiguration+merge.yaml`, stringify(kubeletConfiguration(options))),
      script(`${folder}/prepare.sh`, prepareKubeadm(options)),
      ...(after ? [script(`${folder}/after.sh`, after)] : []),
    ],
    run: `${folder}/prepare.sh && ${join} && rm -f ${folder}/bootstrap.conf ${folder}/join.yaml${after ? ` && ${folder}/after.sh` : ''}`,
  });
}

function k3s(options: UserDataOptions): string {
  const { cluster, token, nodeName, spec } = options;
  const after = commandsOf(spec.bootstrap?.postJoinCommands);
  const config = {
    server: cluster.server,
    token: `K10${cluster.caFileHash}::${token}`,
    'node-name': nodeName,
    'node-label': Object.entries(options.labels).map(([key, value]) => `${key}=${value}`),
    'node-taint': options.taints.map(taintText),
    'kubelet-arg': [`provider-id=${providerId}`, ...kubeletArguments(options)],
  };
  const version = cluster.version ? `INSTALL_K3S_VERSION='${cluster.version}' ` : '';
  const install = `(command -v k3s >/dev/null || curl -sfL https://get.k3s.io | ${version}INSTALL_K3S_SKIP_START=true sh -s - agent)`;
  return cloudConfig(options, {
    files: [
      file('/etc/rancher/k3s/config.yaml', stringify(config)),
      script(`${folder}/prepare.sh`, [...ownId('/etc/rancher/k3s/config.yaml'), ...before(options)].join('\n')),
      ...(after ? [script(`${folder}/after.sh`, after)] : []),
    ],
    run: `${folder}/prepare.sh && ${install} && systemctl enable --now k3s-agent${after ? ` && ${folder}/after.sh` : ''}`,
  });
}

function cloudConfig({ nodeName }: UserDataOptions, { files, run }: { files: readonly File[]; run: string }): string {
  const config = {
    hostname: nodeName,
    preserve_hostname: false,
    ssh_pwauth: false,
    write_files: files,
    runcmd: [run],
  };
  return `#cloud-config\n${stringify(config, { lineWidth: 0 })}`;
}

/** A kubeconfig with the token: by it the kubelet asks for its certificate. */
function bootstrapKubeconfig({ cluster, token, clusterName }: UserDataOptions): string {
  const user = 'tls-bootstrap-token-user';
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: clusterName,
        cluster: {
          server: cluster.server,
          'certificate-authority-data': Buffer.from(cluster.ca).toString('base64'),
        },
      },
    ],
    users: [{ name: user, user: { token } }],
    contexts: [{ name: user, context: { cluster: clusterName, user } }],
    'current-context': user,
  });
}

function joinConfiguration(options: UserDataOptions): string {
  const { cluster, token, nodeName, labels, taints } = options;
  const args: Record<string, string> = {
    'node-labels': Object.entries(labels)
      .map(([key, value]) => `${key}=${value}`)
      .join(','),
    'provider-id': providerId,
  };
  // A list of names and values since v1beta4, which kubeadm speaks from 1.31 on.
  const isList = minorOf(cluster.version) >= 31;
  return stringify({
    apiVersion: `kubeadm.k8s.io/${isList ? 'v1beta4' : 'v1beta3'}`,
    kind: 'JoinConfiguration',
    discovery: { file: { kubeConfigPath: `${folder}/bootstrap.conf` }, tlsBootstrapToken: token },
    nodeRegistration: {
      name: nodeName,
      criSocket: 'unix:///run/containerd/containerd.sock',
      taints: taints.map(({ key, value, effect }) => ({ key, ...(value ? { value } : {}), effect })),
      kubeletExtraArgs: isList ? Object.entries(args).map(([name, value]) => ({ name, value })) : args,
    },
    patches: { directory: `${folder}/patches` },
  });
}

/** Thresholds of the kubelet unless told: naming one switches the others off, so all are named. */
const usualEviction = {
  'memory.available': '100Mi',
  'nodefs.available': '10%',
  'nodefs.inodesFree': '5%',
  'imagefs.available': '15%',
};

function kubeletConfiguration({ spec, kubeReserved, maxPods }: UserDataOptions): object {
  const kubelet: LinodeKubelet = spec.kubelet ?? {};
  const { clusterDNS, podsPerCore, systemReserved, evictionSoft, evictionSoftGracePeriod, cpuCFSQuota } = kubelet;
  const { evictionMaxPodGracePeriod } = kubelet;
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    maxPods,
    ...(podsPerCore ? { podsPerCore } : {}),
    ...(clusterDNS?.length ? { clusterDNS } : {}),
    kubeReserved,
    ...(systemReserved ? { systemReserved } : {}),
    evictionHard: { ...usualEviction, ...kubelet.evictionHard },
    ...(evictionSoft ? { evictionSoft, evictionSoftGracePeriod } : {}),
    ...(evictionMaxPodGracePeriod === undefined ? {} : { evictionMaxPodGracePeriod }),
    ...(cpuCFSQuota === undefined ? {} : { cpuCFSQuota }),
    ...((spec.swapSize ?? spec.swap_size ?? 1) > 0 ? { failSwapOn: false } : {}),
  };
}

/** The same as flags, for k3s. */
function kubeletArguments({ spec, kubeReserved, maxPods }: UserDataOptions): string[] {
  const { kubelet = {} } = spec;
  const pairs = (of: Readonly<Record<string, string>>, by: string): string =>
    Object.entries(of)
      .map(([key, value]) => `${key}${by}${value}`)
      .join(',');
  return [
    `max-pods=${maxPods}`,
    `kube-reserved=${pairs(kubeReserved, '=')}`,
    ...(kubelet.podsPerCore ? [`pods-per-core=${kubelet.podsPerCore}`] : []),
    ...(kubelet.clusterDNS?.length ? [`cluster-dns=${kubelet.clusterDNS.join(',')}`] : []),
    ...(kubelet.systemReserved ? [`system-reserved=${pairs(kubelet.systemReserved, '=')}`] : []),
    `eviction-hard=${pairs({ ...usualEviction, ...kubelet.evictionHard }, '<')}`,
    ...(kubelet.evictionSoft ? [`eviction-soft=${pairs(kubelet.evictionSoft, '<')}`] : []),
    ...(kubelet.evictionSoftGracePeriod
      ? [`eviction-soft-grace-period=${pairs(kubelet.evictionSoftGracePeriod, '=')}`]
      : []),
    ...(kubelet.evictionMaxPodGracePeriod === undefined
      ? []
      : [`eviction-max-pod-grace-period=${kubelet.evictionMaxPodGracePeriod}`]),
    ...(kubelet.cpuCFSQuota === undefined ? [] : [`cpu-cfs-quota=${kubelet.cpuCFSQuota}`]),
    'fail-swap-on=false',
  ];
}

/** Asks Linode's metadata service which Linode this is, and writes it where the mark stands. */
function ownId(path: string): string[] {
  const service = 'http://169.254.169.254/v1';
  return [
    'set -euo pipefail',
    `session=$(curl -sf --retry 30 --retry-all-errors -X PUT -H 'Metadata-Token-Expiry-Seconds: 300' ${service}/token)`,
    `id=$(curl -sf --retry 30 --retry-all-errors -H "Metadata-Token: $session" -H 'Accept: application/json' ${service}/instance | grep -oE '"id": *[0-9]+' | head -n1 | tr -dc 0-9)`,
    `sed -i "s/${idMark}/$id/" ${path}`,
  ];
}

function before({ spec }: UserDataOptions): string[] {
  return [...(spec.bootstrap?.preJoinCommands ?? [])];
}

function prepareKubeadm(options: UserDataOptions): string {
  const repository = `https://pkgs.k8s.io/core:/stable:/v1.${minorOf(options.cluster.version)}/deb/`;
  return [
    ...ownId(`${folder}/join.yaml`),
    ...before(options),
    'swapoff -a || true',
    "printf 'overlay\\nbr_netfilter\\n' > /etc/modules-load.d/kubernetes.conf",
    'modprobe overlay && modprobe br_netfilter',
    "printf 'net.ipv4.ip_forward=1\\nnet.bridge.bridge-nf-call-iptables=1\\nnet.bridge.bridge-nf-call-ip6tables=1\\n' > /etc/sysctl.d/99-kubernetes.conf",
    'sysctl -q --system',
    // An image of your own may have it all; a stock image has nothing.
    'if ! command -v containerd >/dev/null || ! command -v kubeadm >/dev/null; then',
    '  export DEBIAN_FRONTEND=noninteractive',
    '  apt-get update -q && apt-get install -qy ca-certificates curl gpg containerd',
    '  mkdir -p /etc/containerd /etc/apt/keyrings',
    "  containerd config default | sed 's/SystemdCgroup = false/SystemdCgroup = true/' > /etc/containerd/config.toml",
    '  systemctl restart containerd',
    `  curl -sfL ${repository}Release.key | gpg --dearmor --yes -o /etc/apt/keyrings/kubernetes.gpg`,
    `  echo 'deb [signed-by=/etc/apt/keyrings/kubernetes.gpg] ${repository} /' > /etc/apt/sources.list.d/kubernetes.list`,
    '  apt-get update -q && apt-get install -qy kubelet kubeadm',
    'fi',
    'systemctl enable kubelet',
  ].join('\n');
}

function commandsOf(commands: readonly string[] | undefined): string {
  return commands?.length ? ['set -euo pipefail', ...commands].join('\n') : '';
}

function file(path: string, content: string): File {
  return { path, permissions: '0600', content };
}

function script(path: string, content: string): File {
  return { path, permissions: '0700', content: `#!/bin/bash\n${content}\n` };
}

function taintText({ key, value, effect }: Taint): string {
  return `${key}${value ? `=${value}` : ''}:${effect}`;
}

/** 34 of v1.34.1. */
function minorOf(version: string): number {
  return Number(/^v?\d+\.(\d+)/.exec(version)?.[1] ?? 34);
}

/** The user's own text with its blanks filled in. A blank that nobody knows is a mistake, not a text. */
function fill(template: string, options: UserDataOptions): string {
  const { cluster } = options;
  const blanks: Readonly<Record<string, string>> = {
    NODE_NAME: options.nodeName,
    API_SERVER: cluster.server,
    CA_DATA: Buffer.from(cluster.ca).toString('base64'),
    CA_HASH: cluster.caHash,
    TOKEN: options.token,
    NODE_LABELS: Object.entries(options.labels)
      .map(([key, value]) => `${key}=${value}`)
      .join(','),
    NODE_TAINTS: options.taints.map(taintText).join(','),
    KUBERNETES_VERSION: cluster.version,
    CLUSTER_NAME: options.clusterName,
    REGION: options.region,
    INSTANCE_TYPE: options.instanceType,
  };
  return template.replace(/\$(\$?)\{([A-Za-z_]+)\}/g, (_whole, escaped: string, name: string) => {
    if (escaped) return `\${${name}}`;
    const value = blanks[name];
    if (value === undefined) {
      throw new UserDataError(
        `userData names \${${name}}, which is not one of ${Object.keys(blanks).join(', ')}; write $\${${name}} to keep it`,
      );
    }
    return value;
  });
}
