//! Random small fleets, and what may happen to them.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Rev, Share};

/// A fleet before anything has happened: nothing is installed.
#[derive(Clone, Debug)]
pub struct Setup {
    pub clusters: usize,
    /// Works are rendered by us from templates; otherwise the add-on's own manager writes them.
    pub templated: bool,
    /// What each named config says; the first is the add-on's default.
    pub configs: [Rev; 3],
    pub placements: Vec<PlacementSetup>,
    /// What a placement selects that the add-on does not list.
    pub outside: Vec<usize>,
}

#[derive(Clone, Debug)]
pub struct PlacementSetup {
    pub selects: Vec<usize>,
    /// Which config it names.
    pub config: usize,
    pub kind: KindSetup,
    pub budget: Share,
    pub max_failures: Option<Share>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindSetup {
    All,
    Rolling,
    /// By number in the list; one beyond it is the placement that is not listed, two beyond one
    /// that does not exist.
    Canary(usize),
}

/// Numbers name clusters, placements and configs, and are taken modulo how many there are.
#[derive(Clone, Debug)]
pub enum Event {
    /// A cluster is selected by a placement (one beyond the list: by the unlisted one).
    Join(usize, usize),
    Leave(usize, usize),
    /// The add-on's own manager writes its works; nobody answers.
    Render(usize),
    /// The agent answers: applied and available.
    Ack(usize),
    Fail(usize),
    Unavailable(usize),
    /// All agents answer well.
    AckAll,
    Offline(usize),
    Online(usize),
    /// A config is edited in place.
    Edit(usize, Rev),
    /// A placement names another config.
    Switch(usize, usize),
    /// All placements name the same config.
    SwitchAll(usize),
    Budget(usize, Share),
    MaxFailures(usize, Option<Share>),
    Pause(usize),
    Kind(usize, KindSetup),
    Override(usize, usize),
    NoOverride(usize),
    /// A user makes an instance.
    User(usize),
    Nothing,
}

fn revision() -> impl Strategy<Value = Rev> {
    prop_oneof![Just('A'), Just('B'), Just('C')]
}

fn budget() -> impl Strategy<Value = Share> {
    prop_oneof![3 => (1usize..4).prop_map(Share::Count), 1 => prop_oneof![Just(10), Just(25), Just(50), Just(100)].prop_map(Share::Percent)]
}

fn tolerance() -> impl Strategy<Value = Option<Share>> {
    prop_oneof![
        3 => Just(None),
        1 => (0usize..3).prop_map(|count| Some(Share::Count(count))),
        1 => prop_oneof![Just(10), Just(50)].prop_map(|share| Some(Share::Percent(share))),
    ]
}

fn kind() -> impl Strategy<Value = KindSetup> {
    prop_oneof![1 => Just(KindSetup::All), 3 => Just(KindSetup::Rolling), 4 => (0usize..5).prop_map(KindSetup::Canary)]
}

fn clusters_of(max: usize) -> impl Strategy<Value = Vec<usize>> {
    vec(0usize..8, 0..=max)
}

fn placement() -> impl Strategy<Value = PlacementSetup> {
    (clusters_of(8), 0usize..3, kind(), budget(), tolerance()).prop_map(
        |(selects, config, kind, budget, max_failures)| PlacementSetup {
            selects,
            config,
            kind,
            budget,
            max_failures,
        },
    )
}

pub fn setup() -> impl Strategy<Value = Setup> {
    let configs = [revision(), revision(), revision()];
    (1usize..=8, any::<bool>(), configs, vec(placement(), 1..=3), clusters_of(3)).prop_map(
        |(clusters, templated, configs, placements, outside)| Setup {
            clusters,
            templated,
            configs,
            placements,
            outside,
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let (cluster, placement, config) = (0usize..8, 0usize..4, 0usize..3);
    prop_oneof![
        3 => (placement.clone(), cluster.clone()).prop_map(|(p, c)| Event::Join(p, c)),
        2 => (placement.clone(), cluster.clone()).prop_map(|(p, c)| Event::Leave(p, c)),
        2 => cluster.clone().prop_map(Event::Render),
        8 => cluster.clone().prop_map(Event::Ack),
        4 => cluster.clone().prop_map(Event::Fail),
        4 => cluster.clone().prop_map(Event::Unavailable),
        8 => Just(Event::AckAll),
        2 => cluster.clone().prop_map(Event::Offline),
        2 => cluster.clone().prop_map(Event::Online),
        3 => (config.clone(), revision()).prop_map(|(config, revision)| Event::Edit(config, revision)),
        2 => (placement.clone(), config.clone()).prop_map(|(p, config)| Event::Switch(p, config)),
        3 => config.clone().prop_map(Event::SwitchAll),
        1 => (placement.clone(), budget()).prop_map(|(p, budget)| Event::Budget(p, budget)),
        1 => (placement.clone(), tolerance()).prop_map(|(p, tolerance)| Event::MaxFailures(p, tolerance)),
        1 => placement.clone().prop_map(Event::Pause),
        1 => (placement, kind()).prop_map(|(p, kind)| Event::Kind(p, kind)),
        1 => (cluster.clone(), config).prop_map(|(c, config)| Event::Override(c, config)),
        1 => cluster.clone().prop_map(Event::NoOverride),
        1 => cluster.prop_map(Event::User),
        2 => Just(Event::Nothing),
    ]
}

pub fn events(most: usize) -> impl Strategy<Value = Vec<Event>> {
    vec(event(), 0..most)
}
