//! Registration of add-on agents: certificates, and rights on the hub.
//!
//! A separate process with its own account, because it needs rights that the manager must not have.
//! All decisions are pure functions: `decide` about one request, `grants` and `status` about one
//! instance. `state` keeps what the watches report, `process` executes.

pub mod backlog;
pub mod decide;
mod der;
pub mod grants;
pub mod instance;
pub mod names;
pub mod pkcs10;
pub mod process;
pub mod refusal;
pub mod request;
pub mod sign;
pub mod state;
pub mod status;
pub mod template;
