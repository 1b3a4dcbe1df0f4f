{{/* Generated from hack/generate/chart and the settings table by `npm run generate`. Do not edit. */}}

{{- define "karpenter.setting.METRICS_PORT" -}}
{{- include "karpenter.first" (list .Values.metricsPort.port .Values.controller.metrics.port) }}
{{- end }}

{{- define "karpenter.setting.HEALTH_PROBE_PORT" -}}
{{- include "karpenter.first" (list .Values.healthProbePort.port .Values.controller.healthProbe.port) }}
{{- end }}

{{- define "karpenter.setting.KUBE_CLIENT_QPS" -}}
{{- include "karpenter.first" (list .Values.settings.kubeClientQps) }}
{{- end }}

{{- define "karpenter.setting.KUBE_CLIENT_BURST" -}}
{{- include "karpenter.first" (list .Values.settings.kubeClientBurst) }}
{{- end }}

{{- define "karpenter.setting.ENABLE_PROFILING" -}}
{{- include "karpenter.first" (list .Values.settings.enableProfiling) }}
{{- end }}

{{- define "karpenter.setting.DISABLE_CONTROLLER_WARMUP" -}}
{{- include "karpenter.first" (list .Values.settings.disableControllerWarmup) }}
{{- end }}

{{- define "karpenter.setting.DISABLE_CLUSTER_STATE_OBSERVABILITY" -}}
{{- include "karpenter.first" (list .Values.settings.disableClusterStateObservability) }}
{{- end }}

{{- define "karpenter.setting.LEADER_ELECTION_NAME" -}}
{{- include "karpenter.first" (list .Values.settings.leaderElectionName) }}
{{- end }}

{{- define "karpenter.setting.LOG_LEVEL" -}}
{{- include "karpenter.first" (list .Values.logLevel) }}
{{- end }}

{{- define "karpenter.setting.LOG_OUTPUT_PATHS" -}}
{{- include "karpenter.first" (list .Values.logOutputPaths) }}
{{- end }}

{{- define "karpenter.setting.LOG_ERROR_OUTPUT_PATHS" -}}
{{- include "karpenter.first" (list .Values.logErrorOutputPaths) }}
{{- end }}

{{- define "karpenter.setting.BATCH_MAX_DURATION" -}}
{{- include "karpenter.first" (list .Values.env.batchMaxDuration .Values.settings.batchMaxDuration) }}
{{- end }}

{{- define "karpenter.setting.BATCH_IDLE_DURATION" -}}
{{- include "karpenter.first" (list .Values.env.batchIdleDuration .Values.settings.batchIdleDuration) }}
{{- end }}

{{- define "karpenter.setting.PREFERENCE_POLICY" -}}
{{- include "karpenter.first" (list .Values.env.preferencePolicy .Values.settings.preferencePolicy) }}
{{- end }}

{{- define "karpenter.setting.MIN_VALUES_POLICY" -}}
{{- include "karpenter.first" (list .Values.settings.minValuesPolicy) }}
{{- end }}

{{- define "karpenter.setting.IGNORE_DRA_REQUESTS" -}}
{{- include "karpenter.first" (list .Values.settings.ignoreDRARequests) }}
{{- end }}

{{- define "karpenter.setting.CONSOLIDATION_SAVINGS_THRESHOLD" -}}
{{- include "karpenter.first" (list .Values.settings.consolidationSavingsThreshold) }}
{{- end }}

{{- define "karpenter.setting.POD_MOVE_PRICE" -}}
{{- include "karpenter.first" (list .Values.settings.podMovePrice) }}
{{- end }}

{{- define "karpenter.setting.FEATURE_GATES" -}}
{{- $gates := list -}}
{{- if not (kindIs "invalid" .Values.settings.featureGates.nodeRepair) }}{{ $gates = append $gates (printf "NodeRepair=%t" .Values.settings.featureGates.nodeRepair) }}{{ end }}
{{- if not (kindIs "invalid" .Values.settings.featureGates.reservedCapacity) }}{{ $gates = append $gates (printf "ReservedCapacity=%t" .Values.settings.featureGates.reservedCapacity) }}{{ end }}
{{- if not (kindIs "invalid" .Values.settings.featureGates.spotToSpotConsolidation) }}{{ $gates = append $gates (printf "SpotToSpotConsolidation=%t" .Values.settings.featureGates.spotToSpotConsolidation) }}{{ end }}
{{- if not (kindIs "invalid" .Values.settings.featureGates.nodeOverlay) }}{{ $gates = append $gates (printf "NodeOverlay=%t" .Values.settings.featureGates.nodeOverlay) }}{{ end }}
{{- if not (kindIs "invalid" .Values.settings.featureGates.staticCapacity) }}{{ $gates = append $gates (printf "StaticCapacity=%t" .Values.settings.featureGates.staticCapacity) }}{{ end }}
{{- if not (kindIs "invalid" .Values.settings.featureGates.capacityBuffer) }}{{ $gates = append $gates (printf "CapacityBuffer=%t" .Values.settings.featureGates.capacityBuffer) }}{{ end }}
{{- join "," $gates }}
{{- end }}

