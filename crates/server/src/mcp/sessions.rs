//! Protocol sessions over HTTP: owned by one user, limited in number, and evicted when idle.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};

/// Maximum number of sessions of all users.
const MAX_SESSIONS: usize = 2_000;
/// Time after which an idle session is closed.
const SESSION_TTL: Duration = Duration::from_secs(30 * 60);

/// All protocol sessions.
pub struct McpSessions {
    /// Session manager of the protocol crate.
    pub manager: Arc<LocalSessionManager>,
    owners: Mutex<HashMap<String, SessionOwner>>,
}

struct SessionOwner {
    user: String,
    /// Time of the last request.
    last_used: Instant,
}

impl Default for McpSessions {
    fn default() -> Self {
        let mut config = SessionConfig::default();
        config.keep_alive = Some(SESSION_TTL);
        let mut manager = LocalSessionManager::default();
        manager.session_config = config;
        Self { manager: Arc::new(manager), owners: Mutex::default() }
    }
}

impl McpSessions {
    fn owners(&self) -> MutexGuard<'_, HashMap<String, SessionOwner>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a session belongs to a user, and marks it as used.
    pub fn is_owned_by(&self, id: &str, user: &str) -> bool {
        let mut owners = self.owners();
        let own = owners.get_mut(id).filter(|owner| owner.user == user);
        own.map(|owner| owner.last_used = Instant::now()).is_some()
    }

    /// Registers a session opened by a user.
    ///
    /// If the user then has more than `max_per_user` sessions, or the total limit is exceeded, the
    /// least recently used ones are closed.
    pub async fn register(&self, id: &str, user: &str, max_per_user: usize) {
        let open = self.manager.sessions.read().await;
        let mut ended: Vec<String> = Vec::new();
        {
            let mut owners = self.owners();
            owners.retain(|id, _| open.contains_key(id.as_str()));
            owners.insert(id.to_owned(), SessionOwner { user: user.to_owned(), last_used: Instant::now() });
            let own = owners.values().filter(|owner| owner.user == user).count();
            for _ in max_per_user.max(1)..own {
                ended.extend(evict_oldest(&mut owners, Some(user)));
            }
            while owners.len() > MAX_SESSIONS {
                ended.extend(evict_oldest(&mut owners, None));
            }
        }
        drop(open);
        for id in ended {
            if let Err(error) = self.manager.close_session(&id.into()).await {
                tracing::debug!(%error, "session was already closed");
            }
        }
    }
}

fn evict_oldest(owners: &mut HashMap<String, SessionOwner>, user: Option<&str>) -> Option<String> {
    let meant = owners.iter().filter(|(_, owner)| user.is_none_or(|user| owner.user == user));
    let oldest = meant.min_by_key(|(_, owner)| owner.last_used).map(|(id, _)| id.clone())?;
    owners.remove(&oldest);
    Some(oldest)
}
