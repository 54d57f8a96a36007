//! Generates the Helm chart from the files of `deploy/kustomize`: a placeholder is inserted for
//! each value, and replaced by a Helm expression in the text.

use serde_json::Value;

use super::{
    BASE, File, Flavor, MONITORING, NAMESPACE_FILE, PLACEMENT, Package, REGISTRATION, REGISTRATION_TOKENS,
    to_yaml,
};

const STANDALONE: &str = r#"eq .Values.flavor "standalone""#;

/// Placeholders and their Helm expressions.
const WORDS: [(&str, &str); 4] = [
    ("HELM_NAMESPACE", "{{ .Release.Namespace }}"),
    ("HELM_IMAGE", "{{ .Values.image | quote }}"),
    ("HELM_REPLICAS", "{{ .Values.replicas }}"),
    ("HELM_RESOURCES", "{{ toJson .Values.resources }}"),
];

const VALUES: &str = r#"# The kind of hub: standalone (installs every custom resource definition, and the manager decides
# placements), or ocm (an Open Cluster Management hub, which already has clusters, placements and
# works).
flavor: standalone

# Image of the manager. The nodes of the hub must be able to pull it.
image: IMAGE

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

monitoring:
  # A ServiceMonitor and alerts, which need the Prometheus operator, and a Grafana dashboard.
  enabled: true

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
{{- $newer := printf "%s    operator.open-cluster-management.io/version: 999.0.0\n" $kept }}
{{- $annotated := ternary $kept $newer (eq .Values.flavor "standalone") }}
{{- range $path, $_ := .Files.Glob "definitions/addon.*.yaml" }}
---
{{ $.Files.Get $path | replace "\nmetadata:\n" $annotated }}
{{- end }}
{{- if eq .Values.flavor "standalone" }}
{{- range $path, $_ := .Files.Glob "definitions/{cluster,work}.*.yaml" }}
---
{{ $.Files.Get $path | replace "\nmetadata:\n" $annotated }}
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

Uninstalling the chart keeps the custom resource definitions and all their objects.
"#;

const SCHEMA: &str = r#"{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "flavor": {"enum": ["standalone", "ocm"]},
    "image": {"type": "string", "minLength": 1},
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
    "monitoring": {"type": "object", "additionalProperties": false, "properties": {"enabled": {"type": "boolean"}}},
    "crds": {"type": "object", "additionalProperties": false, "properties": {"install": {"type": "boolean"}}},
    "namespace": {"type": "object", "additionalProperties": false, "properties": {"create": {"type": "boolean"}}},
    "global": {"type": "object"}
  }
}
"#;

/// Every file of the chart by its path, except the symbolic link to the CRDs.
pub(super) fn files() -> anyhow::Result<Vec<(String, String)>> {
    let version = env!("CARGO_PKG_VERSION");
    let about = format!(
        "apiVersion: v2\nname: aviary\ndescription: {}\ntype: application\nversion: {version}\nappVersion: {version}\nkubeVersion: '>=1.30.0-0'\n",
        env!("CARGO_PKG_DESCRIPTION")
    );
    let mut files = vec![
        ("Chart.yaml".to_owned(), about),
        ("values.yaml".to_owned(), VALUES.replace("IMAGE", super::IMAGE)),
        ("values.schema.json".to_owned(), SCHEMA.to_owned()),
        ("templates/NOTES.txt".to_owned(), NOTES.to_owned()),
        ("templates/definitions.yaml".to_owned(), DEFINITIONS.to_owned()),
        ("templates/registration-allowed.yaml".to_owned(), REGISTRATION_ALLOWED.to_owned()),
        template(&NAMESPACE_FILE, Some(".Values.namespace.create"))?,
    ];
    for file in &BASE {
        files.push(template(file, None)?);
    }
    for file in &PLACEMENT {
        files.push(template(file, Some(STANDALONE))?);
    }
    for file in &REGISTRATION {
        files.push(template(file, Some(".Values.registration.enabled"))?);
    }
    for file in &REGISTRATION_TOKENS {
        files.push(template(file, Some("and .Values.registration.enabled .Values.registration.tokens"))?);
    }
    for file in &MONITORING {
        files.push(template(file, Some(".Values.monitoring.enabled"))?);
    }
    Ok(files)
}

/// Turns a file into a template, optionally with a condition.
fn template(file: &File, condition: Option<&str>) -> anyhow::Result<(String, String)> {
    let package = Package {
        flavor: Flavor::Standalone,
        image: "HELM_IMAGE",
        namespace: "HELM_NAMESPACE",
        monitoring: true,
        registration: true,
    };
    let mut objects = package.read(file)?;
    objects.iter_mut().for_each(put_words);
    // Escapes braces that Prometheus and Grafana expand, so that Helm does not.
    let mut text = to_yaml(&objects)?.replace("{{", r#"{{ "{{" }}"#);
    for (word, expression) in WORDS {
        text = text.replace(word, expression);
    }
    text = text.split_inclusive('\n').map(placement_argument).map(registration_arguments).collect();
    let text = match condition {
        Some(condition) => format!("{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"),
        None => text,
    };
    Ok((
        format!("templates/{}", file.0),
        format!("# Generated by `make manifests` from deploy/kustomize.\n{text}"),
    ))
}

fn put_words(object: &mut Value) {
    if object["kind"] == "Deployment" {
        object["spec"]["replicas"] = "HELM_REPLICAS".into();
        let container = &mut object["spec"]["template"]["spec"]["containers"][0];
        if container["name"] == "manager" {
            container["resources"] = "HELM_RESOURCES".into();
        }
        if container["name"] == "registration"
            && let Some(arguments) = container["args"].as_array_mut()
        {
            arguments.push("HELM_REGISTRATION_ARGUMENTS".into());
        }
    }
}

fn registration_arguments(line: String) -> String {
    match line.split_once("- HELM_REGISTRATION_ARGUMENTS") {
        Some((indent, _)) => REGISTRATION_ARGUMENTS.replace("INDENT", indent),
        None => line,
    }
}

/// The last argument exists only on one kind of hub. The arguments from the values follow it.
fn placement_argument(line: &str) -> String {
    let Some((indent, _)) = line.split_once("- --placement") else { return line.to_owned() };
    format!(
        "{{{{- if {STANDALONE} }}}}\n{line}{{{{- end }}}}\n{{{{- range .Values.extraArgs }}}}\n{indent}- {{{{ . | quote }}}}\n{{{{- end }}}}\n"
    )
}
