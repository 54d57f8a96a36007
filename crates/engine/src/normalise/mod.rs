//! Parses every spelling of the API into one model. No other module knows the spellings.
//!
//! Reading never fails as a whole: an unusable part is ignored and returned as a
//! [`Problem`](crate::problem::Problem).

mod addon;
mod cluster;
mod instance;
mod policy;
mod rollout_strategy;
mod work;

pub use addon::addon;
pub use cluster::{DecisionPart, PlacementPart, cluster, decision, placement, selection, selection_of};
pub use instance::instance;
pub use policy::{policy, record};
pub use work::{cluster_of_work, work, work_hashes};

use std::sync::Arc;

use aviary_api::addon::{AddOnConfig, ConfigSpecHash};
use serde_json::Value;

use crate::configs::{ConfigRef, GroupResource, MOST_OF_ONE_KIND, Pin};
use crate::content::ConfigContent;
use crate::hash::{self, Hash};
use crate::name::{Text, Word};
use crate::observed::{LiveConfig, ObservedCondition, Template, Unkeepable};
use crate::problem::Problem;
use crate::reason::ConditionReason;
use crate::status;
use crate::versions;

/// A config object as it is on the hub.
pub fn config(object: &Value) -> LiveConfig {
    let (hash, bytes) = hash::spec_hash_and_size(object);
    let content = hash::content(object);
    let unkeepable = Unkeepable::of(&content, bytes);
    LiveConfig {
        hash,
        generation: object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0),
        unkeepable,
        // Content that cannot be stored as a revision is never assigned, so it is not kept here.
        content: if unkeepable.is_some() { ConfigContent::default() } else { content.into() },
    }
}

/// The same, without a second copy of the content, which is left as text.
pub fn config_as_text(mut object: Value) -> LiveConfig {
    let (hash, bytes) = hash::spec_hash_and_size(&object);
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
    hash::retain_content(&mut object);
    let unkeepable = Unkeepable::of(&object, bytes);
    let content = match unkeepable {
        Some(_) => ConfigContent::default(),
        None => ConfigContent::of_text(object.to_string().into()),
    };
    LiveConfig { hash, generation, content, unkeepable }
}

/// A config whose text has too many values to be parsed.
pub fn dense_config(text: &str, generation: i64) -> LiveConfig {
    LiveConfig {
        hash: hash::of_bytes(text.as_bytes()),
        generation,
        content: ConfigContent::default(),
        unkeepable: Some(Unkeepable::TooDense),
    }
}

/// An AddOnTemplate, with the name of the add-on that it is for.
pub fn template(object: &Value) -> (Text, Template) {
    template_of(object, config(object))
}

/// The same, for an object that has been read as a config: both share their content.
pub fn template_of(object: &Value, live: LiveConfig) -> (Text, Template) {
    template_facts(object).template(live)
}

/// What is known of an AddOnTemplate besides its content.
#[derive(Clone, Debug)]
pub struct TemplateFacts {
    addon: Text,
    name: Text,
    version: Option<Text>,
}

pub fn template_facts(object: &Value) -> TemplateFacts {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().into();
    let version = versions::of_template(object).map(Text::from);
    TemplateFacts { addon: text("/spec/addonName"), name: text("/metadata/name"), version }
}

impl TemplateFacts {
    /// The template, with the name of the add-on that it is for.
    pub fn template(self, live: LiveConfig) -> (Text, Template) {
        let Self { addon, name, version } = self;
        let LiveConfig { hash, generation, content, unkeepable } = live;
        (addon, Template { name, version, hash, generation, content, unkeepable })
    }
}

fn condition(condition: &aviary_api::Condition) -> ObservedCondition {
    ObservedCondition {
        kind: word(&condition.type_),
        status: word(&condition.status),
        reason: ConditionReason::read(condition.reason.as_deref().unwrap_or_default()),
        message: word(condition.message.as_deref().unwrap_or_default()),
        since: condition.last_transition(),
        observed_generation: condition.observed_generation,
    }
}

/// The most conditions of others that are kept of an instance.
const MOST_OTHERS: usize = 32;
/// The longest text of a condition that is kept, in characters.
const LONGEST_TEXT: usize = 4096;

/// The conditions of an instance: ours, and a bounded part of those of others. Returns whether
/// others have more: then a write of the status must not replace theirs by what is kept.
fn conditions(all: &[aviary_api::Condition]) -> (Vec<ObservedCondition>, bool) {
    let mut kept: Vec<ObservedCondition> = Vec::with_capacity(all.len().min(MOST_OTHERS));
    let (mut others, mut has_more) = (0, false);
    for one in all {
        let is_ours = status::OURS.contains(&one.type_.as_str());
        others += usize::from(!is_ours);
        let reason = one.reason.as_deref().unwrap_or_default();
        let is_long = |text: &str| text.len() > LONGEST_TEXT;
        let is_surplus = match is_ours {
            true => ObservedCondition::find(&kept, &one.type_).is_some(),
            false => others > MOST_OTHERS || is_long(&one.type_) || is_long(&one.status) || is_long(reason),
        };
        if is_surplus {
            has_more |= !is_ours;
            continue;
        }
        let mut condition = condition(one);
        if let Some((end, _)) = condition.message.char_indices().nth(LONGEST_TEXT) {
            has_more |= !is_ours;
            condition.message = Word::Owned(condition.message.get(..end).unwrap_or_default().to_owned());
        }
        kept.push(condition);
    }
    (kept, has_more)
}

