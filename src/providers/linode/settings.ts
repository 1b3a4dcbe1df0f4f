// SPDX-License-Identifier: Apache-2.0
// The settings of the Linode provider. The token comes from the environment only: a flag would show in the process list.
import { KarpenterError } from '../../base/errors.ts';
import { bool, decimal, duration, oneOf, text } from '../../runtime/setting-types.ts';
import type { SettingsOf } from '../../runtime/settings.ts';

export const linodeSettings = {
  linodeToken: text({
    env: 'LINODE_TOKEN',
    chart: ['apiToken'],
    secret: true,
    default: '',
    help: 'Personal access token of the Linode account: read and write for Linodes and Kubernetes, read for the rest.',
  }),
  linodeUrl: text({
    env: 'LINODE_URL',
    chart: ['apiURL'],
    default: 'https://api.linode.com',
    help: 'Where the Linode API is, without the version.',
  }),
  linodeApiVersion: text({
    env: 'LINODE_API_VERSION',
    chart: ['apiVersion'],
    default: 'v4beta',
    help: 'Version of the Linode API. Only v4beta says which tier a cluster has.',
  }),
  linodeCa: text({
    env: 'LINODE_CA',
    chart: ['settings.linode.ca'],
    default: '',
    help: 'File with the certificate authorities to trust for the Linode API, in PEM.',
  }),
  linodeDebug: bool({
    env: 'LINODE_DEBUG',
    chart: ['linodeDebug'],
    default: false,
    help: 'Log every call to the Linode API: method, path, status and how long it took. Neither bodies nor the token.',
  }),
  linodeClientTimeout: text({
    env: 'LINODE_CLIENT_TIMEOUT',
    chart: ['settings.linode.clientTimeout'],
    default: '10',
    help: 'How long one call to the Linode API may take, in seconds (10) or as a duration (10s).',
  }),
  linodeRegion: text({
    env: 'LINODE_REGION',
    chart: ['region'],
    default: '',
    help: 'Region of the machines. Needed in Instance mode; in LKE mode it is the region of the cluster.',
  }),
  clusterRegion: text({
    flag: 'cluster-region',
    env: 'CLUSTER_REGION',
    chart: ['settings.clusterRegion'],
    default: '',
    help: '`LINODE_REGION` by the name that the upstream Linode provider has for it.',
  }),
  linodeMode: oneOf({
    flag: 'mode',
    env: 'KARPENTER_MODE',
    chart: ['settings.mode'],
    default: 'lke',
    values: ['lke', 'instance'],
    help: 'How nodes are made on Linode: as node pools of an LKE cluster, or as Linodes that join a cluster of your own.',
  }),
  lkeCreateDeadline: duration({
    flag: 'lke-create-deadline',
    env: 'LKE_CREATE_DEADLINE',
    chart: ['settings.lkeCreateDeadline'],
    default: '10s',
    help: 'How long a launch waits for LKE to name the Linode of a new node pool before it says that it waits. 0 is 10s.',
  }),
  lkeTagVerificationTimeout: duration({
    flag: 'lke-tag-verification-timeout',
    env: 'LKE_TAG_VERIFICATION_TIMEOUT',
    chart: ['settings.lkeTagVerificationTimeout'],
    default: '4s',
    help: 'Accepted for the upstream provider’s manifests. A node pool is made with its tags, so there is nothing to verify.',
  }),
  lkeRetryDelay: duration({
    flag: 'lke-retry-delay',
    env: 'LKE_RETRY_DELAY',
    chart: ['settings.lkeRetryDelay'],
    default: '2s',
    help: 'How often new node pools are looked at while launches wait: one call for all of them.',
  }),
  lkeSharePools: bool({
    flag: 'lke-share-pools',
    env: 'LKE_SHARE_POOLS',
    chart: ['settings.lkeSharePools'],
    default: false,
    help: 'NodeClaims that need the same share an LKE node pool, instead of one each: for clusters that may not have as many pools as nodes.',
  }),
  vmMemoryOverheadPercent: decimal({
    flag: 'vm-memory-overhead-percent',
    env: 'VM_MEMORY_OVERHEAD_PERCENT',
    chart: ['settings.vmMemoryOverheadPercent'],
    default: 0.075,
    min: 0,
    max: 0.99,
    help: 'The part of a machine’s memory that its Node does not show. What Nodes really show is learned and goes before it.',
  }),
  disableDryRun: bool({
    flag: 'disable-dry-run',
    env: 'DISABLE_DRY_RUN',
    chart: ['settings.disableDryRun'],
    default: false,
    help: 'Do not look up in the account what a LinodeNodeClass names (image, firewall, VPC, …) before it is used.',
  }),
};
export type LinodeSettings = SettingsOf<typeof linodeSettings>;

