//! What follows from an instance's status and the states of its works, on whichever cluster: worked out once for all that are alike.
//!
//! In a large fleet most clusters are alike, and a pass that looked at each of them by itself would spend its time on fetching the same
//! things again.

use std::collections::HashMap;
use std::rc::Rc;

use crate::configs::Overrides;
use crate::evidence::{Evidence, is_rendered_as_told};
use crate::name::{Text, same};
use crate::observed::{Instance, StatusFields, Work};
use crate::render::{Rendering, Templates};

#[derive(Debug, Default)]
pub struct Known<'a> {
    /// Its place among all that are known in this pass.
    pub index: usize,
    /// What the instance's status says.
    pub status: Option<&'a StatusFields>,
    /// Where its agent is installed.
    install_namespace: Option<&'a Text>,
    /// What its works should be rendered from; `None` when somebody else writes them.
    pub prepared: Option<Rendering>,
    pub evidence: Evidence,
    /// Its one work is rendered from what the instance is told. Whether it is this instance's, and unchanged, is another question.
    pub rendered_as_told: bool,
}

impl Known<'_> {
    fn is_of(&self, install_namespace: &Text) -> bool {
        self.install_namespace.is_some_and(|known| same(known, install_namespace))
    }
}

/// All that is known in one pass.
#[derive(Debug)]
pub(super) struct Knowledge<'a> {
    templates: Templates<'a>,
    nothing: Rc<Known<'a>>,
    /// By the addresses of all that it follows from. Nothing of the snapshot moves or goes while it is borrowed.
    alike: HashMap<Alike, Rc<Known<'a>>>,
    /// Neighbours mostly are alike.
    last: Option<(Alike, Rc<Known<'a>>)>,
    count: usize,
}

/// The addresses of the instance's status, and of its only work's state and hashes.
type Alike = [usize; 3];

impl<'a> Knowledge<'a> {
    pub(super) fn new(templates: Templates<'a>) -> Self {
        Self { templates, nothing: Rc::default(), alike: HashMap::new(), last: None, count: 1 }
    }

    /// How many different ones there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// `work` is the addresses of the first work's state and hashes.
    pub(super) fn of(
        &mut self,
        instance: Option<&'a Instance>,
        works: &'a [Work],
        work: [usize; 2],
        overrides: Option<&Overrides>,
    ) -> Rc<Known<'a>> {
        let Some(instance) = instance else { return Rc::clone(&self.nothing) };
        if overrides.is_some() || works.len() > 1 {
            return self.learn(instance, works, overrides);
        }
        let [state, hashes] = work;
        let alike = [instance.status.address(), state, hashes];
        let found = match &self.last {
            Some((last, known)) if *last == alike => Some(known),
            _ => self.alike.get(&alike),
        };
        let known = match found.filter(|known| known.is_of(&instance.install_namespace)) {
            Some(known) => Rc::clone(known),
            None => {
                let known = self.learn(instance, works, overrides);
                self.alike.insert(alike, Rc::clone(&known));
                known
            }
        };
        self.last = Some((alike, Rc::clone(&known)));
        known
    }

    fn learn(
        &mut self,
        instance: &'a Instance,
        works: &'a [Work],
        overrides: Option<&Overrides>,
    ) -> Rc<Known<'a>> {
        let status: &'a StatusFields = &instance.status;
        let prepared = self.templates.prepare(status.told());
        let evidence =
            Evidence::of(status, &own_works(works, prepared.as_ref()), overrides, prepared.as_ref());
        let rendered_as_told = match (&prepared, works) {
            (Some(Ok(prepared)), [one]) => {
                prepared.works() == 1
                    && prepared.work_index(&one.name) == Some(0)
                    && is_rendered_as_told(one, prepared, status, &instance.install_namespace)
            }
            _ => false,
        };
        let index = self.count;
        self.count += 1;
        let install_namespace = Some(&instance.install_namespace);
        Rc::new(Known {
            index,
            status: Some(status),
            install_namespace,
            prepared,
            evidence,
            rendered_as_told,
        })
    }
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
