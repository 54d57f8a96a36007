//! What follows from an instance's status and the states of its works, on whichever cluster: worked out once for all that are alike.
//!
//! In a large fleet most clusters are alike, and a pass that looked at each of them by itself would spend its time on fetching the same
//! things again.

use std::collections::HashMap;

use crate::by_cluster::Entry;
use crate::configs::Overrides;
use crate::evidence::{Evidence, is_rendered_as_told};
use crate::name::same;
use crate::observed::{Instance, StatusFields, Work};
use crate::render::{Rendering, Templates};

#[derive(Debug, Default)]
pub struct Known<'a> {
    /// What the instance's status says.
    pub status: Option<&'a StatusFields>,
    /// What its works should be rendered from; `None` when somebody else writes them.
    pub prepared: Option<Rendering>,
    pub evidence: Evidence,
    /// Its one work is rendered from what the instance is told. Whether it is this instance's, and unchanged, is another question.
    pub rendered_as_told: bool,
}

/// All that is known in one pass.
#[derive(Debug)]
pub(super) struct Knowledge<'a> {
    templates: Templates<'a>,
    /// The first is what is known where there is no instance: nothing.
    known: Vec<Known<'a>>,
    alike: HashMap<Alike, usize>,
    /// Neighbours mostly are alike.
    last: Option<(Alike, usize)>,
    namespaces: HashMap<&'a str, usize>,
    last_namespace: Option<(usize, usize)>,
}

/// All that it follows from. What can be shared is known by its address: nothing of the snapshot moves or goes while it is borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Alike {
    status: usize,
    /// Of the only work.
    state: usize,
    hashes: usize,
    generation: i64,
    install_namespace: usize,
    /// The only work was written for an instance before this one.
    of_another: bool,
}

impl<'a> Knowledge<'a> {
    pub(super) fn new(templates: Templates<'a>) -> Self {
        Self {
            templates,
            known: vec![Known::default()],
            alike: HashMap::new(),
            last: None,
            namespaces: HashMap::new(),
            last_namespace: None,
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<&Known<'a>> {
        self.known.get(index)
    }

    pub(super) fn into_all(self) -> Vec<Known<'a>> {
        self.known
    }

    /// The place of what is known of such a cluster.
    pub(super) fn of(
        &mut self,
        instance: Option<Entry<'a, Instance>>,
        works: Option<Entry<'a, Vec<Work>>>,
        overrides: Option<&Overrides>,
    ) -> usize {
        let Some(instance) = instance else { return 0 };
        let of_work = works.map(|works| works.glance).unwrap_or_default();
        // Not fetched before they are needed.
        let works = || works.map_or(&[][..], |works| works.value.as_slice());
        if overrides.is_some() || of_work.several {
            return self.learn(instance.value, works(), overrides);
        }
        let alike = Alike {
            status: instance.glance.status,
            state: of_work.state,
            hashes: of_work.hashes,
            generation: instance.glance.generation,
            install_namespace: self.namespace(instance),
            of_another: of_work.owner != instance.glance.uid
                && works().first().is_some_and(|work| is_of_another(work, instance.value)),
        };
        if let Some((last, index)) = self.last
            && last == alike
        {
            return index;
        }
        let index = match self.alike.get(&alike) {
            Some(index) => *index,
            None => {
                let index = self.learn(instance.value, works(), overrides);
                self.alike.insert(alike, index);
                index
            }
        };
        self.last = Some((alike, index));
        index
    }

    /// A number for the namespace where its agent is installed: equal for equal names.
    fn namespace(&mut self, instance: Entry<'a, Instance>) -> usize {
        let address = instance.glance.install_namespace;
        if let Some((last, number)) = self.last_namespace
            && last == address
        {
            return number;
        }
        let next = self.namespaces.len();
        let number = *self.namespaces.entry(&instance.value.install_namespace).or_insert(next);
        self.last_namespace = Some((address, number));
        number
    }

    fn learn(&mut self, instance: &'a Instance, works: &'a [Work], overrides: Option<&Overrides>) -> usize {
        let status: &'a StatusFields = &instance.status;
        let prepared = self.templates.prepare(status.told());
        // What an agent said of a work of an instance that is gone says nothing of this one.
        let own = || own_works(works, prepared.as_ref()).filter(|work| !is_of_another(work, instance));
        let evidence = Evidence::of(status, &own(), overrides, prepared.as_ref());
        let rendered_as_told = match (&prepared, works) {
            (Some(Ok(prepared)), [one]) => {
                prepared.works() == 1
                    && prepared.work_index(&one.name) == Some(0)
                    && is_rendered_as_told(one, prepared, status, &instance.install_namespace)
            }
            _ => false,
        };
        self.known.push(Known { status: Some(status), prepared, evidence, rendered_as_told });
        self.known.len() - 1
    }
}

fn is_of_another(work: &Work, instance: &Instance) -> bool {
    work.owner.as_ref().is_some_and(|owner| !same(owner, &instance.uid))
}

/// A cluster's works: where we render them, ours only.
pub(super) fn own_works<'a>(
    works: &'a [Work],
    prepared: Option<&'a Rendering>,
) -> impl Iterator<Item = &'a Work> + Clone {
    works.iter().filter(move |work| match prepared {
        Some(Ok(prepared)) => prepared.work_index(&work.name).is_some(),
        Some(Err(_)) | None => true,
    })
}