/// A text of a condition. Texts that we write ourselves are static and shared.
fn word(text: &str) -> Word {
    match status::VOCABULARY.iter().find(|&&known| known == text) {
        Some(&known) => Word::Borrowed(known),
        None => Word::Owned(text.to_owned()),
    }
}

fn text(given: Option<&String>) -> Option<Text> {
    given.filter(|text| !text.is_empty()).map(|text| text.as_str().into())
}

fn config_ref(config: &AddOnConfig) -> ConfigRef {
    ConfigRef {
        kind: GroupResource::new(&config.group, &config.resource),
        namespace: text(config.namespace.as_ref()),
        name: config.name.as_str().into(),
    }
}

/// The configs of one list. Several of the same kind are reported: only on a hub of OCM all of them
/// are used, elsewhere the last one. Of too many some are left out, and there are still too many.
fn config_refs<'a>(
    configs: impl IntoIterator<Item = &'a AddOnConfig>,
    problems: &mut Vec<Problem>,
) -> Vec<ConfigRef> {
    let mut refs: Vec<ConfigRef> = Vec::new();
    for config in configs.into_iter().map(config_ref) {
        let mut same_kind = refs.iter().enumerate().filter(|(_, known)| known.kind == config.kind);
        let (last, others) = (same_kind.next_back(), same_kind.count());
        if let Some((at, last)) = last {
            if *last == config {
                continue;
            }
            problems.push(Problem::ConfigListedTwice { config: config.clone() });
            if others >= MOST_OF_ONE_KIND {
                refs.remove(at);
            }
        }
        refs.push(config);
    }
    refs
}

/// `desiredVersion` of the later draft and `installVersion` of the earlier are one setting.
fn version(desired: Option<&String>, install: Option<&String>, problems: &mut Vec<Problem>) -> Option<Text> {
    let (desired, install) = (text(desired), text(install));
    if let (Some(desired), Some(install)) = (&desired, &install)
        && desired != install
    {
        problems.push(Problem::VersionsDiffer { desired: desired.clone(), install: install.clone() });
    }
    desired.or(install)
}

/// A recorded pin: OCM's object with its own name if given, otherwise the flat hash under the
/// reference's name.
fn pin(
    kind: &GroupResource,
    named: &ConfigRef,
    object: Option<&ConfigSpecHash>,
    flat: Option<&String>,
) -> Option<Pin> {
    if let Some(object) = object
        && let Some(hash) = Hash::recorded(object.spec_hash.as_deref().unwrap_or_default())
    {
        let config = ConfigRef {
            kind: kind.clone(),
            namespace: text(object.namespace.as_ref()),
            name: object.name.as_str().into(),
        };
        return Some(Pin { config: Arc::new(config), hash });
    }
    Some(Pin {
        config: Arc::new(named.clone()),
        hash: Hash::recorded(flat.map(String::as_str).unwrap_or_default())?,
    })
}

/// A recorded config without a hash: it was desired and could not be used.
fn unresolved_config(kind: &GroupResource, object: Option<&ConfigSpecHash>) -> Option<ConfigRef> {
    let object = object.filter(|object| object.spec_hash.as_deref().unwrap_or_default().is_empty())?;
    Some(ConfigRef {
        kind: kind.clone(),
        namespace: text(object.namespace.as_ref()),
        name: text(Some(&object.name))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(kind: &str, message: usize) -> aviary_api::Condition {
        aviary_api::Condition {
            type_: kind.to_owned(),
            status: "True".to_owned(),
            message: Some("m".repeat(message)),
            ..aviary_api::Condition::default()
        }
    }

    #[test]
    fn conditions_of_others_are_bounded_and_ours_are_not_lost_among_them() {
        let theirs = |count: usize| (0..count).map(|at| given(&format!("Theirs{at}"), 1)).collect::<Vec<_>>();
        let mut all = theirs(MOST_OTHERS);
        all.push(given("Progressing", 1));
        let (kept, has_more) = conditions(&all);
        assert_eq!((kept.len(), has_more), (MOST_OTHERS + 1, false));
        let mut all = theirs(MOST_OTHERS + 1);
        all.push(given("Progressing", 1));
        let (kept, has_more) = conditions(&all);
        assert_eq!((kept.len(), has_more), (MOST_OTHERS + 1, true));
        assert!(ObservedCondition::find(&kept, "Progressing").is_some());
    }

    #[test]
    fn long_texts_of_others_are_shortened_here_and_known_to_be_longer() {
        assert!(!conditions(&[given("Theirs", LONGEST_TEXT)]).1);
        let (kept, has_more) = conditions(&[given("Theirs", LONGEST_TEXT + 1)]);
        let lengths: Vec<usize> = kept.iter().map(|one| one.message.len()).collect();
        assert_eq!((lengths, has_more), (vec![LONGEST_TEXT], true));
        let (kept, has_more) = conditions(&[given(&"T".repeat(LONGEST_TEXT + 1), 1)]);
        assert_eq!((kept.len(), has_more), (0, true));
        // Ours are written anew, and only once.
        let ours = [given("Progressing", LONGEST_TEXT + 1), given("Progressing", 1)];
        let (kept, has_more) = conditions(&ours);
        assert_eq!((kept.len(), has_more), (1, false));
    }
}