{{- define "karpenter.setting.SCHEDULER_CONFIG" -}}
{{- include "karpenter.first" (list .Values.settings.schedulerConfig) }}
{{- end }}

{{- define "karpenter.setting.WORKLOAD_KUBECONFIG" -}}
{{- include "karpenter.first" (list .Values.settings.workloadKubeconfig) }}
{{- end }}

{{- define "karpenter.setting.PROVIDERS" -}}
{{- include "karpenter.first" (list .Values.settings.providers) }}
{{- end }}

{{- define "karpenter.setting.CLUSTER_NAME" -}}
{{- include "karpenter.first" (list .Values.settings.clusterName) }}
{{- end }}

{{- define "karpenter.setting.CLUSTER_ENDPOINT" -}}
{{- include "karpenter.first" (list .Values.settings.clusterEndpoint) }}
{{- end }}

{{- define "karpenter.setting.LINODE_CLUSTER_NAME" -}}
{{- include "karpenter.first" (list .Values.settings.linode.clusterName) }}
{{- end }}

{{- define "karpenter.setting.LINODE_CLUSTER_ENDPOINT" -}}
{{- include "karpenter.first" (list .Values.settings.linode.clusterEndpoint) }}
{{- end }}

{{- define "karpenter.setting.INSTANCE_TYPES_FILE_PATH" -}}
{{- include "karpenter.first" (list .Values.settings.instanceTypesFilePath) }}
{{- end }}

{{- define "karpenter.setting.CLUSTER_API_KUBECONFIG" -}}
{{- include "karpenter.first" (list .Values.env.clusterAPIKubeconfig .Values.settings.clusterApi.kubeconfig) }}
{{- end }}

{{- define "karpenter.setting.CLUSTER_API_URL" -}}
{{- include "karpenter.first" (list .Values.env.clusterAPIURL .Values.settings.clusterApi.url) }}
{{- end }}

{{- define "karpenter.setting.CLUSTER_API_TOKEN" -}}
{{- include "karpenter.first" (list .Values.env.clusterAPIToken .Values.settings.clusterApi.token) }}
{{- end }}

{{- define "karpenter.setting.CLUSTER_API_TOKEN_FILE" -}}
{{- include "karpenter.first" (list .Values.settings.clusterApi.tokenFile) }}
{{- end }}

{{- define "karpenter.setting.CLUSTER_API_CERTIFICATE_AUTHORITY_DATA" -}}
{{- include "karpenter.first" (list .Values.env.clusterAPICertificateAuthorityData .Values.settings.clusterApi.certificateAuthorityData) }}
{{- end }}

{{- define "karpenter.setting.CLUSTER_API_SKIP_TLS_VERIFY" -}}
{{- include "karpenter.first" (list .Values.env.clusterAPISkipTLSVerify .Values.settings.clusterApi.skipTlsVerify) }}
{{- end }}

{{- define "karpenter.setting.CLUSTER_API_NAMESPACE" -}}
{{- include "karpenter.first" (list .Values.settings.clusterApi.namespace) }}
{{- end }}

{{- define "karpenter.setting.CLUSTER_API_IN_CLUSTER" -}}
{{- include "karpenter.first" (list .Values.settings.clusterApi.inCluster) }}
{{- end }}

{{- define "karpenter.setting.CLUSTER_API_ADDITIONAL_SYNC_MACHINE_LABELS" -}}
{{- include "karpenter.first" (list .Values.settings.clusterApi.additionalSyncMachineLabels) }}
{{- end }}

{{- define "karpenter.setting.LINODE_TOKEN" -}}
{{- if not .Values.credentialsSecretRef }}
{{- include "karpenter.first" (list .Values.apiToken) }}
{{- end }}
{{- end }}

