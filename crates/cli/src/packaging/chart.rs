//! Generates the Helm chart from the files of `deploy/kustomize`: a placeholder is inserted for
//! each value, and replaced by a Helm expression in the text.

use aviary_api::crds;
use serde_json::Value;

use super::{
    BASE, DASHBOARD, File, Flavor, MONITORING, NAMESPACE_FILE, OCM, OCM_ARGUMENT, PLACEMENT, Package,
    REGISTRATION, REGISTRATION_TOKENS, to_yaml,
};

const STANDALONE: &str = r#"eq .Values.flavor "standalone""#;
const ON_OCM: &str = r#"eq .Values.flavor "ocm""#;

/// Placeholders and their Helm expressions.
const WORDS: [(&str, &str); 9] = [
    ("HELM_NAMESPACE", "{{ .Release.Namespace }}"),
    ("HELM_IMAGE", r#"{{ include "aviary.image" . | quote }}"#),
    ("HELM_HOST", "{{ .Values.dashboard.host }}"),
    ("HELM_TLS_SECRET", "{{ .Values.dashboard.tlsSecret | quote }}"),
    ("HELM_RUNBOOK", "{{ .Values.monitoring.runbookUrl }}"),
    ("HELM_INTERVAL", "{{ .Values.monitoring.interval }}"),
    ("HELM_REPLICAS", "{{ .Values.replicas }}"),
    ("HELM_RESOURCES", "{{ toJson .Values.resources }}"),
    ("HELM_DASHBOARD_RESOURCES", "{{ toJson .Values.dashboard.resources }}"),
];

/// A line that stands for several fields, or for none.
fn several(line: &str) -> Option<String> {
    let indent = line.len() - line.trim_start().len();
    let key = line.split([' ', ':', '\n']).find(|word| word.starts_with("HELM_"))?;
    let include = |what: &str| {
        format!(
            "{{{{- with include \"aviary.{what}\" . }}}}\n{{{{ . | trim | indent {indent} }}}}\n{{{{- end }}}}\n"
        )
    };
    let values = |path: &str, field: &str| {
        format!(
            "{{{{- with .Values.{path} }}}}\n{}{field}: {{{{ toJson . }}}}\n{{{{- end }}}}\n",
            " ".repeat(indent)
        )
    };
    Some(match key {
        "HELM_LABELS" => include("labels"),
        "HELM_MONITORING_LABELS" => include("labels") + &include("monitoringLabels"),
        "HELM_POD" => include("pod"),
        "HELM_POD_LABELS" => format!(
            "{{{{- with .Values.podLabels }}}}\n{{{{ toYaml . | indent {indent} }}}}\n{{{{- end }}}}\n"
        ),
        "HELM_PULL_POLICY" => values("image.pullPolicy", "imagePullPolicy"),
        "HELM_INGRESS_CLASS" => values("dashboard.ingress.className", "ingressClassName"),
        "HELM_INGRESS_ANNOTATIONS" => values("dashboard.ingress.annotations", "annotations"),
        _ => return None,
    })
}

const HELPERS: &str = r#"{{/* The image: registry/repository:tag, or by digest. A registry for all charts has precedence. */}}
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
"#;

const VALUES: &str = r#"# The kind of hub: standalone (installs every custom resource definition, and the manager decides
# placements), or ocm (an Open Cluster Management hub, which already has clusters, placements and
# works: nothing of it is changed).
flavor: standalone

# The image, as registry/repository:tag. The nodes of the hub must be able to pull it.
image:
  # For example registry.example.com/platform. global.imageRegistry has precedence.
  registry: ""
  repository: aviary
  # The version of the chart, if it is empty.
  tag: ""
  # For example sha256:…; then the tag is not used.
  digest: ""
  # IfNotPresent, Always or Never; the hub decides if it is empty.
  pullPolicy: ""

# Names of Secrets, as in [{name: registry}]. global.imagePullSecrets applies if it is empty.
imagePullSecrets: []

replicas: 2

resources:
  requests: {cpu: 50m, memory: 64Mi}
  limits: {memory: 256Mi}

# Additional arguments of `aviary manager`, such as --verify or --deletion-brake=20,50%.
extraArgs: []

registration:
  # A separate process that registers the agents of add-ons whose templates have spec.registration.
  # See docs/ocm.md.
  enabled: false
  # ClusterRoles, and Roles in any namespace, that it may bind for agents, by name.
  clusterRoles: []
  roles: []
  # Signers that it may approve and sign for, each with the Secret of its CA:
  # - {name: example.com/agent, secret: {namespace: open-cluster-management, name: agent-ca}}
  signers: []
  # Agents may use tokens of ServiceAccounts instead of certificates.
  tokens: false
  # Additional arguments of `aviary registration`, such as --grpc-server-account.
  extraArgs: []

# Where the pods run, of the manager and of all others. Replicas of the manager are spread over nodes
# and zones anyway.
nodeSelector: {}
tolerations: []
affinity: {}
priorityClassName: ""

# Additional labels of every object, and of the pods.
commonLabels: {}
podLabels: {}

dashboard:
  # The web dashboard, for users with their own tokens: a Deployment, a Service and an Ingress.
  enabled: false
  # Its host name.
  host: aviary.example.com
  # A Secret with a certificate for the host (tls.crt, tls.key), for the dashboard and for the Ingress.
  tlsSecret: aviary-dashboard-tls
  # Read-only, unless this is true. Then users can also do what the hub allows their tokens.
  enableWrites: false
  resources:
    requests: {cpu: 20m, memory: 64Mi}
    limits: {memory: 512Mi}
  ingress:
    enabled: true
    className: ""
    # The ingress controller must connect with HTTPS. For ingress-nginx:
    # nginx.ingress.kubernetes.io/backend-protocol: HTTPS
    annotations: {}

monitoring:
  # A ServiceMonitor and alerts, which need the Prometheus operator, and a Grafana dashboard.
  enabled: true
  # Labels of the ServiceMonitor and of the alerts, by which your Prometheus finds them, as in
  # {release: prometheus}.
  labels: {}
  interval: 30s
  # Where you serve the page operations.md. Every alert links to a section of it.
  runbookUrl: docs/operations.md

crds:
  # The CRDs are upgraded with the chart, and kept when it is uninstalled.
  install: true

namespace:
  # Only for `helm template`: for an install, the namespace must exist already. Then add the label
  # pod-security.kubernetes.io/enforce=restricted yourself.
  create: false
"#;

const DEFINITIONS: &str = r#"{{- if .Values.crds.install }}
{{- $kept := "\nmetadata:\n  annotations:\n    helm.sh/resource-policy: keep\n" }}
{{- $ofOcm := list OF_OCM }}
{{- range $path, $_ := .Files.Glob "definitions/{addon,cluster,work}.*.yaml" }}
{{- if or (eq $.Values.flavor "standalone") (not (has (base $path) $ofOcm)) }}
---
{{ $.Files.Get $path | replace "\nmetadata:\n" $kept }}
{{- end }}
{{- end }}
{{- end }}
"#;

/// What the values allow the registration. A rule without names would allow everything, so there is
/// none for an empty list.
const REGISTRATION_ALLOWED: &str = r#"{{- if .Values.registration.enabled }}
{{- with .Values.registration }}
{{- if or .clusterRoles .roles .signers }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: aviary-registration-values
  labels:
{{ include "aviary.labels" $ | trim | indent 4 }}
    app.kubernetes.io/name: aviary
    addon.open-cluster-management.io/aggregate-to-registration: "true"
rules:
{{- if .clusterRoles }}
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles]
  resourceNames: {{ toJson .clusterRoles }}
  verbs: [bind]
{{- end }}
{{- if .roles }}
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles]
  resourceNames: {{ toJson .roles }}
  verbs: [bind]
{{- end }}
{{- range .signers }}
- apiGroups: [certificates.k8s.io]
  resources: [signers]
  resourceNames: [{{ .name | quote }}]
  verbs: [approve, sign]
{{- end }}
{{- end }}
{{- range $index, $signer := .signers }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: aviary-registration-signer-{{ $index }}
  namespace: {{ $signer.secret.namespace }}
  labels:
{{ include "aviary.labels" $ | trim | indent 4 }}
    app.kubernetes.io/name: aviary
rules:
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ $signer.secret.name | quote }}]
  verbs: [get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: aviary-registration-signer-{{ $index }}
  namespace: {{ $signer.secret.namespace }}
  labels:
{{ include "aviary.labels" $ | trim | indent 4 }}
    app.kubernetes.io/name: aviary
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: aviary-registration-signer-{{ $index }}
subjects:
- kind: ServiceAccount
  name: aviary-registration
  namespace: {{ $.Release.Namespace }}
{{- end }}
{{- end }}
{{- end }}
"#;

/// The arguments of the registration that follow from the values.
const REGISTRATION_ARGUMENTS: &str = r#"{{- range .Values.registration.signers }}
INDENT- {{ printf "--signer=%s=%s/%s" .name .secret.namespace .secret.name | quote }}
{{- end }}
{{- if .Values.registration.tokens }}
INDENT- --tokens
{{- end }}
{{- range .Values.registration.extraArgs }}
INDENT- {{ . | quote }}
{{- end }}
"#;

const NOTES: &str = r#"The Aviary manager is installed in the namespace {{ .Release.Namespace }}.

  kubectl -n {{ .Release.Namespace }} rollout status deployment/aviary-manager
  aviary status
{{- if .Values.dashboard.enabled }}

The dashboard is at https://{{ .Values.dashboard.host }}/. Its certificate must be in the Secret
{{ .Values.dashboard.tlsSecret }}. Bind the ClusterRole aviary-dashboard-viewer to its users.
{{- end }}

Uninstalling the chart keeps the custom resource definitions and all their objects.
"#;

const SCHEMA: &str = r##"{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "type": "object",
  "additionalProperties": false,
  "definitions": {
    "labels": {"type": "object", "additionalProperties": {"type": "string"}}
  },
  "properties": {
    "flavor": {"enum": ["standalone", "ocm"]},
    "image": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "registry": {"type": "string", "pattern": "^[^\\s]*$"},
        "repository": {"type": "string", "pattern": "^[^\\s]+$"},
        "tag": {"type": "string", "pattern": "^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$"},
        "digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
        "pullPolicy": {"enum": ["", "Always", "IfNotPresent", "Never"]}
      }
    },
    "imagePullSecrets": {"type": "array", "items": {"type": "object"}},
    "replicas": {"type": "integer", "minimum": 0},
    "resources": {"type": "object"},
    "extraArgs": {"type": "array", "items": {"type": "string"}},
    "registration": {"type": "object", "additionalProperties": false, "properties": {
      "enabled": {"type": "boolean"},
      "clusterRoles": {"type": "array", "items": {"type": "string", "minLength": 1}},
      "roles": {"type": "array", "items": {"type": "string", "minLength": 1}},
      "signers": {"type": "array", "items": {
        "type": "object", "additionalProperties": false, "required": ["name", "secret"], "properties": {
          "name": {"type": "string", "minLength": 5},
          "secret": {
            "type": "object", "additionalProperties": false, "required": ["namespace", "name"],
            "properties": {"namespace": {"type": "string", "minLength": 1}, "name": {"type": "string", "minLength": 1}}
          }
        }
      }},
      "tokens": {"type": "boolean"},
      "extraArgs": {"type": "array", "items": {"type": "string"}}
    }},
    "nodeSelector": {"$ref": "#/definitions/labels"},
    "tolerations": {"type": "array", "items": {"type": "object"}},
    "affinity": {"type": "object"},
    "priorityClassName": {"type": "string"},
    "commonLabels": {"$ref": "#/definitions/labels"},
    "podLabels": {"$ref": "#/definitions/labels"},
    "dashboard": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "enabled": {"type": "boolean"},
        "host": {"type": "string", "pattern": "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"},
        "tlsSecret": {"type": "string", "minLength": 1},
        "enableWrites": {"type": "boolean"},
        "resources": {"type": "object"},
        "ingress": {
          "type": "object",
          "additionalProperties": false,
          "properties": {
            "enabled": {"type": "boolean"},
            "className": {"type": "string"},
            "annotations": {"$ref": "#/definitions/labels"}
          }
        }
      }
    },
    "monitoring": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "enabled": {"type": "boolean"},
        "labels": {"$ref": "#/definitions/labels"},
        "interval": {"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"},
        "runbookUrl": {"type": "string", "pattern": "^[^\\s#]+$"}
      }
    },
    "crds": {"type": "object", "additionalProperties": false, "properties": {"install": {"type": "boolean"}}},
    "namespace": {"type": "object", "additionalProperties": false, "properties": {"create": {"type": "boolean"}}},
    "global": {"type": "object"}
  }
}
"##;

