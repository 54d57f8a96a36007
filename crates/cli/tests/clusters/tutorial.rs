//! Runs `docs/tutorial-real.md`, as `tests/tutorial` runs the first tutorial.

#[path = "../tutorial/page.rs"]
mod page;
#[path = "../tutorial/play.rs"]
mod play;

use std::path::Path;

use crate::lane::alone;
use play::Player;

/// It starts clusters of its own, inside the namespaces of the others.
#[test]
fn every_command_of_the_tutorial_on_real_clusters_prints_what_it_says() {
    let _turn = alone();
    let agent = std::env::var_os("AVIARY_WORK_AGENT").expect("AVIARY_WORK_AGENT to name the agent");
    Player::new("tutorial-real").with_programs(Path::new(&agent).parent().unwrap()).follow();
}
