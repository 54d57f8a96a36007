//! What OCM adds to a template's manifests: environment, volumes, mirrors, proxy, resources and
//! namespaces, from the template's registration and the AddOnDeploymentConfig.
//!
//! As in OCM, containers of Deployments and DaemonSets are changed, and init containers are not.
//! A template that asks for none of it is rendered as it is.

use k8s_openapi::ByteString;
use serde_json::{Map, Value, json};

use super::WORK_LIMIT;
use super::variables::Unfilled;
use crate::configs::ConfigRef;
use crate::content::Density;
use crate::hash;
use crate::problem::Problem;

/// The variable with the path of the kubeconfig for the hub.
pub(super) const HUB_KUBECONFIG: &str = "HUB_KUBECONFIG";
/// Its value, unless a config says otherwise.
pub(super) const HUB_KUBECONFIG_PATH: &str = "/managed/hub-kubeconfig/kubeconfig";

const PROXY_CA_MOUNT: &str = "/managed/proxy-ca";
const PROXY_CA_FILE: &str = "ca-bundle.crt";

/// What is added to manifests.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Decorations {
    /// For every container.
    environment: Vec<(String, String)>,
    mounts: Vec<Value>,
    /// For every pod.
    volumes: Vec<Value>,
    /// Source and mirror.
    registries: Vec<(String, String)>,
    /// By kind, workload and container; the last that matches counts.
    resources: Vec<([String; 3], Value)>,
    /// Everything namespaced goes there.
    namespace: Option<String>,
    /// Objects beside the template's.
    pub(super) objects: Vec<Value>,
}

/// What decorations follow from.
pub(super) struct Wishes<'a> {
    pub(super) addon: &'a str,
    /// The content of the template.
    pub(super) template: &'a Value,
    /// The AddOnDeploymentConfig and its content.
    pub(super) deployment: Option<(&'a ConfigRef, &'a Value)>,
    /// Whether containers get the environment even without a registration, as on OCM's hubs.
    pub(super) always_environment: bool,
    /// The value of `HUB_KUBECONFIG`.
    pub(super) hub_kubeconfig: Option<&'a str>,
}

/// Whether the agents of a template register with the hub.
pub(super) fn registers(template: &Value) -> bool {
    template.pointer("/spec/registration").is_some_and(Value::is_array)
}

impl Decorations {
    pub(super) fn of(wishes: &Wishes<'_>) -> Result<Self, Problem> {
        let mut made = Self::default();
        made.configure(wishes)?;
        let registers = registers(wishes.template);
        if registers || wishes.always_environment {
            let mut own: Vec<(String, String)> = Vec::new();
            if registers {
                let path = wishes.hub_kubeconfig.unwrap_or(HUB_KUBECONFIG_PATH);
                own.push((HUB_KUBECONFIG.to_owned(), path.to_owned()));
            }
            own.push(("CLUSTER_NAME".to_owned(), "{{CLUSTER_NAME}}".to_owned()));
            if let Some(namespace) = &made.namespace {
                own.push(("INSTALL_NAMESPACE".to_owned(), namespace.clone()));
            }
            made.environment.splice(0..0, own);
        }
        made.register(wishes);
        Ok(made)
    }

    /// The namespace that the AddOnDeploymentConfig asks for.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The secrets that registration puts on the cluster. They come before those of a proxy.
    fn register(&mut self, wishes: &Wishes<'_>) {
        let registrations = wishes.template.pointer("/spec/registration").and_then(Value::as_array);
        let (mut mounts, mut volumes) = (Vec::new(), Vec::new());
        let mut mount = |name: &str, secret: String, path: String| {
            mounts.push(json!({"name": name, "mountPath": path}));
            volumes.push(json!({"name": name, "secret": {"secretName": secret}}));
        };
        for registration in registrations.into_iter().flatten() {
            match registration.get("type").and_then(Value::as_str) {
                Some("KubeClient") => {
                    let secret = format!("{}-hub-kubeconfig", wishes.addon);
                    mount("hub-kubeconfig", secret, "/managed/hub-kubeconfig".to_owned());
                }
                Some("CustomSigner") => {
                    let signer = registration.pointer("/customSigner/signerName").and_then(Value::as_str);
                    let flat = signer.unwrap_or_default().replace('/', "-");
                    let secret = format!("{}-{flat}-client-cert", wishes.addon);
                    mount(&format!("cert-{}", flat.replace('.', "-")), secret, format!("/managed/{flat}"));
                }
                _ => {}
            }
        }
        self.mounts.splice(0..0, mounts);
        self.volumes.splice(0..0, volumes);
    }