/// Every file of the chart by its path, except the symbolic link to the CRDs.
pub(super) fn files() -> anyhow::Result<Vec<(String, String)>> {
    let version = env!("CARGO_PKG_VERSION");
    let about = format!(
        "apiVersion: v2\nname: aviary\ndescription: {}\ntype: application\nversion: {version}\nappVersion: {version}\nkubeVersion: '>=1.30.0-0'\n",
        env!("CARGO_PKG_DESCRIPTION")
    );
    let mut files = vec![
        ("Chart.yaml".to_owned(), about),
        ("values.yaml".to_owned(), VALUES.to_owned()),
        ("values.schema.json".to_owned(), SCHEMA.to_owned()),
        ("templates/_helpers.tpl".to_owned(), HELPERS.to_owned()),
        ("templates/NOTES.txt".to_owned(), NOTES.to_owned()),
        ("templates/definitions.yaml".to_owned(), DEFINITIONS.replace("OF_OCM", &files_of_ocm())),
        ("templates/registration-allowed.yaml".to_owned(), REGISTRATION_ALLOWED.to_owned()),
        template(&NAMESPACE_FILE, Some(".Values.namespace.create"))?,
    ];
    for file in &BASE {
        files.push(template(file, None)?);
    }
    for file in &PLACEMENT {
        files.push(template(file, Some(STANDALONE))?);
    }
    for file in &OCM {
        files.push(template(file, Some(ON_OCM))?);
    }
    for file in &REGISTRATION {
        files.push(template(file, Some(".Values.registration.enabled"))?);
    }
    for file in &REGISTRATION_TOKENS {
        files.push(template(file, Some("and .Values.registration.enabled .Values.registration.tokens"))?);
    }
    for file in &DASHBOARD {
        files.push(template(file, Some(".Values.dashboard.enabled"))?);
    }
    for file in &MONITORING {
        files.push(template(file, Some(".Values.monitoring.enabled"))?);
    }
    Ok(files)
}

