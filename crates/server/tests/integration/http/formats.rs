//! Rows as Arrow and Parquet, read back by the readers of others.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_ipc::reader::StreamReader;
use arrow_schema::DataType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use reqwest::Response;
use serde_json::{Value, json};

use super::house::{House, house, problem};

const ARROW: &str = "application/vnd.apache.arrow.stream";
const PARQUET: &str = "application/vnd.apache.parquet";

async fn post(house: &House, path: &str, accept: &str, body: Value) -> Response {
    house.client.post(house.url(path)).header("accept", accept).json(&body).send().await.unwrap()
}

async fn arrow(response: Response) -> (Vec<(String, DataType)>, Vec<RecordBatch>) {
    assert_eq!((response.status().as_u16(), &response.headers()["content-type"]), (200, &ARROW.parse().unwrap()));
    let bytes = response.bytes().await.unwrap();
    let reader = StreamReader::try_new(&bytes[..], None).unwrap();
    let fields = reader.schema().fields().iter().map(|f| (f.name().clone(), f.data_type().clone())).collect();
    (fields, reader.map(Result::unwrap).collect())
}

#[tokio::test]
async fn run_returns_arrow() {
    let house = house(&[]).await;
    let sql = "SELECT product_id, name, price, NULL AS missing, name FROM products ORDER BY product_id";
    let response = post(&house, "/v1/run", ARROW, json!({"sql": sql})).await;
    assert_eq!(response.headers()["x-truncated"], "false");
    let (fields, batches) = arrow(response).await;
    let name = |name: &str, kind| (name.to_owned(), kind);
    let expected = [
        name("product_id", DataType::Int64),
        name("name", DataType::Utf8),
        name("price", DataType::Float64),
        name("missing", DataType::Utf8),
        name("name", DataType::Utf8),
    ];
    assert_eq!(fields, expected);
    let whole = house.post("/v1/run", json!({"sql": sql})).await.json::<Value>().await.unwrap();
    let prices: Vec<f64> =
        batches.iter().flat_map(|batch| batch.column(2).as_primitive::<Float64Type>().values().to_vec()).collect();
    let same: Vec<f64> = whole["rows"]["rows"].as_array().unwrap().iter().map(|row| row[2].as_f64().unwrap()).collect();
    assert_eq!(prices, same);
    // What is refused is told in words, whatever is asked for.
    let (status, code, _) = problem(post(&house, "/v1/run", ARROW, json!({"sql": "DELETE FROM products"})).await).await;
    assert_eq!((status, code.as_str()), (400, "preflight_validation_failed"));
}

#[tokio::test]
async fn ask_returns_parquet() {
    let house = house(&["SELECT id, price FROM products WHERE category = 'Electronics'"]).await;
    let response = post(&house, "/v1/ask", PARQUET, json!({"question": "Which electronics are there?"})).await;
    assert_eq!((response.status().as_u16(), &response.headers()["content-type"]), (200, &PARQUET.parse().unwrap()));
    assert!(response.headers().contains_key("x-trace-id"));
    let reader = SerializedFileReader::new(response.bytes().await.unwrap()).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 8);
    let names: Vec<String> =
        reader.get_row_iter(None).unwrap().next().unwrap().unwrap().get_column_iter().map(|(n, _)| n.clone()).collect();
    assert_eq!(names, ["product_id", "price"]);
}

#[tokio::test]
async fn pages_of_a_result_have_the_same_types() {
    let house = house(&[]).await;
    // The first page alone would be whole numbers.
    let sql = "SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 0.5 ORDER BY n DESC";
    let first = post(&house, "/v1/run?page_size=2", ARROW, json!({"sql": sql})).await;
    let cursor = first.headers()["x-cursor"].to_str().unwrap().to_owned();
    let next = house.client.get(house.url(&format!("/v1/results/{cursor}"))).header("accept", ARROW);
    let next = arrow(next.send().await.unwrap()).await;
    let first = arrow(first).await;
    assert_eq!(first.0, [("n".to_owned(), DataType::Float64)]);
    assert_eq!(first.0, next.0);
    let numbers = |batches: &[RecordBatch]| batches[0].column(0).as_primitive::<Float64Type>().values().to_vec();
    assert_eq!((numbers(&first.1), numbers(&next.1)), (vec![2.0, 1.0], vec![0.5]));
}
