{{- define "sluice.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "sluice.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion | replace "+" "-" }}{{ end }}
{{- end -}}
{{- end }}

{{- define "sluice.settler" -}}
{{- $v := .root.Values -}}
image: {{ include "sluice.image" .root | quote }}
imagePullPolicy: {{ $v.image.pullPolicy }}
command: ["/sluice-settle"]
args: [{{ .command | quote }}, "--config", "/etc/sluice/config.toml"]
env:
  - {name: UPSTREAM, value: {{ $v.upstream | quote }}}
  - {name: REDIS_ADDR, value: {{ $v.redis | quote }}}
  {{- if $v.redisPassword.secret }}
  - {name: REDIS_PASSWORD_FILE, value: /run/secrets/redis/password}
  {{- end }}
  - {name: SETTLE_DATABASE, value: {{ required "settle.database is empty; write postgres://user@host/name" $v.settle.database | quote }}}
  {{- if $v.settle.passwordSecret }}
  - {name: SETTLE_PASSWORD_FILE, value: /run/secrets/database/password}
  {{- end }}
  {{- with $v.extraEnv }}{{ toYaml . | nindent 2 }}{{ end }}
resources: {{- toYaml $v.settle.resources | nindent 2 }}
securityContext:
  runAsUser: 65532
  runAsGroup: 65532
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: config, mountPath: /etc/sluice, readOnly: true}
  {{- if $v.redisPassword.secret }}
  - {name: redis-password, mountPath: /run/secrets/redis, readOnly: true}
  {{- end }}
  {{- if $v.settle.passwordSecret }}
  - {name: database-password, mountPath: /run/secrets/database, readOnly: true}
  {{- end }}
  {{- if $v.extraSecret }}
  - {name: extra-secret, mountPath: /run/secrets/sluice, readOnly: true}
  {{- end }}
{{- end }}
