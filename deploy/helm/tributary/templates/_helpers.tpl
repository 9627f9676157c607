{{- define "tributary.labels" -}}
app.kubernetes.io/part-of: tributary
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* Arguments: root, name. */}}
{{- define "tributary.image" -}}
{{ .root.Values.image.repository }}/{{ .name }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{- define "tributary.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Options as environment variables: every option has one (docs/options.md). Arguments: given, which the user has set,
       and defaults. Numbers of files of values are floats: 3000000 must not become 3e+06. */}}
{{- define "tributary.options" -}}
{{- $all := deepCopy .defaults }}
{{- /* Not merge: it would ignore given options with an empty value, such as false, 0 and "". */}}
{{- range $name, $value := .given }}
{{- $all = set $all $name $value }}
{{- end }}
{{- range $name, $value := $all }}
- name: EBPF_NET_{{ $name | upper }}
  {{- if and (kindIs "float64" $value) (eq (floor $value) $value) }}
  value: {{ $value | int64 | quote }}
  {{- else }}
  value: {{ $value | toString | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* Every reducer: nodes prefer one of them, k8s-collector sends to all. */}}
{{- define "tributary.reducers" -}}
{{- $hosts := list }}
{{- range $i := until (int .Values.reducer.replicas) }}
{{- $hosts = append $hosts (printf "reducer-%d.reducer-headless.%s.svc" $i $.Release.Namespace) }}
{{- end }}
{{- join "," $hosts }}
{{- end }}

{{- define "tributary.exports" -}}
{{- $urls := .Values.reducer.export }}
{{- if .Values.gateway.enabled }}
{{- $urls = append $urls (printf "otlp://gateway.%s.svc:4317" .Release.Namespace) }}
{{- end }}
{{- if .Values.pyroscope.enabled }}
{{- $urls = append $urls "otlp://pyroscope.pyroscope.svc:4040" }}
{{- end }}
{{- join "," $urls }}
{{- end }}

{{- define "tributary.platforms" -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          - {key: kubernetes.io/os, operator: In, values: [linux]}
          - {key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}
          {{- if .onNodes }}
          # Nodes without a kernel of their own.
          - {key: eks.amazonaws.com/compute-type, operator: NotIn, values: [fargate]}
          - {key: type, operator: NotIn, values: [virtual-kubelet]}
          {{- end }}
{{- end }}

{{- define "tributary.placement" -}}
affinity:
  {{- include "tributary.platforms" . | nindent 2 }}
{{- with .placement.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .placement.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "tributary.unprivileged" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* The options of a collector for a reducer with a token, and with TLS. */}}
{{- define "tributary.collectorOptions" -}}
intake_host: {{ include "tributary.reducers" . }}
intake_token_file: /etc/tributary/tokens/intake-token
{{- if .Values.tls.enabled }}
tls_ca: /etc/tributary/tls/ca.crt
{{- end }}
{{- end }}

{{- define "tributary.secretMounts" -}}
{{- if .Values.tls.enabled }}
- name: tls
  mountPath: /etc/tributary/tls
  readOnly: true
{{- end }}
- name: tokens
  mountPath: /etc/tributary/tokens
  readOnly: true
{{- end }}

{{- /* Optional: without the Secret the pod starts, and its log and status name the missing file. */}}
{{- define "tributary.collectorSecrets" -}}
{{- if .Values.tls.enabled }}
- name: tls
  secret:
    secretName: tributary-tls
    optional: true
    defaultMode: 0400
    items:
      - {key: ca.crt, path: ca.crt}
{{- end }}
- name: tokens
  secret:
    secretName: tributary-tokens
    optional: true
    defaultMode: 0400
    items:
      - {key: intake-token, path: intake-token}
{{- end }}

{{- define "tributary.dns" -}}
- ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
    # OpenShift's pods of DNS
    - {protocol: UDP, port: 5353}
    - {protocol: TCP, port: 5353}
{{- end }}

{{- define "tributary.metricsIngress" -}}
- from:
    - namespaceSelector:
        matchLabels:
          tributary.io/metrics: "true"
  ports:
    - {protocol: TCP, port: {{ . }}}
{{- end }}
