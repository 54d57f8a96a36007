//! Writes every CRD to `deploy/crds`, and removes other files there.

use std::path::Path;
use std::{error, fs};

use aviary_api::crds;

fn main() -> Result<(), Box<dyn error::Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    fs::create_dir_all(&folder)?;
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            fs::remove_file(path)?;
        }
    }
    for crd in crds::all() {
        fs::write(folder.join(crds::file_name(&crd)), crds::to_yaml(&crd)?)?;
    }
    fs::write(folder.join("kustomization.yaml"), crds::kustomization())?;
    Ok(())
}
