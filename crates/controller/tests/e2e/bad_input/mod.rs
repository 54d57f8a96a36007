//! Bad input: every line of the list, each on admission and as an object that was stored before the rules were there.
//!
//! A row says what is put, what the hub says to it, and what the manager says once it is stored. One driver takes all rows of a group through
//! the same life, side by side on one hub and beside an add-on in good health: that one must be upgraded all the while, and end up as if it were
//! alone. In the end everything must be at rest, today and in an hour. `docs/bad-input.md` is the same table, for people.

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
        ("Edits that come often, or say nothing new", edits::rows()),
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

        /// A group that no test runs would only be words.
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
    edits_that_come_often_or_say_nothing_new: "Edits that come often, or say nothing new",
    works_agents_and_instances: "Works, agents and instances",
}

/// What the add-on beside the bad ones comes to without them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_healthy_add_on_alone() {
    drive::all(Vec::new()).await;
}

/// Written anew with `UPDATE_EXPECT=1`.
#[test]
fn the_table_for_people_is_this_table() {
    let mut text = String::from(
        "# Bad input: what happens\n\n\
         What cannot be right is refused when it is applied, wherever a schema or a rule can say so. What was stored before the rules were there, or \
         no rule can tell, is named in a condition of the object at fault: it stops that add-on at most, never another, and heals when the input does. \
         Nothing is written again and again over it.\n\n\
         This page is made from the table of the end-to-end tests, `crates/controller/tests/e2e/bad_input`: every row is run, on the embedded hub and on \
         a Kubernetes API server, beside an add-on that is upgraded meanwhile. A name in angle brackets stands for that object's.\n",
    );
    for (title, rows) in table() {
        text.push_str(&format!(
            "\n## {title}\n\n| input | when applied | when it is there |\n|---|---|---|\n"
        ));
        for row in rows {
            text.push_str(&row.for_people());
        }
    }
    expect_test::expect_file!["../../../../../docs/bad-input.md"].assert_eq(&text);
}
