//! Bad files: one clear line each, exit code 1, and no other output.

use crate::transcript::desk;
use expect_test::expect;

const CONFIG: &str = "\
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnHubConfig
metadata: {name: a}
spec: {desiredVersion: v1}
";

#[test]
fn a_file_that_is_not_there() {
    let desk = desk("missing").file("good.yaml", CONFIG);
    desk.check(
        "hash -f gone.yaml good.yaml",
        &expect![[r#"
        $ aviary hash -f gone.yaml good.yaml
        ! gone.yaml: there is no such file
        exit 1
    "#]],
    );
    desk.check(
        "lint -f gone.yaml good.yaml",
        &expect![[r#"
        $ aviary lint -f gone.yaml good.yaml
        1 document: 1 error. Fix and run again: aviary lint -f gone.yaml good.yaml
        ! gone.yaml: there is no such file
        exit 1
    "#]],
    );
    desk.check(
        "plan -f gone.yaml",
        &expect![[r#"
        $ aviary plan -f gone.yaml
        ! gone.yaml: there is no such file
        exit 1
    "#]],
    );
}

#[test]
fn a_directory_stands_for_its_files() {
    let desk = desk("directory")
        .file("deploy/b.yaml", CONFIG.replace("name: a", "name: b"))
        .file("deploy/a.yml", CONFIG)
        .file("deploy/notes.txt", "not: read")
        .file("empty/notes.txt", "not: read");
    desk.check("hash -f deploy", &expect![[r#"
        $ aviary hash -f deploy
        b433cd0d0c75bb9a56565856b7e938ded23a41f959d84bd35e6305cc514db112  deploy/a.yml: document 1 (AddOnHubConfig a)
        b433cd0d0c75bb9a56565856b7e938ded23a41f959d84bd35e6305cc514db112  deploy/b.yaml: document 1 (AddOnHubConfig b)
    "#]]);
    desk.check(
        "hash -f empty",
        &expect![[r#"
        $ aviary hash -f empty
        ! empty: is a directory without any .yaml, .yml or .json file
        exit 1
    "#]],
    );
}

#[test]
fn files_without_a_document() {
    let desk = desk("empty").file("empty.yaml", "").file("comments.yaml", "# nothing\n---\n# here\n");
    desk.check(
        "hash -f empty.yaml comments.yaml",
        &expect![[r#"
        $ aviary hash -f empty.yaml comments.yaml
        ! empty.yaml: is empty: it contains only comments and white space
        ! comments.yaml: is empty: it contains only comments and white space
        exit 1
    "#]],
    );
    desk.check(
        "plan -f empty.yaml",
        &expect![[r#"
        $ aviary plan -f empty.yaml
        ! empty.yaml: is empty: it contains only comments and white space
        exit 1
    "#]],
    );
}

#[test]
fn files_that_are_not_text() {
    let desk = desk("binary").file("nul.yaml", b"a: \0").file("latin1.yaml", b"a: caf\xe9");
    desk.check(
        "hash -f nul.yaml latin1.yaml",
        &expect![[r#"
            $ aviary hash -f nul.yaml latin1.yaml
            ! nul.yaml: is not text: it contains NUL bytes; use YAML or JSON in UTF-8
            ! latin1.yaml: is not text: byte 7 is not UTF-8; use YAML or JSON in UTF-8
            exit 1
        "#]],
    );
}

#[test]
fn yaml_that_cannot_be_read_says_line_and_column_of_the_file() {
    let desk = desk("bad_yaml")
        .file("bad.yaml", format!("{CONFIG}---\n# second\na: b: c\n---\nx: [1, 2\ny: 3\n---\nk: 1\nk: 2\n"))
        .file("bad.json", "{\n  \"a\": 1,\n}")
        .file("tab.yaml", "a:\n\t- b\n");
    desk.check("hash -f bad.yaml bad.json tab.yaml", &expect![[r#"
        $ aviary hash -f bad.yaml bad.json tab.yaml
        ! bad.yaml: document 2: line 7, column 5: is not YAML: mapping values are not allowed in this context
        ! bad.yaml: document 3: line 10, column 2: is not YAML: illegal placement of ':' indicator
        ! bad.yaml: document 4: line 13, column 1: is not YAML: duplicate mapping key: k not allowed here
        ! bad.json: document 1: line 3, column 1: is not JSON: trailing comma
        ! tab.yaml: document 1: line 2, column 2: is not YAML: tabs disallowed within this context (block indentation)
        exit 1
    "#]]);
    desk.check(
        "lint -f bad.yaml",
        &expect![[r#"
        $ aviary lint -f bad.yaml
        1 document: 3 errors. Fix and run again: aviary lint -f bad.yaml
        ! bad.yaml: document 2: line 7, column 5: is not YAML: mapping values are not allowed in this context
        ! bad.yaml: document 3: line 10, column 2: is not YAML: illegal placement of ':' indicator
        ! bad.yaml: document 4: line 13, column 1: is not YAML: duplicate mapping key: k not allowed here
        exit 1
    "#]],
    );
}

#[test]
fn nesting_without_end_is_refused() {
    let block: String = (0..10_000).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    let laughs: String =
        (1..30).map(|level| format!("l{level}: &l{level} [*l{0}, *l{0}]\n", level - 1)).collect();
    let desk = desk("deep")
        .file("flow.yaml", "[".repeat(10_000))
        .file("flow.json", "[".repeat(10_000))
        .file("block.yaml", block)
        .file("laughs.yaml", format!("l0: &l0 ha\n{laughs}"));
    desk.check(
        "hash -f flow.yaml flow.json block.yaml laughs.yaml",
        &expect![[r#"
        $ aviary hash -f flow.yaml flow.json block.yaml laughs.yaml
        ! flow.yaml: document 1: line 1, column 256: nests too deep: an object may have 100 levels
        ! flow.json: document 1: line 1, column 128: nests too deep: an object may have 100 levels
        ! block.yaml: document 1: line 121, column 121: nests too deep: an object may have 100 levels
        ! laughs.yaml: document 1: line 19, column 12: becomes too large: its aliases repeat too much
        exit 1
    "#]],
    );
    desk.check(
        "plan -f block.yaml",
        &expect![[r#"
        $ aviary plan -f block.yaml
        ! block.yaml: document 1: line 121, column 121: nests too deep: an object may have 100 levels
        exit 1
    "#]],
    );
}

#[test]
fn documents_that_are_no_objects() {
    let desk = desk("no_objects")
        .file("values.yaml", "5\n---\n- a\n- b\n---\nspec: {}\n---\napiVersion: v1\nmetadata: {name: a}\n");
    desk.check(
        "hash -f values.yaml",
        &expect![[r#"
        $ aviary hash -f values.yaml
        ef2d127de37b942baad06145e54b0c619a1f22327b2ebbcfbec78f5564afe39d  values.yaml: document 1
        0473ef2dc0d324ab659d3580c1134e9d812035905c4781fdd6d529b0c6860e13  values.yaml: document 2
        53aa778a9b137a0ca7ab79937d069870b14440dae5922f51d940ffa4b178d5cb  values.yaml: document 3
        44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a  values.yaml: document 4 (a)
    "#]],
    );
    desk.check("plan -f values.yaml", &expect![[r#"
        $ aviary plan -f values.yaml
        ! values.yaml: document 1: is not a Kubernetes object but a value
        ! values.yaml: document 2: is not a Kubernetes object but a list: write the objects as separate documents, or as a List
        ! values.yaml: document 3: apiVersion: is missing: every object needs an apiVersion and a kind
        ! values.yaml: document 4 (a): kind: is missing: every object needs an apiVersion and a kind
        exit 1
    "#]]);
    desk.check("lint -f values.yaml", &expect![[r#"
        $ aviary lint -f values.yaml
        values.yaml: document 1: is not a Kubernetes object but a value
        values.yaml: document 2: is not a Kubernetes object but a list: write the objects as separate documents, or as a List
        values.yaml: document 3: apiVersion: is missing: every object needs an apiVersion and a kind
        values.yaml: document 4 (a): kind: is missing: every object needs an apiVersion and a kind
        4 documents: 4 errors. Fix and run again: aviary lint -f values.yaml
        exit 1
    "#]]);
}

#[test]
fn items_of_a_list_count_one_by_one() {
    let list = "\
apiVersion: v1
kind: List
items:
- apiVersion: addon.open-cluster-management.io/v1alpha1
  kind: AddOnHubConfig
  metadata: {name: a}
- apiVersion: addon.open-cluster-management.io/v1alpha1
  kind: AddOnHubConfig
  metadata: {name: b, namespace: default}
";
    let typed = "\
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnHubConfigList
items: [{metadata: {name: c}}, {metadata: {name: c}}]
";
    let desk = desk("list").file("list.yaml", list).file("typed.yaml", typed);
    desk.check("hash -f list.yaml typed.yaml", &expect![[r#"
        $ aviary hash -f list.yaml typed.yaml
        44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a  list.yaml: document 1, item 1 (AddOnHubConfig a)
        44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a  list.yaml: document 1, item 2 (AddOnHubConfig default/b)
        44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a  typed.yaml: document 1, item 1 (AddOnHubConfig c)
        44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a  typed.yaml: document 1, item 2 (AddOnHubConfig c)
    "#]]);
    desk.check("lint -f list.yaml typed.yaml", &expect![[r#"
        $ aviary lint -f list.yaml typed.yaml
        list.yaml: document 1, item 1 (AddOnHubConfig a): spec: Required value
        list.yaml: document 1, item 2 (AddOnHubConfig default/b): metadata.namespace: AddOnHubConfig is cluster-scoped and has no namespace: leave it out
        typed.yaml: document 1, item 1 (AddOnHubConfig c): spec: Required value
        typed.yaml: document 1, item 2 (AddOnHubConfig c): the same object is in typed.yaml: document 1, item 1 (AddOnHubConfig c): give it once
        4 documents: 4 errors. Fix and run again: aviary lint -f list.yaml typed.yaml
        exit 1
    "#]]);
}

#[test]
fn the_same_object_or_file_twice() {
    let desk = desk("twice").file("one.yaml", CONFIG).file("two.yaml", CONFIG);
    desk.check("plan -f one.yaml -f two.yaml", &expect![[r#"
        $ aviary plan -f one.yaml -f two.yaml
        ! two.yaml: document 1 (AddOnHubConfig a): the same object is in one.yaml: document 1 (AddOnHubConfig a): give it once
        exit 1
    "#]]);
    desk.check("lint -f one.yaml two.yaml", &expect![[r#"
        $ aviary lint -f one.yaml two.yaml
        two.yaml: document 1 (AddOnHubConfig a): the same object is in one.yaml: document 1 (AddOnHubConfig a): give it once
        2 documents: 1 error. Fix and run again: aviary lint -f one.yaml two.yaml
        exit 1
    "#]]);
    desk.check(
        "lint -f one.yaml one.yaml",
        &expect![[r#"
        $ aviary lint -f one.yaml one.yaml
        1 document: 1 error. Fix and run again: aviary lint -f one.yaml one.yaml
        ! one.yaml: is given twice
        exit 1
    "#]],
    );
}

#[test]
fn a_directory_is_read_without_those_in_it_unless_asked() {
    let desk = desk("directories")
        .file("deploy/one.yaml", CONFIG)
        .file("deploy/notes.txt", "not: read: at: all")
        .file("deploy/more/two.yml", CONFIG.replace("name: a", "name: b"));
    let told: String =
        ["lint deploy", "lint deploy -R", "lint -f deploy/ --recursive"].map(|line| desk.run(line)).concat();
    expect![[r#"
        $ aviary lint deploy
        1 document: nothing wrong.
        $ aviary lint deploy -R
        2 documents: nothing wrong.
        $ aviary lint -f deploy/ --recursive
        2 documents: nothing wrong.
    "#]]
    .assert_eq(&told);
    let desk = desk.file("above/deploy/one.yaml", CONFIG);
    desk.check(
        "lint above",
        &expect![[r#"
            $ aviary lint above
            0 documents: 1 error. Fix and run again: aviary lint -f above
            ! above: is a directory without any .yaml, .yml or .json file; -R also reads the directories in it
            exit 1
        "#]],
    );
}

#[test]
fn a_plan_without_an_add_on() {
    desk("nothing_to_plan").file("one.yaml", CONFIG).check(
        "plan -f one.yaml",
        &expect![[r#"
        $ aviary plan -f one.yaml
        ! aviary: there is nothing to plan: no ClusterManagementAddOn is in the files
        exit 1
    "#]],
    );
}

#[test]
fn objects_that_the_hub_would_refuse_are_not_planned() {
    let bad = "\
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: hello, annotations: {a: true}}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: no}
---
apiVersion: addon.open-cluster-management.io/v1beta1
kind: ClusterManagementAddOn
metadata: {name: hello}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddon
metadata: {name: hello}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ManagedClusterAddOn
metadata: {name: hello}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: Hello, namespace: default}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: other}
spec:
  installStrategy:
    type: Placements
    placements:
    - name: a
      namespace: default
      rolloutStratgy: {type: RollingUpdate}
      rolloutStrategy: {type: RollingUpdate, rollingUpdate: {maxConcurrentlyUpdating: 0}}
";
    desk("refused").file("bad.yaml", bad).check("plan -f bad.yaml", &expect![[r#"
        $ aviary plan -f bad.yaml
        ! bad.yaml: document 1 (ClusterManagementAddOn hello): metadata.annotations[a]: true is not a string: put it in quotes
        ! bad.yaml: document 2 (ClusterManagementAddOn): metadata.name: false is not a string: put it in quotes
        ! bad.yaml: document 3 (ClusterManagementAddOn hello): apiVersion: "addon.open-cluster-management.io/v1beta1" does not serve ClusterManagementAddOn: use addon.open-cluster-management.io/v1alpha1
        ! bad.yaml: document 4 (ClusterManagementAddon hello): kind: "ClusterManagementAddon" is not a kind of addon.open-cluster-management.io
        ! bad.yaml: document 5 (ManagedClusterAddOn hello): metadata.namespace: is missing: use the name of the cluster
        ! bad.yaml: document 6 (ClusterManagementAddOn default/Hello): metadata.name: "Hello" may only have lower-case letters, digits, '-' and '.', at most 253, and must start and end with a letter or digit
        ! bad.yaml: document 6 (ClusterManagementAddOn default/Hello): metadata.namespace: ClusterManagementAddOn is cluster-scoped and has no namespace: leave it out
        ! bad.yaml: document 7 (ClusterManagementAddOn other): spec.installStrategy.placements[0].rolloutStratgy: is not a field of this kind
        ! bad.yaml: document 7 (ClusterManagementAddOn other): spec.installStrategy.placements[0].rolloutStrategy.rollingUpdate.maxConcurrentlyUpdating: Invalid value: 0: should be greater than or equal to 1
        ! bad.yaml: document 7 (ClusterManagementAddOn other): spec.installStrategy.placements[0].rolloutStrategy.rollingUpdate.maxConcurrentlyUpdating: Invalid value: "integer": must be a whole number of at least 1, or a whole percentage from 1% to 100%
        exit 1
    "#]]);
}

#[test]
fn wrong_usage() {
    let desk = desk("usage");
    desk.check(
        "plan",
        &expect![[r#"
            $ aviary plan
            ! error: the following required arguments were not provided:
            !   <ADDON|--filename <FILE>...>
            !
            ! Usage: aviary plan <ADDON|--filename <FILE>...>
            !
            ! For more information, try '--help'.
            exit 2
        "#]],
    );
    desk.check("plan -f a.yaml --now yesterday", &expect![[r#"
        $ aviary plan -f a.yaml --now yesterday
        ! error: invalid value 'yesterday' for '--now <RFC3339>': failed to parse four digit integer as year: invalid digit, expected 0-9 but got y
        !
        ! For more information, try '--help'.
        exit 2
    "#]]);
    desk.check(
        "fly",
        &expect![[r#"
            $ aviary fly
            ! error: unrecognized subcommand 'fly'
            !
            ! Usage: aviary [OPTIONS] <COMMAND>
            !
            ! For more information, try '--help'.
            exit 2
        "#]],
    );
    desk.check(
        "hash -f a -o xml",
        &expect![[r#"
            $ aviary hash -f a -o xml
            ! error: invalid value 'xml' for '--output <FORMAT>'
            !   [possible values: json, yaml, wide]
            !
            !   tip: a similar value exists: 'yaml'
            !
            ! For more information, try '--help'.
            exit 2
        "#]],
    );
}