    fn configure(&mut self, wishes: &Wishes<'_>) -> Result<(), Problem> {
        let Some((config, content)) = wishes.deployment else { return Ok(()) };
        let Some(spec) = content.get("spec") else { return Ok(()) };
        let text = |value: &Value, field: &str| {
            value.get(field).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let list = |field: &str| spec.get(field).and_then(Value::as_array).into_iter().flatten();
        self.namespace = text(spec, "agentInstallNamespace");
        for registry in list("registries") {
            let part = |field| text(registry, field).unwrap_or_default().trim_end_matches('/').to_owned();
            self.registries.push((part("source"), part("mirror")));
        }
        for requirement in list("resourceRequirements") {
            let id = text(requirement, "containerID").unwrap_or_default();
            let parts: Vec<String> = id.split(':').map(str::to_owned).collect();
            let Ok(parts) = <[String; 3]>::try_from(parts) else {
                let why = format!("the containerID {id:?} is not of the form kind:workload:container");
                return Err(Problem::DeploymentConfigInvalid { config: config.clone(), why });
            };
            let resources = requirement.get("resources").cloned().unwrap_or_else(|| json!({}));
            self.resources.push((parts, resources));
        }
        let Some(proxy) = spec.get("proxyConfig") else { return Ok(()) };
        for (field, names) in [
            ("httpProxy", ["HTTP_PROXY", "http_proxy"]),
            ("httpsProxy", ["HTTPS_PROXY", "https_proxy"]),
            ("noProxy", ["NO_PROXY", "no_proxy"]),
        ] {
            if let Some(value) = text(proxy, field) {
                self.environment.extend(names.map(|name| (name.to_owned(), value.clone())));
            }
        }
        match text(proxy, "caBundle") {
            Some(bundle) => self.trust(wishes.addon, config, &bundle),
            None => Ok(()),
        }
    }

    /// The certificates of a proxy, in a ConfigMap that containers with a proxy mount.
    fn trust(&mut self, addon: &str, config: &ConfigRef, bundle: &str) -> Result<(), Problem> {
        let decoded = serde_json::from_value::<ByteString>(Value::from(bundle)).ok();
        let Some(text) = decoded.and_then(|bytes| String::from_utf8(bytes.0).ok()) else {
            let why = "its proxyConfig.caBundle is not text in base64".to_owned();
            return Err(Problem::DeploymentConfigInvalid { config: config.clone(), why });
        };
        let name = format!("{addon}-proxy-ca");
        self.objects.push(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "{{INSTALL_NAMESPACE}}"},
            "data": {PROXY_CA_FILE: text},
        }));
        if !self.environment.is_empty() {
            let path = format!("{PROXY_CA_MOUNT}/{PROXY_CA_FILE}");
            self.environment.push(("CA_BUNDLE_FILE_PATH".to_owned(), path));
            self.mounts.push(json!({"name": "proxy-ca-bundle", "mountPath": PROXY_CA_MOUNT}));
            self.volumes.push(json!({"name": "proxy-ca-bundle", "configMap": {"name": name}}));
        }
        Ok(())
    }

    /// Adds to a manifest whose variables are filled in. Stops before it has added more than a
    /// manifest may have: a short manifest can list very many containers.
    pub(super) fn add_to(&self, manifest: &mut Value) -> Result<(), Unfilled> {
        let mut room = Room::default();
        let resource = match (group(manifest), manifest.get("kind").and_then(Value::as_str)) {
            ("apps", Some("Deployment")) => Some("deployments"),
            ("apps", Some("DaemonSet")) => Some("daemonsets"),
            _ => None,
        };
        let name = manifest.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(resource) = resource
            && let Some(pod) = manifest.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut)
        {
            self.add_to_pod(pod, resource, &name, &mut room)?;
        }
        self.put_into_namespace(manifest, &mut room)
    }

    fn add_to_pod(
        &self,
        pod: &mut Map<String, Value>,
        resource: &str,
        workload: &str,
        room: &mut Room,
    ) -> Result<(), Unfilled> {
        let added = self.size_in_container();
        for container in pod.get_mut("containers").and_then(Value::as_array_mut).into_iter().flatten() {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let Some(container) = container.as_object_mut() else { continue };
            room.take(added)?;
            let environment = self.environment.iter();
            append(container, "env", environment.map(|(name, value)| json!({"name": name, "value": value})));
            append(container, "volumeMounts", self.mounts.iter().cloned());
            if let Some(Value::String(image)) = container.get_mut("image") {
                let mirrored = mirrored(&self.registries, image);
                room.take(AddedSize::of_bytes(mirrored.len().saturating_sub(image.len())))?;
                *image = mirrored;
            }
            let id = [resource, workload, &name];
            let matches =
                |pattern: &[String; 3]| pattern.iter().zip(id).all(|(one, is)| one == "*" || one == is);
            if let Some((_, wanted)) = self.resources.iter().rev().find(|(pattern, _)| matches(pattern)) {
                room.take(AddedSize::of_field(container, "resources", AddedSize::of(wanted)))?;
                container.insert("resources".to_owned(), wanted.clone());
            }
        }
        append(pod, "volumes", self.volumes.iter().cloned());
        Ok(())
    }

    /// What every container gets.
    fn size_in_container(&self) -> AddedSize {
        let environment = self.environment.iter().map(|(name, value)| AddedSize {
            bytes: r#"{"name":"","value":""}"#.len() + name.len() + value.len(),
            density: Density { values: 3, maps: 1 },
        });
        environment.chain(self.mounts.iter().map(AddedSize::of)).fold(AddedSize::default(), AddedSize::and)
    }

    /// An object without a namespace is taken as cluster-scoped.
    fn put_into_namespace(&self, manifest: &mut Value, room: &mut Room) -> Result<(), Unfilled> {
        let Some(namespace) = &self.namespace else { return Ok(()) };
        if let Some(own) = manifest.pointer_mut("/metadata/namespace").filter(|own| own.as_str() != Some(""))
        {
            *own = namespace.as_str().into();
        }
        match manifest.get("kind").and_then(Value::as_str) {
            Some("RoleBinding" | "ClusterRoleBinding") => {
                let subjects = manifest.get_mut("subjects").and_then(Value::as_array_mut);
                for subject in subjects.into_iter().flatten().filter_map(Value::as_object_mut) {
                    room.take(AddedSize::of_field(
                        subject,
                        "namespace",
                        AddedSize::of_bytes(namespace.len()),
                    ))?;
                    subject.insert("namespace".to_owned(), namespace.as_str().into());
                }
            }
            Some("Namespace") => {
                if let Some(name) = manifest.pointer_mut("/metadata/name") {
                    *name = namespace.as_str().into();
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// How much is added to a manifest: never more than what it has more of afterwards.
#[derive(Clone, Copy, Debug, Default)]
struct AddedSize {
    bytes: usize,
    density: Density,
}

impl AddedSize {
    fn of(value: &Value) -> Self {
        let text = hash::canonical(value);
        Self { bytes: text.len(), density: Density::of_text(text.as_bytes()) }
    }

    fn of_bytes(bytes: usize) -> Self {
        Self { bytes, density: Density::default() }
    }

    /// A field that is set in this map. A map without any field takes much less memory.
    fn of_field(map: &Map<String, Value>, key: &str, value: Self) -> Self {
        let density = Density { values: 0, maps: usize::from(map.is_empty()) };
        value.and(Self { bytes: key.len(), density })
    }

    fn and(mut self, other: Self) -> Self {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.density.add(other.density);
        self
    }
}

/// What was added to a manifest so far.
#[derive(Default)]
struct Room {
    taken: AddedSize,
}

impl Room {
    fn take(&mut self, size: AddedSize) -> Result<(), Unfilled> {
        self.taken = self.taken.and(size);
        if self.taken.bytes > WORK_LIMIT {
            return Err(Unfilled::TooLarge);
        }
        if self.taken.density.is_too_much() { Err(Unfilled::TooDense) } else { Ok(()) }
    }
}

fn group(manifest: &Value) -> &str {
    let version = manifest.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    version.split_once('/').map_or("", |(group, _)| group)
}

fn append(map: &mut Map<String, Value>, key: &str, items: impl Iterator<Item = Value>) {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return;
    }
    let list = map.entry(key).or_insert_with(|| json!([]));
    if list.is_null() {
        *list = json!([]);
    }
    if let Some(list) = list.as_array_mut() {
        list.extend(items);
    }
}

/// The image as its last matching mirror has it. An empty source matches every image, and keeps
/// only its last part.
fn mirrored(registries: &[(String, String)], image: &str) -> String {
    let mirror = |(source, mirror): &(String, String)| {
        let last = image.rsplit('/').next().unwrap_or(image);
        match (source.as_str(), mirror.as_str()) {
            ("", "") => Some(last.to_owned()),
            ("", mirror) => Some(format!("{mirror}/{last}")),
            (source, mirror) => image.strip_prefix(source).map(|rest| format!("{mirror}{rest}")),
        }
    };
    let mut mirrors = registries.iter().filter_map(mirror).filter(|mirrored| mirrored != image);
    mirrors.next_back().unwrap_or_else(|| image.to_owned())
}
