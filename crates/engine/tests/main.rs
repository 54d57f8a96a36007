//! All tests of the engine from outside, in one program: what they share is compiled once.

mod bounds;
mod canary;
mod configs;
mod corner_cases;
mod decision_groups;
mod fuzzed;
mod hash;
mod health;
mod hooks;
mod install;
mod ocm;
mod ocm_templates;
mod properties;
mod real_agent;
mod reference;
mod reference_model;
mod refusals;
mod regressions;
mod render;
mod rollout;
mod seeds;
mod selection;
mod small_worlds;
mod status;
mod story;
mod versions;
