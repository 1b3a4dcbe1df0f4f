{{- define "karpenter-crd.annotations" -}}
{{- $own := dict -}}
{{- if .Values.keep }}{{ $_ := set $own "helm.sh/resource-policy" "keep" }}{{ end -}}
{{- with merge $own .Values.additionalAnnotations -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
