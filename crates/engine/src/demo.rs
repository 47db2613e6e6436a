//! A small shop to try things on, the same each time that it is written.
//!
//! | table | rows | what is in it |
//! |---|---|---|
//! | `customers` | 60 | `customer_id`, `name`, `email`, `city`, `country`, `phone` (often NULL), `signed_up` |
//! | `products` | 40 | `product_id`, `name`, `category`, `price`, `stock`, `discontinued` (0 or 1) |
//! | `orders` | 180 | `order_id`, `customer_id`, `ordered_on`, `shipped_on` (NULL until it is sent), `status` |
//! | `order_items` | 471 | `order_id`, `line`, `product_id`, `quantity`, `"unitPrice"`, `"discount (%)"` (mostly NULL) |
//! | `reviews` | 120 | `review_id`, `product_id`, `customer_id`, `"order"`, `stars`, `comment` (NULL for some), `written_on` |
//!
//! It is awkward on purpose, as real databases are: a name in mixed case, a name with a space and a sign, a column
//! called `order`, dates as text (`2024-03-09`), NULLs, a customer called O'Brien, names beyond ASCII. Keys are
//! declared, but for one: nothing says that `reviews.product_id` refers to `products`. A few customers never ordered,
//! a few products were never sold, and `unitPrice` is what was paid at the time, which is not always today's `price`.

mod words;

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

use rusqlite::{Connection, OpenFlags, params};

use self::words::{CITIES, COMMENTS, FIRST_NAMES, LAST_NAMES, OUTCOMES, PRODUCTS};
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

const CUSTOMERS: usize = 60;
const ORDERS: usize = 180;
const REVIEWS: usize = 120;
/// Day 0 of the shop. Its last order comes less than three years later.
const OPENING: &str = "2022-01-03";
const DAYS: usize = 1_000;

/// Writes the shop to a new file. A file that is already there is left as it is.
pub fn write(path: &Path) -> Result<(), Error> {
    let shown = path.display();
    let there = || Error::unavailable(format!("`{shown}` is already there"), "choose another name, or delete it first");
    let unwritable = |error: &io::Error| {
        let hint = "check that the folder is there and that you may write to it";
        Error::unavailable(format!("`{shown}` cannot be written: {error}"), hint)
    };
    if fs::symlink_metadata(path).is_ok() {
        return Err(there());
    }
    // Written beside, so that a program that is stopped on the way leaves no half a shop under the name.
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = Path::new(&beside);
    OpenOptions::new().write(true).create_new(true).open(beside).map_err(|error| unwritable(&error))?;
    let written = fill(beside).map_err(|error| {
        Error::unavailable(format!("`{shown}` cannot be written: {error}"), "check that there is room on the disk")
    });
    // Linking fails where something came to be there in the meantime, which renaming would replace.
    let placed = written.and_then(|()| match fs::hard_link(beside, path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(there()),
        // Some file systems have no links.
        Err(_) => fs::rename(beside, path).map_err(|error| unwritable(&error)),
    });
    // If even this fails, the outcome above still says what happened first.
    fs::remove_file(beside).ok();
    placed
}

fn fill(path: &Path) -> rusqlite::Result<()> {
    // An absolute path, because SQLite reads names such as `file:…` in a way of its own.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    let shop = connection.transaction()?;
    shop.execute_batch(TABLES)?;
    let mut dice = Dice(2022);
    let prices = products(&shop, &mut dice)?;
    customers(&shop, &mut dice)?;
    let sold = orders(&shop, &mut dice, &prices)?;
    reviews(&shop, &mut dice, &sold)?;
    shop.commit()
}

