//! Deterministic demo database of a small shop.
//!
//! | table | rows | columns |
//! |---|---|---|
//! | `customers` | 60 | `customer_id`, `name`, `email`, `city`, `country`, `phone` (often NULL), `signed_up` |
//! | `products` | 40 | `product_id`, `name`, `category`, `price`, `stock`, `discontinued` (0 or 1) |
//! | `orders` | 180 | `order_id`, `customer_id`, `ordered_on`, `shipped_on` (NULL until shipped), `status` |
//! | `order_items` | 471 | `order_id`, `line`, `product_id`, `quantity`, `"unitPrice"`, `"discount (%)"` (mostly NULL) |
//! | `reviews` | 120 | `review_id`, `product_id`, `customer_id`, `"order"`, `stars`, `comment` (some NULL), `written_on` |
//!
//! The schema is deliberately awkward, as real databases are: a mixed-case name, a name with a
//! space and punctuation, a column called `order`, dates as text (`2024-03-09`), NULLs, a customer
//! called O'Brien and non-ASCII names. All keys are declared except one: `reviews.product_id` has
//! no foreign key to `products`. A few customers never ordered, a few products were never sold, and
//! `unitPrice` is the price paid at the time, which may differ from the current `price`.

mod data;

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

use rusqlite::{Connection, OpenFlags, params};

use self::data::{CITIES, COMMENTS, FIRST_NAMES, LAST_NAMES, ORDER_STATUSES, PRODUCTS};
use crate::Error;