{{- define "karpenter.setting.LINODE_URL" -}}
{{- if not .Values.credentialsSecretRef }}
{{- include "karpenter.first" (list .Values.apiURL) }}
{{- end }}
{{- end }}

{{- define "karpenter.setting.LINODE_API_VERSION" -}}
{{- if not .Values.credentialsSecretRef }}
{{- include "karpenter.first" (list .Values.apiVersion) }}
{{- end }}
{{- end }}

{{- define "karpenter.setting.LINODE_CA" -}}
{{- include "karpenter.first" (list .Values.settings.linode.ca) }}
{{- end }}

{{- define "karpenter.setting.LINODE_DEBUG" -}}
{{- include "karpenter.first" (list .Values.linodeDebug) }}
{{- end }}

{{- define "karpenter.setting.LINODE_CLIENT_TIMEOUT" -}}
{{- include "karpenter.first" (list .Values.settings.linode.clientTimeout) }}
{{- end }}

{{- define "karpenter.setting.LINODE_REGION" -}}
{{- if not .Values.credentialsSecretRef }}
{{- include "karpenter.first" (list .Values.region) }}
{{- end }}
{{- end }}

{{- define "karpenter.setting.CLUSTER_REGION" -}}
{{- if not .Values.credentialsSecretRef }}
{{- include "karpenter.first" (list .Values.settings.clusterRegion) }}
{{- end }}
{{- end }}

{{- define "karpenter.setting.KARPENTER_MODE" -}}
{{- include "karpenter.first" (list .Values.settings.mode) }}
{{- end }}

{{- define "karpenter.setting.LKE_CREATE_DEADLINE" -}}
{{- include "karpenter.first" (list .Values.settings.lkeCreateDeadline) }}
{{- end }}

{{- define "karpenter.setting.LKE_TAG_VERIFICATION_TIMEOUT" -}}
{{- include "karpenter.first" (list .Values.settings.lkeTagVerificationTimeout) }}
{{- end }}

{{- define "karpenter.setting.LKE_RETRY_DELAY" -}}
{{- include "karpenter.first" (list .Values.settings.lkeRetryDelay) }}
{{- end }}

{{- define "karpenter.setting.LKE_SHARE_POOLS" -}}
{{- include "karpenter.first" (list .Values.settings.lkeSharePools) }}
{{- end }}

{{- define "karpenter.setting.VM_MEMORY_OVERHEAD_PERCENT" -}}
{{- include "karpenter.first" (list .Values.settings.vmMemoryOverheadPercent) }}
{{- end }}

{{- define "karpenter.setting.DISABLE_DRY_RUN" -}}
{{- include "karpenter.first" (list .Values.settings.disableDryRun) }}
{{- end }}

