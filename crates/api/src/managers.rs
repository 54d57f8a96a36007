//! Who has written an object, as far as a decision depends on it: read from
//! `metadata.managedFields`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;

/// The name of OCM's add-on manager in `managedFields`: that of its program.
pub const OCM_MANAGER: &str = "addon";
/// The name under which Aviary's manager writes the metadata of instances.
pub const AVIARY_MANAGER: &str = "aviary";

/// Whether OCM's add-on manager has written an object, and nobody else has but Aviary. Statuses are
/// not counted: agents and others write those. OCM's manager also writes to instances of users, so
/// that its name is among others proves nothing.
pub fn is_only_by_ocm<'a>(writers: impl Iterator<Item = (&'a str, &'a str)>) -> bool {
    let mut by_ocm = false;
    for (manager, subresource) in writers {
        match (manager, subresource) {
            (OCM_MANAGER, "") => by_ocm = true,
            (AVIARY_MANAGER, "") => {}
            (_, "") => return false,
            _ => {}
        }
    }
    by_ocm
}

/// The same, of typed entries.
pub fn are_only_by_ocm(entries: Option<&Vec<ManagedFieldsEntry>>) -> bool {
    fn text(text: Option<&String>) -> &str {
        text.map_or("", String::as_str)
    }
    let writers = entries.into_iter().flatten();
    is_only_by_ocm(writers.map(|one| (text(one.manager.as_ref()), text(one.subresource.as_ref()))))
}
