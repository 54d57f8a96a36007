//! Who may talk to the hub, and what each of them may do.
//!
//! Owns the register of tokens, the access rules and the kubeconfigs. It must not know the store,
//! the API's kinds or the routes: the core asks it and obeys. A request that comes over a socket
//! passes [`gate`]; one made in process brings its own [`Identity`].

pub mod access;
pub mod gate;
pub mod kubeconfig;
pub mod tokens;

pub use access::{Access, Denied, Extent, Role, allowed};
pub use gate::{Gate, guard};
pub use kubeconfig::kubeconfig;
pub use tokens::{Identity, Secret, TokenError, Tokens};
