// SPDX-License-Identifier: Apache-2.0
// Where the management cluster is. Without any of these, it is the cluster that Karpenter's own objects are in.
import { KarpenterError } from '../../base/errors.ts';
import { compileRegexp, RegexpError } from '../../kube/regexp.ts';
import { bool, text } from '../../runtime/setting-types.ts';
import type { SettingsOf } from '../../runtime/settings.ts';

export const clusterApiSettings = {
  clusterApiKubeconfig: text({
    flag: 'cluster-api-kubeconfig',
    env: 'CLUSTER_API_KUBECONFIG',
    chart: ['settings.clusterApi.kubeconfig', 'env.clusterAPIKubeconfig'],
    default: '',
    help: 'Kubeconfig of the Cluster API management cluster. Goes before the other cluster-api settings.',
  }),
  clusterApiUrl: text({
    flag: 'cluster-api-url',
    env: 'CLUSTER_API_URL',
    chart: ['settings.clusterApi.url', 'env.clusterAPIURL'],
    default: '',
    help: 'URL of the API server of the management cluster, where there is no kubeconfig for it.',
  }),
  clusterApiToken: text({
    flag: 'cluster-api-token',
    env: 'CLUSTER_API_TOKEN',
    chart: ['settings.clusterApi.token', 'env.clusterAPIToken'],
    secret: true,
    default: '',
    help: 'Bearer token for cluster-api-url. Better give a file: cluster-api-token-file.',
  }),
  clusterApiTokenFile: text({
    flag: 'cluster-api-token-file',
    env: 'CLUSTER_API_TOKEN_FILE',
    chart: ['settings.clusterApi.tokenFile'],
    default: '',
    help: 'File with the bearer token for cluster-api-url; read again when it changes.',
  }),
  clusterApiCertificateAuthorityData: text({
    flag: 'cluster-api-certificate-authority-data',
    env: 'CLUSTER_API_CERTIFICATE_AUTHORITY_DATA',
    chart: ['settings.clusterApi.certificateAuthorityData', 'env.clusterAPICertificateAuthorityData'],
    default: '',
    help: 'Certificate authority of cluster-api-url: PEM, or PEM in base64 as in a kubeconfig.',
  }),
  clusterApiSkipTlsVerify: bool({
    flag: 'cluster-api-skip-tls-verify',
    env: 'CLUSTER_API_SKIP_TLS_VERIFY',
    chart: ['settings.clusterApi.skipTlsVerify', 'env.clusterAPISkipTLSVerify'],
    default: false,
    help: 'Do not check the certificate of cluster-api-url.',
  }),
  clusterApiNamespace: text({
    flag: 'cluster-api-namespace',
    env: 'CLUSTER_API_NAMESPACE',
    chart: ['settings.clusterApi.namespace'],
    default: '',
    help: 'Keep to this namespace of the management cluster, where credentials allow no more. Empty: all namespaces.',
  }),
  clusterApiInCluster: bool({
    flag: 'cluster-api-in-cluster',
    env: 'CLUSTER_API_IN_CLUSTER',
    chart: ['settings.clusterApi.inCluster'],
    default: false,
    help: 'The management cluster is the one that the controller runs in, whatever KUBECONFIG says of the others.',
  }),
  clusterApiSyncMachineLabels: text({
    flag: 'cluster-api-additional-sync-machine-labels',
    env: 'CLUSTER_API_ADDITIONAL_SYNC_MACHINE_LABELS',
    chart: ['settings.clusterApi.additionalSyncMachineLabels'],
    default: '',
    help: "The Cluster API manager's own --additional-sync-machine-labels: regular expressions, comma-separated, of more labels that it copies from Machines to Nodes.",
  }),
};
export type ClusterApiSettings = SettingsOf<typeof clusterApiSettings>;

/** How the management cluster is reached: as a kubeconfig that holds what the settings say. */
export type HubAccess =
  | { readonly kind: 'joined' }
  /** The cluster that the controller runs in, as its service account. */
  | { readonly kind: 'in-cluster' }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'inline'; readonly kubeconfig: string };

/** Where the settings say that it is. Throws for combinations that make no sense. */
export function hubAccess(settings: ClusterApiSettings): HubAccess {
  const {
    clusterApiKubeconfig: path,
    clusterApiUrl: server,
    clusterApiToken: token,
    clusterApiTokenFile: tokenFile,
    clusterApiCertificateAuthorityData: authority,
    clusterApiSkipTlsVerify: insecure,
    clusterApiInCluster: inCluster,
  } = settings;
  if (inCluster && (path !== '' || server !== '')) {
    throw new HubSettingsError(
      `--cluster-api-in-cluster and --cluster-api-${path === '' ? 'url' : 'kubeconfig'} exclude each other`,
    );
  }
  if (path !== '') return { kind: 'file', path };
  if (server === '') {
    const stray = [
      token && '--cluster-api-token',
      tokenFile && '--cluster-api-token-file',
      authority && '--cluster-api-certificate-authority-data',
    ].find(Boolean);
    if (stray) throw new HubSettingsError(`${stray} needs --cluster-api-url`);
    return { kind: inCluster ? 'in-cluster' : 'joined' };
  }
  if (authority !== '' && insecure) {
    throw new HubSettingsError(
      '--cluster-api-skip-tls-verify and --cluster-api-certificate-authority-data exclude each other',
    );
  }
  const cluster = {
    server,
    ...(authority === '' ? {} : { 'certificate-authority-data': base64Pem(authority) }),
    ...(insecure ? { 'insecure-skip-tls-verify': true } : {}),
  };
  const user = tokenFile !== '' ? { tokenFile } : token !== '' ? { token } : {};
  const name = 'cluster-api';
  const kubeconfig = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  });
  return { kind: 'inline', kubeconfig };
}

/** PEM is taken as it is, as the upstream provider does; base64 as a kubeconfig has it. */
function base64Pem(authority: string): string {
  return authority.includes('-----BEGIN') ? Buffer.from(authority).toString('base64') : authority.replace(/\s/g, '');
}

/** Whether Cluster API was told to copy a label from Machines to Nodes, besides those it always copies. */
export type IsSynced = (key: string) => boolean;

/** What `--additional-sync-machine-labels` says. Throws HubSettingsError for what is no regular expression. */
export function syncedLabels({ clusterApiSyncMachineLabels }: ClusterApiSettings): IsSynced {
  const patterns = clusterApiSyncMachineLabels
    .split(',')
    .map((pattern) => pattern.trim())
    .filter((pattern) => pattern !== '')
    .map((pattern) => {
      try {
        return compileRegexp(pattern);
      } catch (error) {
        if (!(error instanceof RegexpError)) throw error;
        throw new HubSettingsError(`--cluster-api-additional-sync-machine-labels: ${error.message}`);
      }
    });
  return (key) => patterns.some((pattern) => pattern.matcher(key).find());
}

/** Settings of the management cluster that contradict each other. */
export class HubSettingsError extends KarpenterError {
  constructor(message: string) {
    super('KRP_CLUSTER_API_SETTINGS', message);
  }
}
