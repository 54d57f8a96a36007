//! Label selectors, as Kubernetes reads them.

use std::collections::BTreeMap;

/// All requirements must hold. No requirement: every label set matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<LabelRequirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum LabelRequirement {
    In { key: String, values: Vec<String> },
    NotIn { key: String, values: Vec<String> },
    Exists { key: String },
    DoesNotExist { key: String },
}

impl Selector {
    pub fn parse(
        selector: &k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector,
    ) -> Result<Self, String> {
        let mut requirements = Vec::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            requirements.push(LabelRequirement::In { key: key.clone(), values: vec![value.clone()] });
        }
        for expression in selector.match_expressions.iter().flatten() {
            let key = expression.key.clone();
            let values = expression.values.clone().unwrap_or_default();
            requirements.push(match (expression.operator.as_str(), values.is_empty()) {
                ("In", false) => LabelRequirement::In { key, values },
                ("NotIn", false) => LabelRequirement::NotIn { key, values },
                ("Exists", true) => LabelRequirement::Exists { key },
                ("DoesNotExist", true) => LabelRequirement::DoesNotExist { key },
                ("In" | "NotIn", true) => {
                    return Err(format!("{} on {key} needs values", expression.operator));
                }
                ("Exists" | "DoesNotExist", false) => {
                    return Err(format!("{} on {key} takes no values", expression.operator));
                }
                (other, _) => {
                    return Err(format!(
                        "operator {other:?} is not known: use In, NotIn, Exists or DoesNotExist"
                    ));
                }
            });
        }
        Ok(Self { requirements })
    }

    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|requirement| match requirement {
            LabelRequirement::In { key, values } => {
                labels.get(key).is_some_and(|value| values.contains(value))
            }
            LabelRequirement::NotIn { key, values } => {
                labels.get(key).is_none_or(|value| !values.contains(value))
            }
            LabelRequirement::Exists { key } => labels.contains_key(key),
            LabelRequirement::DoesNotExist { key } => !labels.contains_key(key),
        })
    }
}
