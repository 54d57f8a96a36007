{{/* The image: registry/repository:tag, or by digest. A registry for all charts has precedence. */}}
{{- define "aviary.image" -}}
{{- $global := .Values.global | default dict }}
{{- $registry := $global.imageRegistry | default .Values.image.registry }}
{{- with $registry }}{{ . | trimSuffix "/" }}/{{ end }}{{ .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}
{{- else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The labels of every object. They are no part of any selector, so they may change. */}}
{{- define "aviary.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/part-of: aviary
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels by which a Prometheus finds its ServiceMonitors and rules. */}}
{{- define "aviary.monitoringLabels" -}}
{{- with .Values.monitoring.labels }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* Where the pods run, and how their image is pulled. */}}
{{- define "aviary.pod" -}}
{{- $global := .Values.global | default dict }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toJson . }}
{{- end }}
{{- with .Values.imagePullSecrets | default $global.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end }}
