// SPDX-License-Identifier: Apache-2.0
// All settings of the controller in one table: the core's, the providers', and where the clusters are.
import { clusterApiSettings } from '../providers/cluster-api/settings.ts';
import { kwokSettings } from '../providers/kwok/settings.ts';
import { linodeSettings } from '../providers/linode/settings.ts';
import { list, text } from '../runtime/setting-types.ts';
import { coreSettings, type SettingsOf } from '../runtime/settings.ts';
import { knownProviders } from './known-providers.ts';
import { settingsForOne, sharedSettings } from './shared-settings.ts';

export const programSettings = {
  ...coreSettings,
  kubeconfig: text({
    flag: 'kubeconfig',
    env: 'KARPENTER_KUBECONFIG',
    default: '',
    help: 'Kubeconfig of the cluster with NodePools and NodeClaims. Empty: KUBECONFIG, the service account, ~/.kube/config.',
  }),
  workloadKubeconfig: text({
    flag: 'workload-kubeconfig',
    env: 'WORKLOAD_KUBECONFIG',
    chart: ['settings.workloadKubeconfig'],
    default: '',
    help: 'Kubeconfig of the cluster with Nodes and Pods, when it is not the one with NodePools.',
  }),
  providers: list({
    flag: 'providers',
    env: 'PROVIDERS',
    chart: ['settings.providers'],
    default: [],
    values: knownProviders.map(({ name }) => name),
    help: 'The clouds to run, separated by commas. Empty: every one whose NodeClass is installed and which is configured.',
  }),
  ...sharedSettings,
  // Read by the cloud they are for; their names are not known to the compiler.
  ...(settingsForOne(sharedSettings, knownProviders) as object),
  ...kwokSettings,
  ...clusterApiSettings,
  ...linodeSettings,
};

export type ProgramSettings = SettingsOf<typeof programSettings>;
