//! Weights of the features that rank tables.

/// Weights of the ranking features.
///
/// The defaults were tuned on one half of Spider's databases (docs/measurements/linking.md); other values serve
/// ablation measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct RankingWeights {
    /// Term in the table name.
    pub name: f32,
    /// Fraction of `name` that depends on how much of the table name the question covers.
    pub full_name_share: f32,
    /// Exponent of the coverage: higher values penalize missing terms of the name more.
    pub missing_exponent: f32,
    /// Term in a column name.
    pub column: f32,
    /// Exponent that damps terms of long column names. 0 has no effect, 1 divides by the number of
    /// terms.
    pub column_length_exponent: f32,
    /// Exponent of the fraction of a column name that the question covers. Only used for top
    /// candidates.
    pub column_coverage_exponent: f32,
    /// Penalty for tables with many columns.
    pub width_penalty: f32,
    /// Term in a comment.
    pub comment: f32,
    /// Term in the name of the table's schema.
    pub schema: f32,
    /// Synonym of a question term.
    pub synonym: f32,
    /// Minimum cosine similarity of synonyms.
    pub min_synonym_similarity: f32,
    /// Compound of two question terms with the first abbreviated: `fname` for "first name".
    pub abbreviation: f32,
    /// Factor for question terms that are likely values: quoted or capitalized.
    pub value_like: f32,
    /// Factor for question terms that are common to all kinds of databases.
    pub low_signal: f32,
    /// Value of the question that a column contains.
    pub value: f32,
    /// Fraction of the neighbors' scores that is added for terms which the table itself lacks.
    pub neighbour: f32,
    /// Decay of neighbor scores per join.
    pub decay: f32,
    /// `true` to rank tables in groups, together with the tables that join them.
    pub join_paths: bool,
    /// Minimum gain of a further table in a group, as a fraction of the seed's score.
    pub min_gain: f32,
    /// Weight of the seed's first-pass score in the group score.
    pub seed: f32,
    /// Boost of a group whose terms match the topic of the question.
    pub topic: f32,
    /// Minimum lead of the best group that adds more tables of its schema. A fraction of the score
    /// of groups of other schemas.
    pub lead_margin: f32,
}

impl Default for RankingWeights {
    fn default() -> Self {
        Self {
            name: 1.0,
            full_name_share: 0.8,
            missing_exponent: 3.0,
            column: 0.5,
            column_length_exponent: 0.5,
            column_coverage_exponent: 1.0,
            width_penalty: 0.9,
            comment: 0.4,
            schema: 0.3,
            synonym: 0.6,
            min_synonym_similarity: 0.45,
            abbreviation: 0.7,
            value_like: 0.45,
            low_signal: 0.2,
            value: 1.0,
            neighbour: 0.8,
            decay: 0.5,
            join_paths: true,
            min_gain: 0.15,
            seed: 0.5,
            topic: 3.0,
            lead_margin: 0.15,
        }
    }
}
