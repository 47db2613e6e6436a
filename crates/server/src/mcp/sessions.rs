//! Sessions of the protocol over HTTP: each belongs to the user who opened it, there are only so many, and those that nobody
//! uses end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};

/// Sessions of all users together.
const MOST: usize = 2_000;
/// How long a session is kept in which nothing is said.
const AGE: Duration = Duration::from_secs(30 * 60);

/// All sessions.
pub struct Sessions {
    /// Those that are open.
    pub manager: Arc<LocalSessionManager>,
    owners: Mutex<HashMap<String, Owner>>,
}

struct Owner {
    user: String,
    /// When it was last used.
    at: Instant,
}

impl Default for Sessions {
    fn default() -> Self {
        let mut config = SessionConfig::default();
        config.keep_alive = Some(AGE);
        let mut manager = LocalSessionManager::default();
        manager.session_config = config;
        Self { manager: Arc::new(manager), owners: Mutex::default() }
    }
}

impl Sessions {
    fn owners(&self) -> MutexGuard<'_, HashMap<String, Owner>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a session is this user's. It counts as used then.
    pub fn belongs(&self, id: &str, user: &str) -> bool {
        let mut owners = self.owners();
        let own = owners.get_mut(id).filter(|owner| owner.user == user);
        own.map(|owner| owner.at = Instant::now()).is_some()
    }

    /// A user has opened a session. Where they have more than `most_of_one` now, or all users together too many, those that were
    /// not used for longest end.
    pub async fn opened(&self, id: &str, user: &str, most_of_one: usize) {
        let open = self.manager.sessions.read().await;
        let mut ended: Vec<String> = Vec::new();
        {
            let mut owners = self.owners();
            owners.retain(|id, _| open.contains_key(id.as_str()));
            owners.insert(id.to_owned(), Owner { user: user.to_owned(), at: Instant::now() });
            let own = owners.values().filter(|owner| owner.user == user).count();
            for _ in most_of_one.max(1)..own {
                ended.extend(end_oldest(&mut owners, Some(user)));
            }
            while owners.len() > MOST {
                ended.extend(end_oldest(&mut owners, None));
            }
        }
        drop(open);
        for id in ended {
            if let Err(error) = self.manager.close_session(&id.into()).await {
                tracing::debug!(%error, "a session ended before it was closed");
            }
        }
    }
}

fn end_oldest(owners: &mut HashMap<String, Owner>, user: Option<&str>) -> Option<String> {
    let meant = owners.iter().filter(|(_, owner)| user.is_none_or(|user| owner.user == user));
    let oldest = meant.min_by_key(|(_, owner)| owner.at).map(|(id, _)| id.clone())?;
    owners.remove(&oldest);
    Some(oldest)
}
