//! Finds the field that a problem is about, so that the finding names the field to fix.

use aviary_engine::name::PlacementName;
use aviary_engine::observed::AddOn;
use aviary_engine::problem::Problem;
use serde_json::Value;

use crate::documents::Document;

/// The field of an add-on that a problem is about; empty if it is not about a single field.
pub(super) fn of_addon(document: &Document, problem: &Problem) -> String {
    let entry = |placement: &PlacementName, field: &str| match index_of(document, placement) {
        Some(index) => format!("spec.installStrategy.placements[{index}]{field}"),
        None => "spec.installStrategy.placements".to_owned(),
    };
    match problem {
        Problem::InstallTypeUnknown { .. } => "spec.installStrategy.type".to_owned(),
        Problem::LabelSelectorInvalid { .. } => "spec.installStrategy.labelSelector".to_owned(),
        Problem::RolloutTypeUnknown { placement, .. } => entry(placement, ".rolloutStrategy.type"),
        Problem::LimitInvalid { placement, field, .. }
        | Problem::DurationInvalid { placement, field, .. } => {
            entry(placement, &format!(".rolloutStrategy.{field}"))
        }
        Problem::CanaryNotNamed { placement } => {
            entry(placement, ".rolloutStrategy.rollingUpdateWithCanary.placement")
        }
        Problem::CanaryCycle { path } => match path.first() {
            Some(first) => entry(first, ".rolloutStrategy.rollingUpdateWithCanary.placement"),
            None => "spec.installStrategy.placements".to_owned(),
        },
        Problem::PlacementListedTwice { placement }
        | Problem::PlacementUnknown { placement }
        | Problem::PlacementUndecided { placement }
        | Problem::PlacementInMotion { placement, .. }
        | Problem::ClusterNameInvalid { placement, .. } => entry(placement, ""),
        Problem::FieldDeprecated { field, .. } => (*field).to_owned(),
        Problem::VersionsDiffer { .. } => "spec.installStrategy.placements".to_owned(),
        _ => String::new(),
    }
}

/// The field of an add-on that holds a placement's configs, or the add-on's defaults if there is no
/// placement.
pub(super) fn of_configs(document: &Document, addon: &AddOn, placement: Option<usize>) -> String {
    let spec = placement.and_then(|index| addon.strategy.placements().get(index));
    match spec.and_then(|spec| index_of(document, &spec.name)) {
        Some(index) => format!("spec.installStrategy.placements[{index}].configs"),
        None => "spec.defaultConfigs".to_owned(),
    }
}

/// The index of a placement in the add-on's list; the last one if it is listed twice.
fn index_of(document: &Document, placement: &PlacementName) -> Option<usize> {
    let text =
        |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let listed = document.value.pointer("/spec/installStrategy/placements")?.as_array()?;
    listed.iter().rposition(|entry| {
        *text(entry, "name") == *placement.name && *text(entry, "namespace") == *placement.namespace
    })
}
