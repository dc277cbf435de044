{{- define "millrace.name" -}}
{{- default .Chart.Name .Values.nameOverride -}}
{{- end }}

{{/* The release's name, which need not say twice what it is. */}}
{{- define "millrace.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains (include "millrace.name" .) .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "millrace.name" .) | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "millrace.selector" -}}
app.kubernetes.io/name: {{ include "millrace.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "millrace.labels" -}}
{{ include "millrace.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The name of what is not in the release's namespace: no two releases have the same one, as no namespace has a dot. */}}
{{- define "millrace.farName" -}}
{{- printf "%s.%s" .Release.Namespace (include "millrace.fullname" .) -}}
{{- end }}

{{/* Where workers reach the servers. */}}
{{- define "millrace.workerUrl" -}}
{{- $service := printf "http://%s.%s.svc:%v" (include "millrace.fullname" .) .Release.Namespace .Values.service.port -}}
{{- default $service .Values.workers.url -}}
{{- end }}

{{/* What the pods of workers have besides, as MILLRACE_KUBERNETES_POD takes it: for all, and for each class. */}}
{{- define "millrace.podFile" -}}
{{- if or .Values.workers.pod .Values.workers.podClasses -}}
{{ toYaml .Values.workers.pod }}
{{- range $name, $pod := .Values.workers.podClasses }}
---
{{ toYaml (merge (dict "name" $name) $pod) }}
{{- end }}
{{- end -}}
{{- end }}
