use super::*;

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
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

fn filled(rows: u32, dimensions: usize) -> (Vectors, Vec<Vec<f32>>) {
    let mut dice = Dice(7);
    let middles: Vec<Vec<f32>> = (0..300).map(|_| dice.around(&vec![0.0; dimensions], 1.0)).collect();
    let mut vectors = Vectors::new(dimensions);
    let all: Vec<Vec<f32>> = (0..rows)
        .map(|row| {
            let vector = dice.around(&middles[row as usize % middles.len()], 0.15);
            let kept = code(&vector);
            vectors.put(row, kept.scale, &kept.codes);
            vector
        })
        .collect();
    (vectors, all)
}

fn right(all: &[Vec<f32>], query: &[f32], most: usize) -> Vec<u32> {
    let mut near: Vec<(f32, u32)> =
        all.iter().zip(0..).map(|(vector, row)| (vector.iter().zip(query).map(|(a, b)| a * b).sum(), row)).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.into_iter().take(most).map(|(_, row)| row).collect()
}

#[test]
fn f06_the_nearest_are_found() {
    let (mut vectors, all) = filled(3000, 48);
    for asked in (0..3000).step_by(97) {
        let query = Query::from(&code(&all[asked]));
        let got = vectors.nearest(&query, 40, |_| true);
        assert_eq!(got[0].0, asked as u32);
        assert!((got[0].1 - 1.0).abs() < 0.02 && got.is_sorted_by(|a, b| a.1 >= b.1));
        let five = right(&all, &all[asked], 5);
        assert!(five.iter().all(|row| got.iter().any(|(got, _)| got == row)));
        assert!(vectors.nearest(&query, 5, |row| row % 2 == 1).iter().all(|(row, _)| row % 2 == 1));
        assert_eq!(vectors.nearest_among(&[5, 9, asked as u32, 4_000_000], &query, 2, |_| true)[0].0, asked as u32);
    }
    for row in 0..2999 {
        vectors.remove(row);
        vectors.remove(row);
    }
    let query = Query::from(&code(&all[3]));
    assert_eq!(vectors.nearest(&query, 5, |_| true).iter().map(|(row, _)| *row).collect::<Vec<_>>(), [2999]);
    assert!(vectors.nearest(&query, 0, |_| true).is_empty() && vectors.len() == 1);
}

#[test]
fn f06_an_index_loses_no_rows_while_it_is_built_nor_later() {
    let count = indexed_from() as u32 + 1_000;
    let (mut vectors, all) = filled(count, 32);
    assert!(!vectors.is_approximate());
    let sample = vectors.sample().unwrap();
    assert!(Centres::find(&sample, || true).is_none());
    let centres = Centres::find(&sample, || false).unwrap();
    let kept = Centres::read(32, (0..centres.len()).map(|at| centres.centre(at))).unwrap();
    assert_eq!(kept, centres);
    assert!(Centres::read(64 + 32, (0..centres.len()).map(|at| centres.centre(at))).is_none());
    vectors.adopt(centres);
    let asked: Vec<(u32, Query, Vec<u32>)> = (0..count)
        .step_by(199)
        .map(|row| {
            let vector = &all[row as usize];
            (row, Query::from(&code(vector)), right(&all, vector, 5))
        })
        .collect();
    let hits = |vectors: &Vectors| {
        let found = asked.iter().map(|(row, query, five)| {
            let got = vectors.nearest(query, 40, |_| true);
            assert_eq!(got[0].0, *row);
            five.iter().filter(|row| got.iter().any(|(got, _)| got == *row)).count()
        });
        found.sum::<usize>() as f64 / (5 * asked.len()) as f64
    };
    assert!(hits(&vectors) > 0.999);
    let settle = |vectors: &mut Vectors, most| {
        let rows = vectors.some_loose(most);
        let centres = vectors.centres().unwrap();
        let to: Vec<(u32, u32)> =
            rows.iter().map(|(row, codes)| (*row, centres.nearest(&Query::of(1.0, codes)) as u32)).collect();
        vectors.settle(to);
    };
    settle(&mut vectors, indexed_from());
    assert_eq!((vectors.len(), vectors.loose()), (count as usize, 1_000));
    assert!(hits(&vectors) > 0.98);
    settle(&mut vectors, 100_000);
    assert_eq!((vectors.len(), vectors.loose()), (count as usize, 0));
    assert!(hits(&vectors) > 0.98);
    let listed: usize = (0..vectors.centres().unwrap().len()).map(|list| vectors.listed(list).len()).sum();
    assert_eq!(listed, count as usize);
    assert!(vectors.sample().is_none());
    // A filter that few rows pass finds them all the same.
    let query = Query::from(&code(&all[17]));
    assert_eq!(vectors.nearest(&query, 20, |row| row % 2_000 == 3).len(), (count as usize - 3).div_ceil(2_000));
    // New centres, and rows that go while others move.
    let again = vectors.centres().unwrap().clone();
    vectors.remove(123);
    vectors.adopt(again);
    assert_eq!((vectors.len(), vectors.loose()), (count as usize - 1, count as usize - 1));
    vectors.settle([(123, 0), (5, 4_000_000), (6, 1)]);
    assert_eq!(vectors.loose(), count as usize - 2);
}
