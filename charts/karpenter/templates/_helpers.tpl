{{/* Names, labels and small decisions that several templates share. */}}

{{- define "karpenter.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "karpenter.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "karpenter.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "karpenter.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "karpenter.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "karpenter.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* What selects the controller's pods: never changes for a release. */}}
{{- define "karpenter.selectorLabels" -}}
app.kubernetes.io/name: {{ include "karpenter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "karpenter.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "karpenter.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The annotations of an object: the chart's `additionalAnnotations` and the object's own. Takes (list root own). */}}
{{- define "karpenter.annotations" -}}
{{- with merge (deepCopy (index . 1)) (index . 0).Values.additionalAnnotations -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "karpenter.image" -}}
{{- $image := .Values.controller.image -}}
{{- $repository := default $image.repository .Values.image.repo -}}
{{- $tag := default (default .Chart.AppVersion $image.tag) .Values.image.tag -}}
{{- $repository }}:{{ $tag }}{{ with $image.digest }}@{{ . }}{{ end }}
{{- end }}

{{/* The security context of a container of ours. */}}
{{- define "karpenter.containerSecurity" -}}
{{- $hardened := dict
  "runAsNonRoot" true "runAsUser" 65532 "runAsGroup" 65532
  "readOnlyRootFilesystem" true "allowPrivilegeEscalation" false
  "capabilities" (dict "drop" (list "ALL"))
-}}
{{- toYaml (merge (deepCopy .Values.securityContext) .Values.controller.securityContext $hardened) }}
{{- end }}

{{/* "true" when the controller may run this cloud: it is named, or nothing is and the controller finds out. Takes (list root name). */}}
{{- define "karpenter.mayRun" -}}
{{- $providers := (index . 0).Values.settings.providers -}}
{{- if or (not $providers) (has (index . 1) $providers) }}true{{ end }}
{{- end }}

{{/* The first value that is set, as text; lists are joined with commas, other structures become JSON. */}}
{{- define "karpenter.first" -}}
{{- $found := false -}}
{{- range . -}}
{{- if and (not $found) (not (kindIs "invalid" .)) -}}
{{- $found = true -}}
{{- if kindIs "slice" . }}{{ join "," . }}
{{- else if kindIs "map" . }}{{ if . }}{{ toJson . }}{{ end }}
{{- else if and (kindIs "float64" .) (eq (float64 (int64 .)) .) }}{{ int64 . }}
{{- else }}{{ . }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Affinity, with the controller's own labels wherever a term about pods selects nobody. */}}
{{- define "karpenter.affinity" -}}
{{- $own := dict "matchLabels" (include "karpenter.selectorLabels" . | fromYaml) -}}
{{- $affinity := deepCopy .Values.affinity -}}
{{- range $kind := list "podAffinity" "podAntiAffinity" -}}
{{- with get $affinity $kind -}}
{{- range .requiredDuringSchedulingIgnoredDuringExecution -}}
{{- if not (hasKey . "labelSelector") }}{{ $_ := set . "labelSelector" $own }}{{ end -}}
{{- end -}}
{{- range .preferredDuringSchedulingIgnoredDuringExecution -}}
{{- if not (hasKey .podAffinityTerm "labelSelector") }}{{ $_ := set .podAffinityTerm "labelSelector" $own }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end }}

{{/* Spread constraints, with the controller's own labels in those that select nobody. */}}
{{- define "karpenter.topologySpreadConstraints" -}}
{{- $own := dict "matchLabels" (include "karpenter.selectorLabels" . | fromYaml) -}}
{{- range (deepCopy .Values.topologySpreadConstraints) -}}
{{- if not (hasKey . "labelSelector") }}{{ $_ := set . "labelSelector" $own }}{{ end }}
- {{ toYaml . | nindent 2 | trim }}
{{- end -}}
{{- end }}

{{/* Credentials for Linode out of a Secret that somebody else made. Only the token must be in it. */}}
{{- define "karpenter.linodeCredentials" -}}
{{- with .Values.credentialsSecretRef -}}
{{- $name := . -}}
{{- if kindIs "map" . }}{{ $name = .name }}{{ end -}}
{{- range list "LINODE_TOKEN" "LINODE_URL" "LINODE_API_VERSION" "LINODE_REGION" "CLUSTER_REGION" }}
- name: {{ . }}
  valueFrom:
    secretKeyRef:
      name: {{ $name }}
      key: {{ . }}
      {{- if ne . "LINODE_TOKEN" }}
      optional: true
      {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Values that other charts have and that mean nothing here, as far as they were given. */}}
{{- define "karpenter.ignored" -}}
{{- $given := list -}}
{{- if .Values.webhook }}{{ $given = append $given "webhook (there is none: definitions check themselves)" }}{{ end -}}
{{- if .Values.settings.clusterCABundle }}{{ $given = append $given "settings.clusterCABundle (the authority of the cluster is read from the cluster)" }}{{ end -}}
{{- join ", " $given -}}
{{- end }}
