//! Raw SQL, past the critic.
