//! The server that all tests share, with kubectl, helm and our own binary.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::run::Hub;
use crate::transcript::{Desk, desk, words};

pub(crate) const NAMESPACE: &str = "open-cluster-management";

static TURN: Mutex<()> = Mutex::new(());

/// Minimal kinds of the Prometheus operator.
const MONITORING: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: KINDs.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {plural: KINDs, singular: KIND, kind: NAME, listKind: NAMEList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
";

/// Exclusive access to the server, and a directory to work in.
pub(crate) struct Server {
    pub(crate) desk: Desk,
    folder: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Locks the server in its current state.
pub(crate) fn server(name: &str) -> Server {
    let folder = std::env::var_os("AVIARY_KUBERNETES")
        .expect("AVIARY_KUBERNETES to name the folder of a server: run make test-kubernetes");
    let folder = PathBuf::from(folder);
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let desk = desk(&format!("kubernetes-{name}"));
    std::fs::copy(folder.join("kubeconfig"), desk.path("admin.kubeconfig")).unwrap();
    Server { desk, folder, _turn: turn }
}

/// Locks the server with everything installed.
pub(crate) fn installed(name: &str) -> Server {
    let server = server(name);
    server.install();
    server
}

impl Server {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Installs the output of `aviary manifests`, as users do.
    pub(crate) fn install(&self) -> String {
        for name in ["ServiceMonitor", "PrometheusRule"] {
            let kind = name.to_lowercase();
            let definition = MONITORING.replace("KIND", &kind).replace("NAME", name);
            self.kubectl("apply -f -", definition.as_bytes());
            self.kubectl(&format!("wait --for=condition=Established crd/{kind}s.monitoring.coreos.com"), b"");
        }
        // Where an OCM hub has its controllers.
        let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: open-cluster-management-hub}\n";
        self.kubectl("apply -f -", namespace.as_bytes());
        let manifests = self.aviary("manifests");
        let told = self.kubectl("apply -f -", manifests.as_bytes());
        for line in told.lines().filter(|line| line.starts_with("customresourcedefinition")) {
            let crd = line.split(['/', ' ']).nth(1).unwrap();
            self.kubectl(&format!("wait --for=condition=Established --timeout=60s crd/{crd}"), b"");
        }
        self.until("the roles to be put together", || {
            self.kubectl("get clusterrole aviary-config-kinds -o json", b"").contains("addontemplates")
        });
        told
    }

    /// The output of our command, which must succeed.
    #[track_caller]
    pub(crate) fn aviary(&self, arguments: &str) -> String {
        succeeded(arguments, self.desk.output(arguments))
    }

    /// The output of kubectl as an administrator, which must succeed.
    #[track_caller]
    pub(crate) fn kubectl(&self, arguments: &str, input: &[u8]) -> String {
        succeeded(arguments, self.try_kubectl("admin.kubeconfig", arguments, input))
    }

    /// The error of kubectl, which must fail.
    #[track_caller]
    pub(crate) fn refused(&self, kubeconfig: &str, arguments: &str, input: &[u8]) -> String {
        let output = self.try_kubectl(kubeconfig, arguments, input);
        assert!(!output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).unwrap()
    }

    pub(crate) fn try_kubectl(&self, kubeconfig: &str, arguments: &str, input: &[u8]) -> Output {
        let program = std::env::var("AVIARY_KUBECTL").unwrap_or_else(|_| "kubectl".into());
        let mut command = Command::new(program);
        command.arg("--kubeconfig").arg(self.desk.path(kubeconfig)).args(words(arguments));
        run(command, input)
    }

    /// Reads an object.
    #[track_caller]
    pub(crate) fn get(&self, what: &str) -> Value {
        serde_json::from_str(&self.kubectl(&format!("get {what} -o json"), b"")).unwrap()
    }

    /// Writes fields of the status of an instance. Old versions of kubectl have no `--subresource`.
    pub(crate) fn set_status(&self, cluster: &str, addon: &str, fields: &Value) {
        self.until("the status to be written", || {
            let mut object = self.get(&format!("managedclusteraddon {addon} -n {cluster}"));
            for (name, value) in fields.as_object().unwrap() {
                object["status"][name] = value.clone();
            }
            let version = object["apiVersion"].as_str().unwrap();
            let path = format!("/apis/{version}/namespaces/{cluster}/managedclusteraddons/{addon}/status");
            // Refused if somebody else has written the object in between.
            let replace = format!("replace --raw {path} -f -");
            self.try_kubectl("admin.kubeconfig", &replace, object.to_string().as_bytes()).status.success()
        });
    }

    /// Writes a kubeconfig with the token of a ServiceAccount.
    pub(crate) fn kubeconfig_of(&self, namespace: &str, account: &str) -> String {
        let mut command = Command::new(root().join("hack/real-apiserver.sh"));
        command.arg("token").arg(&self.folder).args([namespace, account]);
        let text = succeeded("a token", run(command, b""));
        let name = format!("{account}.kubeconfig");
        std::fs::write(self.desk.path(&name), text).unwrap();
        name
    }

    /// The kubeconfig of a ServiceAccount that is bound to a ClusterRole.
    pub(crate) fn account_with(&self, role: &str) -> String {
        let account = format!("test-{role}");
        let objects = format!(
            "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {account}, namespace: default}}\n---\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {account}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}\n\
             subjects: [{{kind: ServiceAccount, name: {account}, namespace: default}}]\n"
        );
        self.kubectl("apply -f -", objects.as_bytes());
        self.kubeconfig_of("default", &account)
    }

    pub(crate) async fn hub(&self) -> Hub {
        Hub::of(&self.desk, "admin.kubeconfig").await
    }

    /// Polls, because no event reports it.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, is: impl Fn() -> bool) {
        let give_up = std::time::Instant::now() + std::time::Duration::from_secs(120);
        while !is() {
            assert!(std::time::Instant::now() < give_up, "waited in vain for {what}");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}

fn run(mut command: Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    // In a separate thread: otherwise a child that prints much before it has read all its input
    // would deadlock.
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    // A child that reads nothing may exit before.
    let _ = writer.join();
    output
}

#[track_caller]
pub(crate) fn succeeded(what: &str, output: Output) -> String {
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {complaint}{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).unwrap()
}

/// The output of helm, which must succeed.
#[track_caller]
pub(crate) fn helm(server: &Server, arguments: &str) -> String {
    let program = std::env::var("AVIARY_HELM").expect("AVIARY_HELM to name a helm");
    let mut command = Command::new(program);
    command.arg("--kubeconfig").arg(server.desk.path("admin.kubeconfig")).args(words(arguments));
    command
        .current_dir(root())
        .env("HELM_CACHE_HOME", server.desk.path("helm"))
        .env("HELM_CONFIG_HOME", server.desk.path("helm"));
    command.env("HELM_DATA_HOME", server.desk.path("helm"));
    succeeded(arguments, run(command, b""))
}
