//! How a check becomes a test: a world is created before it, and cleaned up after it, whether it
//! passed or not.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use libtest_mimic::{Completion, Failed, Trial};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use crate::target::{Target, target};
use crate::world::{Shared, World};

/// Longer than any guaranteed delay: a real garbage collector looks for new kinds every 30 s.
const LIMIT: Duration = Duration::from_secs(180);

/// A feature that a conforming API server may lack. `AVIARY_CONFORMANCE_WITHOUT` lists these,
/// separated by commas.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// `controllers`: garbage collection and deletion of namespaces.
    GarbageCollection,
    /// `apply`: server-side apply.
    Apply,
}

impl Need {
    fn left_out(self) -> bool {
        let without = std::env::var("AVIARY_CONFORMANCE_WITHOUT").unwrap_or_default();
        without.split(',').any(|word| word.trim() == self.word())
    }

    fn word(self) -> &'static str {
        match self {
            Need::GarbageCollection => "controllers",
            Need::Apply => "apply",
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Need::GarbageCollection => "needs: garbage collection",
            Need::Apply => "needs: server-side apply",
        }
    }
}

pub struct Check {
    topic: &'static str,
    name: String,
    need: Option<Need>,
    body: Box<dyn FnOnce(World) -> BoxFuture<'static, ()> + Send>,
}

impl Check {
    pub fn new<F>(module: &'static str, name: &'static str, body: fn(World) -> F) -> Check
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let topic = module.rsplit("::").next().unwrap_or(module);
        Check {
            topic,
            name: name.replace('_', " "),
            need: None,
            body: Box::new(move |world| Box::pin(body(world))),
        }
    }

    pub fn needing(mut self, need: Need) -> Check {
        self.need = Some(need);
        self
    }

    pub fn into_trial(self, suite: Arc<Suite>) -> Trial {
        let Check { topic, name, need, body } = self;
        Trial::ignorable_test(format!("{topic}: {name}"), move || match need {
            Some(need) if need.left_out() => Ok(Completion::ignored_with(need.reason())),
            _ => suite.run(body).map(|()| Completion::Completed),
        })
    }
}

/// `checks![a_sentence, another_sentence]`: the functions of this module, with their names.
macro_rules! checks {
    ($($name:ident),* $(,)?) => {
        vec![$($crate::check::Check::new(module_path!(), stringify!($name), $name)),*]
    };
}
pub(crate) use checks;

/// One target and one shared custom resource for all checks of a run.
pub struct Suite {
    runtime: Runtime,
    shared: OnceCell<(Target, Arc<Shared>)>,
}

impl Suite {
    pub fn new() -> Suite {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
        Suite { runtime, shared: OnceCell::new() }
    }

    fn run(&self, body: Box<dyn FnOnce(World) -> BoxFuture<'static, ()> + Send>) -> Result<(), Failed> {
        self.runtime.block_on(async {
            let (_, shared) = self
                .shared
                .get_or_init(|| async {
                    let target = target().await;
                    let shared = Arc::new(Shared::new(target.client.clone()));
                    (target, shared)
                })
                .await;
            let world = World::open(shared.clone()).await;
            // In a separate task, so that cleanup also happens after a panic.
            let mut running = tokio::spawn(body(world.clone()));
            let outcome = tokio::time::timeout(LIMIT, &mut running).await;
            running.abort();
            world.close().await;
            match outcome {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(Failed::from(story(error))),
                Err(_) => Err(Failed::from(format!("not done after {} s", LIMIT.as_secs()))),
            }
        })
    }

    /// Removes what the checks shared.
    pub fn tear_down(&self) {
        if let Some((_, shared)) = self.shared.get() {
            self.runtime.block_on(shared.clear());
        }
    }
}

fn story(error: tokio::task::JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "aborted".to_owned() };
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => {
            panic.downcast::<&str>().map_or_else(|_| "panicked".to_owned(), |text| (*text).to_owned())
        }
    }
}
