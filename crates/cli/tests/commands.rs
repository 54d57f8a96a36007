//! The small commands, and what all commands have in common.

use std::io::Read as _;
use std::process::Stdio;

use crate::transcript::desk;
use expect_test::expect;

#[test]
fn hashes_are_those_of_the_hub() {
    let desk = desk("hash").input("{\"spec\":{\"test\":1}}\n");
    desk.check(
        "hash -f -",
        &expect![[r#"
        $ aviary hash -f -
        af144391b79b4b07bd7c579980ae9ed42dc8e34f7babebbf3fd08cacb578fba4  standard input: document 1
    "#]],
    );
    let desk = desk.input("{}\n---\ndata: {test: 1}\n---\n# key order, comments and metadata do not count\nkind: X\napiVersion: v1\nmetadata: {name: thing, namespace: some}\nspec: {test: 1}\nstatus: {a: b}\n");
    desk.check(
        "hash -f -",
        &expect![[r#"
            $ aviary hash -f -
            44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a  standard input: document 1
            766dd25b5177d7bd3673d1bc2d015b74f9fefec024319e5b6a49eef9236bbfa1  standard input: document 2
            af144391b79b4b07bd7c579980ae9ed42dc8e34f7babebbf3fd08cacb578fba4  standard input: document 3 (X some/thing)
        "#]],
    );
    desk.check(
        "hash -f - -o json",
        &expect![[r#"
            $ aviary hash -f - -o json
            {
              "documents": [
                {
                  "hash": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
                  "file": "standard input",
                  "document": 1,
                  "line": 1
                },
                {
                  "hash": "766dd25b5177d7bd3673d1bc2d015b74f9fefec024319e5b6a49eef9236bbfa1",
                  "file": "standard input",
                  "document": 2,
                  "line": 3
                },
                {
                  "hash": "af144391b79b4b07bd7c579980ae9ed42dc8e34f7babebbf3fd08cacb578fba4",
                  "file": "standard input",
                  "document": 3,
                  "line": 6,
                  "apiVersion": "v1",
                  "kind": "X",
                  "namespace": "some",
                  "name": "thing"
                }
              ]
            }
        "#]],
    );
    desk.check(
        "hash -f - -o yaml",
        &expect![[r#"
            $ aviary hash -f - -o yaml
            documents:
            - hash: 44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a
              file: standard input
              document: 1
              line: 1
            - hash: 766dd25b5177d7bd3673d1bc2d015b74f9fefec024319e5b6a49eef9236bbfa1
              file: standard input
              document: 2
              line: 3
            - hash: af144391b79b4b07bd7c579980ae9ed42dc8e34f7babebbf3fd08cacb578fba4
              file: standard input
              document: 3
              line: 6
              apiVersion: v1
              kind: X
              namespace: some
              name: thing
        "#]],
    );
}

#[test]
fn every_definition_is_printed_and_admits_what_it_defines() {
    let desk = desk("crds");
    let yaml = String::from_utf8(desk.output("crds").stdout).unwrap();
    let stream: Vec<serde_json::Value> = serde_saphyr::from_multiple(&yaml).unwrap();
    let list = desk.json("crds -o json", 0);
    assert_eq!(list["kind"], "List");
    assert_eq!(list["items"].as_array().unwrap(), &stream, "both forms say the same");
    let names: Vec<&str> = stream.iter().map(|crd| crd["metadata"]["name"].as_str().unwrap()).collect();
    expect![[r#"
        clustermanagementaddons.addon.open-cluster-management.io
        managedclusteraddons.addon.open-cluster-management.io
        addonhubconfigs.addon.open-cluster-management.io
        addondeploymentconfigs.addon.open-cluster-management.io
        addontemplates.addon.open-cluster-management.io
        addonrolloutpolicies.addon.open-cluster-management.io
        addonrolloutrecords.addon.open-cluster-management.io
        managedclusters.cluster.open-cluster-management.io
        managedclustersets.cluster.open-cluster-management.io
        managedclustersetbindings.cluster.open-cluster-management.io
        placements.cluster.open-cluster-management.io
        placementdecisions.cluster.open-cluster-management.io
        manifestworks.work.open-cluster-management.io"#]]
    .assert_eq(&names.join("\n"));
}

#[test]
fn versions() {
    let desk = desk("version");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(desk.run("version"), format!("$ aviary version\naviary {version}\n"));
    assert_eq!(desk.run("--version"), format!("$ aviary --version\naviary {version}\n"));
    assert_eq!(desk.json("version -o json", 0)["version"], version);
}

#[test]
fn completion_scripts_know_the_commands() {
    let desk = desk("completion");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = String::from_utf8(desk.output(&format!("completion {shell}")).stdout).unwrap();
        assert!(script.contains("lint") && script.contains("plan"), "{shell}");
    }
}

#[test]
fn help_has_examples_for_every_command() {
    let desk = desk("help");
    for command in ["plan", "lint", "hash", "crds", "manifests", "completion", "version"] {
        for flag in ["-h", "--help"] {
            let output = desk.output(&format!("{command} {flag}"));
            let help = String::from_utf8(output.stdout).unwrap();
            assert!(help.contains("Examples:\n") && help.contains("$ aviary "), "{command} {flag}: {help}");
            assert!(help.lines().all(|line| line.chars().count() <= 100), "{command} {flag} is too wide");
        }
    }
    desk.check(
        "hash --help",
        &expect![[r#"
            $ aviary hash --help
            Print the spec hash of each document.

            The spec hash is the SHA-256 of an object without apiVersion, kind, metadata and status. It shows
            whether a config has changed: only a changed hash starts a rollout. Values that are not Kubernetes
            objects are hashed as they are.

            Usage: aviary hash [OPTIONS] [FILE]...

            Arguments:
              [FILE]...
                      The same, without -f

            Options:
              -f, --filename <FILE>...
                      YAML or JSON file with any number of documents, a directory (its .yaml, .yml and .json
                      files), or - for standard input. May be given several times, and with several files

              -o, --output <FORMAT>
                      Output format: json and yaml have a stable structure; wide is untruncated text

                      [possible values: json, yaml, wide]

                  --no-color
                      Disable colours; also disabled by the variable NO_COLOR and when the output is not a
                      terminal

              -R, --recursive
                      Read directories with all directories below them

              -h, --help
                      Print help (see a summary with '-h')

            Output, one line each: the hash, the file and document, and its kind and name.

            Output with -o json:
              documents[]  {hash, file, document, item, line, apiVersion, kind, namespace, name};
                           item is the position in a List; fields that do not apply are absent

            Exit codes:
              0 success; 1 a file is invalid and nothing was hashed; 2 wrong usage

            Examples:
              $ aviary hash -f hub-config.yaml
              $ kubectl get addonhubconfigs -o yaml | aviary hash -f -
              $ echo '{"spec":{"test":1}}' | aviary hash -f -
        "#]],
    );
}

#[cfg(unix)]
#[test]
fn as_a_plugin_it_goes_by_its_other_name() {
    let desk = desk("plugin").file("gone", "");
    let plugin = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugin/kubectl-aviary");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_aviary"), &plugin).unwrap();
    let _ = desk;
    let output = std::process::Command::new(&plugin).args(["lint", "-h"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(help.contains("Usage: kubectl aviary lint"), "{help}");
    assert!(help.contains("$ kubectl aviary lint -f addon.yaml"), "{help}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let desk = desk("pipe");
    for command in ["crds", "crds -o json", "manifests", "completion bash"] {
        let mut child = desk.command(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 1];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stderr.is_empty(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn output_that_is_no_terminal_has_no_colours() {
    let desk = desk("colours").file("a.yaml", "apiVersion: v1\nkind: ConfigMap\n");
    for arguments in ["lint -f a.yaml", "lint -f a.yaml --no-color"] {
        assert!(!desk.run(arguments).contains('\u{1b}'), "{arguments}");
    }
}
