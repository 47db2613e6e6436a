use super::*;

/// Deterministic pseudo-random number generator.
struct VectorRng(u64);

impl VectorRng {
    fn number(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }

    fn around(&mut self, centre: &[f32], spread: f32) -> Vec<f32> {
        let numbers: Vec<f32> = centre.iter().map(|number| number + spread * self.number()).collect();
        let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
        numbers.iter().map(|number| number / length).collect()
    }
}

fn filled_index(rows: u32, dimensions: usize) -> (IvfIndex, Vec<Vec<f32>>) {
    let mut dice = VectorRng(7);
    let middles: Vec<Vec<f32>> = (0..300).map(|_| dice.around(&vec![0.0; dimensions], 1.0)).collect();
    let mut vectors = IvfIndex::new(dimensions);
    let all: Vec<Vec<f32>> = (0..rows)
        .map(|row| {
            let vector = dice.around(&middles[row as usize % middles.len()], 0.15);
            let kept = quantize(&vector);
            vectors.insert(row, kept.scale, &kept.codes);
            vector
        })
        .collect();
    (vectors, all)
}

fn exact_nearest(all: &[Vec<f32>], query: &[f32], most: usize) -> Vec<u32> {
    let mut near: Vec<(f32, u32)> =
        all.iter().zip(0..).map(|(vector, row)| (vector.iter().zip(query).map(|(a, b)| a * b).sum(), row)).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.into_iter().take(most).map(|(_, row)| row).collect()
}

#[test]
fn finds_the_nearest_neighbors() {
    let (mut vectors, all) = filled_index(3000, 48);
    for asked in (0..3000).step_by(97) {
        let query = QuantizedQuery::from(&quantize(&all[asked]));
        let got = vectors.nearest(&query, 40, |_| true);
        assert_eq!(got[0].0, asked as u32);
        assert!((got[0].1 - 1.0).abs() < 0.02 && got.is_sorted_by(|a, b| a.1 >= b.1));
        let five = exact_nearest(&all, &all[asked], 5);
        assert!(five.iter().all(|row| got.iter().any(|(got, _)| got == row)));
        assert!(vectors.nearest(&query, 5, |row| row % 2 == 1).iter().all(|(row, _)| row % 2 == 1));
        assert_eq!(vectors.nearest_among(&[5, 9, asked as u32, 4_000_000], &query, 2, |_| true)[0].0, asked as u32);
    }
    for row in 0..2999 {
        vectors.remove(row);
        vectors.remove(row);
    }
    let query = QuantizedQuery::from(&quantize(&all[3]));
    assert_eq!(vectors.nearest(&query, 5, |_| true).iter().map(|(row, _)| *row).collect::<Vec<_>>(), [2999]);
    assert!(vectors.nearest(&query, 0, |_| true).is_empty() && vectors.len() == 1);
}

#[test]
fn index_loses_no_rows_during_or_after_a_build() {
    let count = min_indexed_rows() as u32 + 1_000;
    let (mut vectors, all) = filled_index(count, 32);
    assert!(!vectors.is_approximate());
    let sample = vectors.training_sample().unwrap();
    assert!(Centroids::train(&sample, || true).is_none());
    let centres = Centroids::train(&sample, || false).unwrap();
    let kept = Centroids::from_parts(32, (0..centres.len()).map(|at| centres.get(at))).unwrap();
    assert_eq!(kept, centres);
    assert!(Centroids::from_parts(64 + 32, (0..centres.len()).map(|at| centres.get(at))).is_none());
    vectors.set_centroids(centres);
    let asked: Vec<(u32, QuantizedQuery, Vec<u32>)> = (0..count)
        .step_by(199)
        .map(|row| {
            let vector = &all[row as usize];
            (row, QuantizedQuery::from(&quantize(vector)), exact_nearest(&all, vector, 5))
        })
        .collect();
    let hits = |vectors: &IvfIndex| {
        let found = asked.iter().map(|(row, query, five)| {
            let got = vectors.nearest(query, 40, |_| true);
            assert_eq!(got[0].0, *row);
            five.iter().filter(|row| got.iter().any(|(got, _)| got == *row)).count()
        });
        found.sum::<usize>() as f64 / (5 * asked.len()) as f64
    };
    assert!(hits(&vectors) > 0.999);
    let settle = |vectors: &mut IvfIndex, most| {
        let rows = vectors.unassigned_rows(most);
        let centres = vectors.centroids().unwrap();
        let to: Vec<(u32, u32)> = rows
            .iter()
            .map(|(row, codes)| (*row, centres.nearest(&QuantizedQuery::from_codes(1.0, codes)) as u32))
            .collect();
        vectors.assign(to);
    };
    settle(&mut vectors, min_indexed_rows());
    assert_eq!((vectors.len(), vectors.unassigned_count()), (count as usize, 1_000));
    assert!(hits(&vectors) > 0.98);
    settle(&mut vectors, 100_000);
    assert_eq!((vectors.len(), vectors.unassigned_count()), (count as usize, 0));
    assert!(hits(&vectors) > 0.98);
    let listed: usize = (0..vectors.centroids().unwrap().len()).map(|list| vectors.list_rows(list).len()).sum();
    assert_eq!(listed, count as usize);
    assert!(vectors.training_sample().is_none());
    // A selective predicate still finds all matching rows.
    let query = QuantizedQuery::from(&quantize(&all[17]));
    assert_eq!(vectors.nearest(&query, 20, |row| row % 2_000 == 3).len(), (count as usize - 3).div_ceil(2_000));
    // New centroids, and a row that is removed while others are assigned.
    let again = vectors.centroids().unwrap().clone();
    vectors.remove(123);
    vectors.set_centroids(again);
    assert_eq!((vectors.len(), vectors.unassigned_count()), (count as usize - 1, count as usize - 1));
    vectors.assign([(123, 0), (5, 4_000_000), (6, 1)]);
    assert_eq!(vectors.unassigned_count(), count as usize - 2);
}
