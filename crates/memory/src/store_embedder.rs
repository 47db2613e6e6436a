//! Embedding of questions for server-based stores.

use std::sync::Arc;

use querymend_model::Embedder;

use crate::error::Error;

/// Number of questions per embedder call.
const BATCH_SIZE: usize = 256;

/// Embedder with a known vector length.
pub(crate) struct StoreEmbedder {
    embedder: Arc<dyn Embedder>,
    pub dimensions: usize,
}

impl StoreEmbedder {
    /// Determines the vector length, by embedding a text if the embedder does not know it yet.
    pub async fn new(embedder: Arc<dyn Embedder>) -> Result<Self, Error> {
        let dimensions = match embedder.dimensions() {
            Some(dimensions) => dimensions,
            None => embedder.embed(&["question"]).await.map_err(Error::Embedding)?.first().map_or(0, Vec::len),
        };
        let this = Self { embedder, dimensions };
        if dimensions == 0 { Err(this.dimension_error()) } else { Ok(this) }
    }

    pub fn name(&self) -> &str {
        self.embedder.name()
    }

    /// Embeds texts, one vector each.
    pub async fn vectors(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        let mut all = Vec::with_capacity(texts.len());
        for part in texts.chunks(BATCH_SIZE) {
            let vectors = self.embedder.embed(part).await.map_err(Error::Embedding)?;
            if vectors.len() != part.len() || vectors.iter().any(|vector| vector.len() != self.dimensions) {
                return Err(self.dimension_error());
            }
            all.extend(vectors);
            // The built-in embedder never yields, so let other tasks run between batches.
            tokio::task::yield_now().await;
        }
        Ok(all)
    }

    /// Embeds one text.
    pub async fn vector(&self, text: &str) -> Result<Vec<f32>, Error> {
        Ok(self.vectors(&[text]).await?.pop().unwrap_or_default())
    }

    /// Creates the error for a store with another embedder.
    ///
    /// Examples on a server are shared, so they are not re-embedded because one program uses
    /// another embedder.
    pub fn embedder_mismatch_error(&self, store: &str, theirs: &str, dimensions: i64, alternative: &str) -> Error {
        let (ours, length) = (self.name(), self.dimensions);
        Error::Unusable {
            message: format!(
                "{store} was created with the embedder `{theirs}` ({dimensions} dimensions), this is `{ours}` ({length})"
            ),
            hint: format!("use that embedder, or {alternative} and seed it"),
        }
    }

    fn dimension_error(&self) -> Error {
        Error::Unusable {
            message: format!("the embedder `{}` returned vectors of an unexpected length", self.name()),
            hint: "use another embedder".into(),
        }
    }
}
