//! Safety analysis: side effects, column access and the access policy.

pub(crate) mod column_access;
pub(crate) mod policy;
pub(crate) mod side_effects;