const TABLES: &str = r#"
CREATE TABLE customers (
    customer_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE,
    city TEXT NOT NULL,
    country TEXT NOT NULL,
    phone TEXT,
    signed_up TEXT NOT NULL
);
CREATE TABLE products (
    product_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    category TEXT NOT NULL,
    price REAL NOT NULL,
    stock INTEGER NOT NULL,
    discontinued INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE orders (
    order_id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (customer_id),
    ordered_on TEXT NOT NULL,
    shipped_on TEXT,
    status TEXT NOT NULL
);
CREATE TABLE order_items (
    order_id INTEGER NOT NULL REFERENCES orders (order_id),
    line INTEGER NOT NULL,
    product_id INTEGER NOT NULL REFERENCES products (product_id),
    quantity INTEGER NOT NULL,
    "unitPrice" REAL NOT NULL,
    "discount (%)" REAL,
    PRIMARY KEY (order_id, line)
);
CREATE TABLE reviews (
    review_id INTEGER PRIMARY KEY,
    product_id INTEGER NOT NULL,
    customer_id INTEGER NOT NULL REFERENCES customers (customer_id),
    "order" INTEGER NOT NULL REFERENCES orders (order_id),
    stars INTEGER NOT NULL,
    comment TEXT,
    written_on TEXT NOT NULL
);
CREATE INDEX orders_of_customer ON orders (customer_id);
"#;

const CUSTOMER_COUNT: usize = 60;
const ORDER_COUNT: usize = 180;
const REVIEW_COUNT: usize = 120;
/// Day 0 of the shop. The last order is placed less than three years later.
const FIRST_DAY: &str = "2022-01-03";
const DAY_COUNT: usize = 1_000;

/// Writes the demo database to a new file. Fails if the file already exists.
pub fn write(path: &Path) -> Result<(), Error> {
    let display_path = path.display();
    let already_exists =
        || Error::unavailable(format!("`{display_path}` already exists"), "choose another name, or delete it first");
    let unwritable = |error: &io::Error| {
        let hint = "check that the folder exists and is writable";
        Error::unavailable(format!("`{display_path}` cannot be written: {error}"), hint)
    };
    if fs::symlink_metadata(path).is_ok() {
        return Err(already_exists());
    }
    // Written to a temporary file first, so that an interrupted run leaves no partial database
    // under the final name.
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = Path::new(&beside);
    OpenOptions::new().write(true).create_new(true).open(beside).map_err(|error| unwritable(&error))?;
    let written = populate(beside).map_err(|error| {
        Error::unavailable(format!("`{display_path}` cannot be written: {error}"), "check the free disk space")
    });
    // A hard link fails if the target appeared in the meantime; a rename would replace it.
    let placed = written.and_then(|()| match fs::hard_link(beside, path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(already_exists()),
        // Some file systems do not support hard links.
        Err(_) => fs::rename(beside, path).map_err(|error| unwritable(&error)),
    });
    // A failure to remove the temporary file must not hide the outcome.
    fs::remove_file(beside).ok();
    placed
}

fn populate(path: &Path) -> rusqlite::Result<()> {
    // SQLite interprets names such as `file:…` as URIs, so the path must be absolute.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    let shop = connection.transaction()?;
    shop.execute_batch(TABLES)?;
    let mut rng = SplitMix64(2022);
    let prices = insert_products(&shop, &mut rng)?;
    insert_customers(&shop, &mut rng)?;
    let sold = insert_orders(&shop, &mut rng, &prices)?;
    insert_reviews(&shop, &mut rng, &sold)?;
    shop.commit()
}

fn insert_products(shop: &Connection, rng: &mut SplitMix64) -> rusqlite::Result<Vec<f64>> {
    let mut insert = shop.prepare("INSERT INTO products VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    let mut prices = Vec::new();
    for (category, names) in PRODUCTS {
        for (name, price) in *names {
            prices.push(*price);
            let stock = if rng.one_in(8) { 0 } else { rng.below(200) };
            insert.execute(params![to_i64(prices.len()), name, category, price, to_i64(stock), rng.one_in(12)])?;
        }
    }
    Ok(prices)
}

fn insert_customers(shop: &Connection, rng: &mut SplitMix64) -> rusqlite::Result<()> {
    let mut insert = shop.prepare("INSERT INTO customers VALUES (?1, ?2, ?3, ?4, ?5, ?6, date(?7, ?8))")?;
    for i in 0..CUSTOMER_COUNT {
        // Twenty first names and twelve last names: each pair occurs once in sixty customers.
        let (first, last) = (FIRST_NAMES[i % FIRST_NAMES.len()], LAST_NAMES[i % LAST_NAMES.len()]);
        let (city, country, dial) = rng.pick(CITIES);
        let email = format!("{}.{}@example.org", to_email_name(first), to_email_name(last));
        let phone = rng.one_in(2).then(|| format!("+{dial} 555 01{:02}", rng.below(100)));
        insert.execute(params![
            to_i64(i + 1),
            format!("{first} {last}"),
            email,
            city,
            country,
            phone,
            FIRST_DAY,
            day_offset(i * 6)
        ])?;
    }
    Ok(())
}

/// Sold item that a review can refer to.
struct Sale {
    order: usize,
    customer: usize,
    product: usize,
    day: usize,
}

fn insert_orders(shop: &Connection, rng: &mut SplitMix64, prices: &[f64]) -> rusqlite::Result<Vec<Sale>> {
    let mut order = shop.prepare("INSERT INTO orders VALUES (?1, ?2, date(?3, ?4), date(?3, ?5), ?6)")?;
    let mut item = shop.prepare("INSERT INTO order_items VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    let mut sold = Vec::new();
    for i in 1..=ORDER_COUNT {
        // Orders are sorted by date and placed by customers who have signed up by then; the last
        // five customers never order.
        let on = i * DAY_COUNT / ORDER_COUNT;
        let customer = 1 + rng.below((on / 6).clamp(1, CUSTOMER_COUNT - 5));
        // The newest orders are in transit or not shipped yet.
        let status = match ORDER_COUNT - i {
            0..10 => "pending",
            10..24 => "shipped",
            _ => rng.pick(ORDER_STATUSES),
        };
        let shipped = (!matches!(status, "pending" | "cancelled")).then(|| day_offset(on + 1 + rng.below(6)));
        order.execute(params![to_i64(i), to_i64(customer), FIRST_DAY, day_offset(on), shipped, status])?;
        let mut bought: Vec<usize> = Vec::new();
        for _ in 0..1 + rng.below(4) {
            // The last two products are never sold, and an order contains a product at most once.
            let product = 1 + rng.below(prices.len() - 2);
            if bought.contains(&product) {
                continue;
            }
            bought.push(product);
            // Prices were 10 % lower in the first year.
            let paid = prices[product - 1] * if on < 365 { 0.9 } else { 1.0 };
            let discount = rng.one_in(6).then(|| [5.0, 10.0, 12.5, 20.0][rng.below(4)]);
            let quantity = if rng.one_in(3) { 2 + rng.below(3) } else { 1 };
            let (line, paid) = (bought.len(), (paid * 100.0).round() / 100.0);
            item.execute(params![to_i64(i), to_i64(line), to_i64(product), to_i64(quantity), paid, discount])?;
            if status == "delivered" || status == "returned" {
                sold.push(Sale { order: i, customer, product, day: on });
            }
        }
    }
    Ok(sold)
}

fn insert_reviews(shop: &Connection, rng: &mut SplitMix64, sold: &[Sale]) -> rusqlite::Result<()> {
    let mut insert = shop.prepare("INSERT INTO reviews VALUES (?1, ?2, ?3, ?4, ?5, ?6, date(?7, ?8))")?;
    for i in 1..=REVIEW_COUNT {
        // Spread over all sales, so that no order reviews a product twice.
        let sale = &sold[(i - 1) * sold.len() / REVIEW_COUNT];
        // Satisfied customers write more reviews.
        let stars = [1, 2, 3, 4, 4, 5, 5, 5][rng.below(8)];
        let comment = (!rng.one_in(4)).then(|| *rng.pick(COMMENTS[stars - 1]));
        let written = day_offset(sale.day + 8 + rng.below(20));
        let (product, customer, order) = (to_i64(sale.product), to_i64(sale.customer), to_i64(sale.order));
        insert.execute(params![to_i64(i), product, customer, order, to_i64(stars), comment, FIRST_DAY, written])?;
    }
    Ok(())
}

/// Converts to SQLite's integer type.
fn to_i64(number: usize) -> i64 {
    number as i64
}

/// Formats a number of days as a modifier of SQLite's `date` function.
fn day_offset(number: usize) -> String {
    format!("+{number} days")
}

/// Converts a name to the local part of an e-mail address.
fn to_email_name(name: &str) -> String {
    let letters = name.chars().flat_map(char::to_lowercase).filter(|letter| *letter != '\'');
    let in_ascii = letters.map(|letter| match letter {
        'é' => 'e',
        'í' | 'ı' => 'i',
        'á' => 'a',
        'ø' | 'ö' => 'o',
        'ü' => 'u',
        other => other,
    });
    in_ascii.collect()
}

/// Deterministic pseudo-random number generator (splitmix64).
struct SplitMix64(u64);

impl SplitMix64 {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
