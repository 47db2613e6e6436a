//! Vectors of questions, for stores that keep them on servers.

use std::sync::Arc;

use querymend_model::Embedder;

use crate::error::Error;

/// So many questions are given to the embedder at once.
const AT_ONCE: usize = 256;

/// An embedder, with how long its vectors are.
pub(crate) struct Embedding {
    embedder: Arc<dyn Embedder>,
    pub dimensions: usize,
}

impl Embedding {
    /// Asks the embedder how long its vectors are, by making one where it does not know yet.
    pub async fn new(embedder: Arc<dyn Embedder>) -> Result<Self, Error> {
        let dimensions = match embedder.dimensions() {
            Some(dimensions) => dimensions,
            None => embedder.embed(&["question"]).await.map_err(Error::Embedding)?.first().map_or(0, Vec::len),
        };
        let this = Self { embedder, dimensions };
        if dimensions == 0 { Err(this.unsteady()) } else { Ok(this) }
    }

    pub fn name(&self) -> &str {
        self.embedder.name()
    }

    /// One vector for each text.
    pub async fn vectors(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        let mut all = Vec::with_capacity(texts.len());
        for part in texts.chunks(AT_ONCE) {
            let vectors = self.embedder.embed(part).await.map_err(Error::Embedding)?;
            if vectors.len() != part.len() || vectors.iter().any(|vector| vector.len() != self.dimensions) {
                return Err(self.unsteady());
            }
            all.extend(vectors);
            // The embedder that is compiled in never waits; others want their turn on this thread.
            tokio::task::yield_now().await;
        }
        Ok(all)
    }

    /// The vector of one text.
    pub async fn vector(&self, text: &str) -> Result<Vec<f32>, Error> {
        Ok(self.vectors(&[text]).await?.pop().unwrap_or_default())
    }

    /// Examples on a server are shared: they are not embedded anew because one program uses another embedder.
    pub fn refuse(&self, store: &str, theirs: &str, dimensions: i64, elsewhere: &str) -> Error {
        let (ours, length) = (self.name(), self.dimensions);
        Error::Unusable {
            message: format!(
                "{store} was made with the embedder `{theirs}` ({dimensions} numbers), this is `{ours}` ({length})"
            ),
            hint: format!("use that embedder, or {elsewhere} and seed it"),
        }
    }

    fn unsteady(&self) -> Error {
        Error::Unusable {
            message: format!("the embedder `{}` made vectors of another length than it should", self.name()),
            hint: "use another embedder".into(),
        }
    }
}
