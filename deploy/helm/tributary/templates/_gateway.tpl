{{- define "tributary.gatewayConfig" -}}
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "0.0.0.0:4317"}
      http: {endpoint: "0.0.0.0:4318"}
processors:
  # Samples of the reducer have the names of pods already. This adds them to samples of nodes that send here without a
  # reducer (docs/alone.md), from container.id or k8s.pod.uid.
  k8s_attributes:
    auth_type: serviceAccount
    extract:
      metadata: [k8s.namespace.name, k8s.pod.name, k8s.pod.uid, k8s.node.name, k8s.deployment.name, k8s.statefulset.name,
        k8s.daemonset.name, k8s.job.name, k8s.cronjob.name, k8s.container.name, container.image.name, container.image.tag,
        service.namespace, service.name, service.version, service.instance.id]
      otel_annotations: true
    pod_association:
      - sources: [{from: resource_attribute, name: container.id}]
      - sources: [{from: resource_attribute, name: k8s.pod.uid}]
exporters:
  {{- toYaml .Values.gateway.exporters | nindent 2 }}
service:
  pipelines:
    profiles: {receivers: [otlp], processors: [k8s_attributes], exporters: {{ keys .Values.gateway.exporters | sortAlpha | toJson }}}
{{- end }}