/** Settings of the Linode provider that are wrong, as opposed to missing. */
export class LinodeSettingsError extends KarpenterError {
  constructor(message: string) {
    super('KRP_LINODE_SETTINGS', message);
  }
}

/** What the settings come to. */
export interface LinodeConfiguration {
  readonly token: string;
  readonly url: string;
  readonly apiVersion: string;
  readonly ca: string;
  readonly timeoutMs: number;
  /** Every call is logged. */
  readonly debug: boolean;
  /** '' where it is to be discovered. */
  readonly region: string;
  readonly mode: 'lke' | 'instance';
  readonly clusterName: string;
  /** '' where it is not known. */
  readonly clusterEndpoint: string;
  readonly createDeadlineMs: number;
  readonly retryDelayMs: number;
  /** NodeClaims share node pools. */
  readonly sharePools: boolean;
  readonly memoryOverhead: number;
  readonly lookUp: boolean;
}

type Given = LinodeSettings & { readonly clusterName: string; readonly clusterEndpoint: string };

/** What is missing before anything can be done, as a sentence; undefined when nothing is. */
export function missingLinodeSetting(given: Given): string | undefined {
  if (given.linodeToken.trim() === '')
    return 'LINODE_TOKEN is not set: it holds the access token of the Linode account';
  if (given.clusterName.trim() === '') {
    return given.linodeMode === 'lke'
      ? 'CLUSTER_NAME is not set: in LKE mode it is the label of the LKE cluster'
      : 'CLUSTER_NAME is not set: machines are marked with it';
  }
  if (given.linodeMode === 'instance' && regionOf(given) === '') {
    return 'LINODE_REGION is not set: Instance mode cannot find it out';
  }
  return undefined;
}

/** The configuration that settings give. Throws LinodeSettingsError for what cannot be meant. */
export function linodeConfiguration(given: Given): LinodeConfiguration {
  const url = given.linodeUrl.trim().replace(/\/+$/, '');
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new LinodeSettingsError(`LINODE_URL must be a URL such as https://api.linode.com, not ${given.linodeUrl}`);
  }
  if (!/^[a-z0-9]+$/.test(given.linodeApiVersion)) {
    throw new LinodeSettingsError(`LINODE_API_VERSION must be a version such as v4beta, not ${given.linodeApiVersion}`);
  }
  const { clusterEndpoint } = given;
  if (clusterEndpoint !== '' && !(URL.canParse(clusterEndpoint) && new URL(clusterEndpoint).host !== '')) {
    throw new LinodeSettingsError(
      `CLUSTER_ENDPOINT must be a URL such as https://10.0.0.1:6443, not ${clusterEndpoint}`,
    );
  }
  const token = given.linodeToken.trim();
  // A line break would end the header; the value itself is not repeated here.
  if (!/^[\x21-\x7e]*$/.test(token)) throw new LinodeSettingsError('LINODE_TOKEN holds characters that no token has');
  return {
    token,
    url,
    apiVersion: given.linodeApiVersion,
    ca: given.linodeCa,
    timeoutMs: timeoutOf(given.linodeClientTimeout),
    debug: given.linodeDebug,
    region: regionOf(given),
    mode: given.linodeMode,
    clusterName: given.clusterName.trim(),
    clusterEndpoint,
    createDeadlineMs: given.lkeCreateDeadline || 10_000,
    retryDelayMs: given.lkeRetryDelay || 2000,
    sharePools: given.lkeSharePools,
    memoryOverhead: given.vmMemoryOverheadPercent,
    lookUp: !given.disableDryRun,
  };
}

function regionOf({ linodeRegion, clusterRegion }: Given): string {
  const [one, other] = [linodeRegion.trim(), clusterRegion.trim()];
  if (one !== '' && other !== '' && one !== other) {
    throw new LinodeSettingsError(`LINODE_REGION (${one}) and CLUSTER_REGION (${other}) must be the same`);
  }
  return one || other;
}

/** Seconds as upstream has it, or a duration; what is neither counts as not given, as upstream has it too. */
function timeoutOf(text: string): number {
  const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?)(ms|s|m)?$/.exec(text.trim()) ?? [];
  const ms = Number(amount) * { ms: 1, s: 1000, m: 60_000 }[unit as 'ms' | 's' | 'm'];
  return ms > 0 ? ms : 10_000;
}