fn products(shop: &Connection, dice: &mut Dice) -> rusqlite::Result<Vec<f64>> {
    let mut insert = shop.prepare("INSERT INTO products VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    let mut prices = Vec::new();
    for (category, names) in PRODUCTS {
        for (name, price) in *names {
            prices.push(*price);
            let stock = if dice.one_in(8) { 0 } else { dice.below(200) };
            insert.execute(params![whole(prices.len()), name, category, price, whole(stock), dice.one_in(12)])?;
        }
    }
    Ok(prices)
}

fn customers(shop: &Connection, dice: &mut Dice) -> rusqlite::Result<()> {
    let mut insert = shop.prepare("INSERT INTO customers VALUES (?1, ?2, ?3, ?4, ?5, ?6, date(?7, ?8))")?;
    for i in 0..CUSTOMERS {
        // Twenty first names against twelve last names: each pair comes once in sixty.
        let (first, last) = (FIRST_NAMES[i % FIRST_NAMES.len()], LAST_NAMES[i % LAST_NAMES.len()]);
        let (city, country, dial) = dice.pick(CITIES);
        let email = format!("{}.{}@example.org", plain(first), plain(last));
        let phone = dice.one_in(2).then(|| format!("+{dial} 555 01{:02}", dice.below(100)));
        insert.execute(params![
            whole(i + 1),
            format!("{first} {last}"),
            email,
            city,
            country,
            phone,
            OPENING,
            day(i * 6)
        ])?;
    }
    Ok(())
}

/// What was sold to whom and when: what reviews are written about.
struct Sale {
    order: usize,
    customer: usize,
    product: usize,
    day: usize,
}

fn orders(shop: &Connection, dice: &mut Dice, prices: &[f64]) -> rusqlite::Result<Vec<Sale>> {
    let mut order = shop.prepare("INSERT INTO orders VALUES (?1, ?2, date(?3, ?4), date(?3, ?5), ?6)")?;
    let mut item = shop.prepare("INSERT INTO order_items VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    let mut sold = Vec::new();
    for i in 1..=ORDERS {
        // Orders come in the order of their dates, from customers who have signed up by then; the last five never buy.
        let on = i * DAYS / ORDERS;
        let customer = 1 + dice.below((on / 6).clamp(1, CUSTOMERS - 5));
        // The newest orders are still on their way, or not even sent.
        let status = match ORDERS - i {
            0..10 => "pending",
            10..24 => "shipped",
            _ => dice.pick(OUTCOMES),
        };
        let shipped = (!matches!(status, "pending" | "cancelled")).then(|| day(on + 1 + dice.below(6)));
        order.execute(params![whole(i), whole(customer), OPENING, day(on), shipped, status])?;
        let mut bought: Vec<usize> = Vec::new();
        for _ in 0..1 + dice.below(4) {
            // The last two products were never sold, and nobody buys the same thing on two lines.
            let product = 1 + dice.below(prices.len() - 2);
            if bought.contains(&product) {
                continue;
            }
            bought.push(product);
            // In the first year everything was a tenth cheaper.
            let paid = prices[product - 1] * if on < 365 { 0.9 } else { 1.0 };
            let discount = dice.one_in(6).then(|| [5.0, 10.0, 12.5, 20.0][dice.below(4)]);
            let quantity = if dice.one_in(3) { 2 + dice.below(3) } else { 1 };
            let (line, paid) = (bought.len(), (paid * 100.0).round() / 100.0);
            item.execute(params![whole(i), whole(line), whole(product), whole(quantity), paid, discount])?;
            if status == "delivered" || status == "returned" {
                sold.push(Sale { order: i, customer, product, day: on });
            }
        }
    }
    Ok(sold)
}

fn reviews(shop: &Connection, dice: &mut Dice, sold: &[Sale]) -> rusqlite::Result<()> {
    let mut insert = shop.prepare("INSERT INTO reviews VALUES (?1, ?2, ?3, ?4, ?5, ?6, date(?7, ?8))")?;
    for i in 1..=REVIEWS {
        // Spread over all sales, so that nothing is reviewed twice by the same order.
        let sale = &sold[(i - 1) * sold.len() / REVIEWS];
        // People who are content write more often.
        let stars = [1, 2, 3, 4, 4, 5, 5, 5][dice.below(8)];
        let comment = (!dice.one_in(4)).then(|| *dice.pick(COMMENTS[stars - 1]));
        let written = day(sale.day + 8 + dice.below(20));
        let (product, customer, order) = (whole(sale.product), whole(sale.customer), whole(sale.order));
        insert.execute(params![whole(i), product, customer, order, whole(stars), comment, OPENING, written])?;
    }
    Ok(())
}

/// A number as SQLite stores it.
fn whole(number: usize) -> i64 {
    number as i64
}

/// A number of days as SQLite's `date` adds it.
fn day(number: usize) -> String {
    format!("+{number} days")
}

/// A name as it stands in an e-mail address.
fn plain(name: &str) -> String {
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

/// Numbers that look thrown and are the same each time (splitmix64).
struct Dice(u64);

impl Dice {
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