{{/* A variable per setting that has a value; an empty one is left to the program. */}}
{{- define "karpenter.env" -}}
{{- with include "karpenter.setting.METRICS_PORT" . }}
- name: METRICS_PORT
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.HEALTH_PROBE_PORT" . }}
- name: HEALTH_PROBE_PORT
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.KUBE_CLIENT_QPS" . }}
- name: KUBE_CLIENT_QPS
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.KUBE_CLIENT_BURST" . }}
- name: KUBE_CLIENT_BURST
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.ENABLE_PROFILING" . }}
- name: ENABLE_PROFILING
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.DISABLE_CONTROLLER_WARMUP" . }}
- name: DISABLE_CONTROLLER_WARMUP
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.DISABLE_CLUSTER_STATE_OBSERVABILITY" . }}
- name: DISABLE_CLUSTER_STATE_OBSERVABILITY
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.LEADER_ELECTION_NAME" . }}
- name: LEADER_ELECTION_NAME
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.LOG_LEVEL" . }}
- name: LOG_LEVEL
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.LOG_OUTPUT_PATHS" . }}
- name: LOG_OUTPUT_PATHS
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.LOG_ERROR_OUTPUT_PATHS" . }}
- name: LOG_ERROR_OUTPUT_PATHS
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.BATCH_MAX_DURATION" . }}
- name: BATCH_MAX_DURATION
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.BATCH_IDLE_DURATION" . }}
- name: BATCH_IDLE_DURATION
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.PREFERENCE_POLICY" . }}
- name: PREFERENCE_POLICY
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.MIN_VALUES_POLICY" . }}
- name: MIN_VALUES_POLICY
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.IGNORE_DRA_REQUESTS" . }}
- name: IGNORE_DRA_REQUESTS
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.CONSOLIDATION_SAVINGS_THRESHOLD" . }}
- name: CONSOLIDATION_SAVINGS_THRESHOLD
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.POD_MOVE_PRICE" . }}
- name: POD_MOVE_PRICE
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.FEATURE_GATES" . }}
- name: FEATURE_GATES
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.SCHEDULER_CONFIG" . }}
- name: SCHEDULER_CONFIG
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.WORKLOAD_KUBECONFIG" . }}
- name: WORKLOAD_KUBECONFIG
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.PROVIDERS" . }}
- name: PROVIDERS
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.CLUSTER_NAME" . }}
- name: CLUSTER_NAME
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.CLUSTER_ENDPOINT" . }}
- name: CLUSTER_ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.LINODE_CLUSTER_NAME" . }}
- name: LINODE_CLUSTER_NAME
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.LINODE_CLUSTER_ENDPOINT" . }}
- name: LINODE_CLUSTER_ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.INSTANCE_TYPES_FILE_PATH" . }}
- name: INSTANCE_TYPES_FILE_PATH
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.CLUSTER_API_KUBECONFIG" . }}
- name: CLUSTER_API_KUBECONFIG
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.CLUSTER_API_URL" . }}
- name: CLUSTER_API_URL
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.CLUSTER_API_TOKEN" . }}
- name: CLUSTER_API_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ include "karpenter.fullname" $ }}-settings
      key: CLUSTER_API_TOKEN
{{- end }}
{{- with include "karpenter.setting.CLUSTER_API_TOKEN_FILE" . }}
- name: CLUSTER_API_TOKEN_FILE
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.CLUSTER_API_CERTIFICATE_AUTHORITY_DATA" . }}
- name: CLUSTER_API_CERTIFICATE_AUTHORITY_DATA
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.CLUSTER_API_SKIP_TLS_VERIFY" . }}
- name: CLUSTER_API_SKIP_TLS_VERIFY
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.CLUSTER_API_NAMESPACE" . }}
- name: CLUSTER_API_NAMESPACE
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.CLUSTER_API_IN_CLUSTER" . }}
- name: CLUSTER_API_IN_CLUSTER
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.CLUSTER_API_ADDITIONAL_SYNC_MACHINE_LABELS" . }}
- name: CLUSTER_API_ADDITIONAL_SYNC_MACHINE_LABELS
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.LINODE_TOKEN" . }}
- name: LINODE_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ include "karpenter.fullname" $ }}-settings
      key: LINODE_TOKEN
{{- end }}
{{- with include "karpenter.setting.LINODE_URL" . }}
- name: LINODE_URL
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.LINODE_API_VERSION" . }}
- name: LINODE_API_VERSION
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.LINODE_CA" . }}
- name: LINODE_CA
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.LINODE_DEBUG" . }}
- name: LINODE_DEBUG
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.LINODE_CLIENT_TIMEOUT" . }}
- name: LINODE_CLIENT_TIMEOUT
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.LINODE_REGION" . }}
- name: LINODE_REGION
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.CLUSTER_REGION" . }}
- name: CLUSTER_REGION
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.KARPENTER_MODE" . }}
- name: KARPENTER_MODE
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.LKE_CREATE_DEADLINE" . }}
- name: LKE_CREATE_DEADLINE
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.LKE_TAG_VERIFICATION_TIMEOUT" . }}
- name: LKE_TAG_VERIFICATION_TIMEOUT
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.LKE_RETRY_DELAY" . }}
- name: LKE_RETRY_DELAY
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.LKE_SHARE_POOLS" . }}
- name: LKE_SHARE_POOLS
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.VM_MEMORY_OVERHEAD_PERCENT" . }}
- name: VM_MEMORY_OVERHEAD_PERCENT
  value: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.DISABLE_DRY_RUN" . }}
- name: DISABLE_DRY_RUN
  value: {{ . | quote }}
{{- end }}
{{- end }}

{{/* The credentials among them, for the Secret that holds them. */}}
{{- define "karpenter.credentials" -}}
{{- with include "karpenter.setting.CLUSTER_API_TOKEN" . }}
CLUSTER_API_TOKEN: {{ . | quote }}
{{- end }}
{{- with include "karpenter.setting.LINODE_TOKEN" . }}
LINODE_TOKEN: {{ . | quote }}
{{- end }}
{{- end }}
