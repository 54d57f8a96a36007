//! Bad input: every row of the table, at admission and as an object that was stored before the
//! rules existed.
//!
//! A row has an input, the hub's response to it, and what the manager reports once it is stored.
//! One driver runs all rows of a group concurrently on one hub, next to a healthy add-on. That
//! add-on must be upgraded meanwhile, and end up as if it were alone. In the end everything must be
//! at rest, now and an hour later. `docs/bad-input.md` is generated from the same table.

mod row;
mod site;

mod drive;
mod gate;
mod hands;
mod healthy;

mod clusters;
mod configs;
mod contents;
mod edits;
mod limits;
mod placements;
mod works;

use row::Row;

/// Every group of the table.
fn table() -> Vec<(&'static str, Vec<Row>)> {
    vec![
        ("Limits and times", limits::rows()),
        ("Placements and canaries", placements::rows()),
        ("Clusters", clusters::rows()),
        ("Configs", configs::rows()),
        ("Contents and templates", contents::rows()),
        ("Frequent edits, and edits without effect", edits::rows()),
        ("Works, agents and instances", works::rows()),
    ]
}

fn group(title: &str) -> Vec<Row> {
    table().into_iter().find(|(known, _)| *known == title).unwrap().1
}

macro_rules! groups {
    ($($test:ident: $title:literal,)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            drive::all(group($title)).await;
        })*

        /// Every group of the table has a test.
        #[test]
        fn every_group_is_run() {
            let run: Vec<&str> = vec![$($title),*];
            let all: Vec<&str> = table().iter().map(|(title, _)| *title).collect();
            assert_eq!(run, all);
        }
    };
}

groups! {
    limits_and_times: "Limits and times",
    placements_and_canaries: "Placements and canaries",
    clusters_by_name: "Clusters",
    configs_that_cannot_be_had: "Configs",
    contents_and_templates: "Contents and templates",
    frequent_edits_and_edits_without_effect: "Frequent edits, and edits without effect",
    works_agents_and_instances: "Works, agents and instances",
}

/// The healthy add-on without the bad input, for comparison.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_healthy_add_on_alone() {
    drive::all(Vec::new()).await;
}

/// Regenerate with `UPDATE_EXPECT=1`.
#[test]
fn the_table_for_people_is_this_table() {
    let mut text = String::from(
        "# Bad input: what happens\n\n\
         Invalid input is rejected when it is applied, if a schema or an admission rule can detect it. Other invalid input, and\n\
         objects stored before the rules existed, are reported in a condition of the object at fault. It affects only that\n\
         add-on, which recovers when the input is fixed. It does not cause repeated writes.\n\n\
         This page is generated from the table of the end-to-end tests, `crates/controller/tests/e2e/bad_input`. The tests run\n\
         every row, on the embedded hub and on a Kubernetes API server, next to a healthy add-on that is upgraded at the same\n\
         time. `<placement>` and the like stand for the names of the objects.\n",
    );
    for (title, rows) in table() {
        text.push_str(&format!(
            "\n## {title}\n\n| input | when applied | when it is stored |\n|---|---|---|\n"
        ));
        for row in rows {
            text.push_str(&row.for_people());
        }
    }
    expect_test::expect_file!["../../../../../docs/bad-input.md"].assert_eq(&text);
}