/// The files of the kinds that an OCM hub already has, as arguments of a template.
fn files_of_ocm() -> String {
    let added: Vec<String> = crds::added_to_ocm().iter().map(crds::file_name).collect();
    let all = crds::all();
    let files = all.iter().map(crds::file_name).filter(|file| !added.contains(file));
    files.map(|file| format!("\"{file}\"")).collect::<Vec<_>>().join(" ")
}

/// Turns a file into a template, optionally with a condition.
fn template(file: &File, condition: Option<&str>) -> anyhow::Result<(String, String)> {
    let package = Package {
        flavor: Flavor::Standalone,
        image: "HELM_IMAGE",
        namespace: "HELM_NAMESPACE",
        monitoring: true,
        registration: true,
        dashboard: Some("HELM_HOST"),
        runbook: "HELM_RUNBOOK",
        v1beta1: false,
    };
    let mut objects = package.read(file)?;
    objects.iter_mut().for_each(put_words);
    let mut text = String::new();
    for object in &objects {
        // Escapes braces that Prometheus and Grafana expand, so that Helm does not.
        let mut one = to_yaml(std::slice::from_ref(object))?.replace("{{", r#"{{ "{{" }}"#);
        for (word, expression) in WORDS {
            one = one.replace(word, expression);
        }
        let one: String =
            one.split_inclusive('\n').map(|line| several(line).unwrap_or_else(|| argument(line))).collect();
        match object["kind"] == "Ingress" {
            true => text.push_str(&only_if(".Values.dashboard.ingress.enabled", &one)),
            false => text.push_str(&one),
        }
    }
    if let Some(condition) = condition {
        text = only_if(condition, &text);
    }
    Ok((
        format!("templates/{}", file.0),
        format!("# Generated by `make manifests` from deploy/kustomize.\n{text}"),
    ))
}

fn only_if(condition: &str, text: &str) -> String {
    format!("{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n")
}

fn put_words(object: &mut Value) {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let labels = match kind.as_str() {
        "ServiceMonitor" | "PrometheusRule" => "HELM_MONITORING_LABELS",
        _ => "HELM_LABELS",
    };
    object["metadata"]["labels"][labels] = "".into();
    match kind.as_str() {
        "Deployment" => {
            let of_dashboard = name == "aviary-dashboard";
            if !of_dashboard {
                object["spec"]["replicas"] = "HELM_REPLICAS".into();
            }
            let template = &mut object["spec"]["template"];
            template["metadata"]["labels"]["HELM_POD_LABELS"] = "".into();
            template["spec"]["HELM_POD"] = "".into();
            let container = &mut template["spec"]["containers"][0];
            container["imagePullPolicy"] = "HELM_PULL_POLICY".into();
            match name.as_str() {
                "aviary-dashboard" => container["resources"] = "HELM_DASHBOARD_RESOURCES".into(),
                "aviary-manager" => container["resources"] = "HELM_RESOURCES".into(),
                _ => {}
            }
            if container["name"] == "registration"
                && let Some(arguments) = container["args"].as_array_mut()
            {
                arguments.push("HELM_REGISTRATION_ARGUMENTS".into());
            }
            if of_dashboard {
                template["spec"]["volumes"][0]["secret"]["secretName"] = "HELM_TLS_SECRET".into();
            }
        }
        "Ingress" => {
            object["metadata"]["HELM_INGRESS_ANNOTATIONS"] = "".into();
            object["spec"]["HELM_INGRESS_CLASS"] = "".into();
            object["spec"]["tls"][0]["secretName"] = "HELM_TLS_SECRET".into();
        }
        "ServiceMonitor" => object["spec"]["endpoints"][0]["interval"] = "HELM_INTERVAL".into(),
        _ => {}
    }
}

/// Arguments that depend on a value. Those from the values follow the last argument of the manager.
fn argument(line: &str) -> String {
    if let Some((indent, _)) = line.split_once("- --placement") {
        let more =
            format!("{{{{- range .Values.extraArgs }}}}\n{indent}- {{{{ . | quote }}}}\n{{{{- end }}}}\n");
        return format!(
            "{{{{- if {STANDALONE} }}}}\n{line}{{{{- else }}}}\n{indent}- {OCM_ARGUMENT}\n{{{{- end }}}}\n{more}"
        );
    }
    if let Some((indent, _)) = line.split_once("- HELM_REGISTRATION_ARGUMENTS") {
        return REGISTRATION_ARGUMENTS.replace("INDENT", indent);
    }
    if let Some((indent, _)) = line.split_once("- --allowed-host=") {
        return line.to_owned()
            + &only_if(".Values.dashboard.enableWrites", &format!("{indent}- --enable-writes\n"));
    }
    line.to_owned()
}
