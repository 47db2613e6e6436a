//! Names, products and review comments of the demo shop.

pub(super) const FIRST_NAMES: &[&str] = &[
    "Aoife", "Björn", "Chloé", "Daniel", "Elif", "Farah", "Grace", "Hana", "Ivan", "José", "Karin", "Liam", "Mei",
    "Nadia", "Oskar", "Priya", "Quentin", "Rosa", "Søren", "Tomás",
];
pub(super) const LAST_NAMES: &[&str] = &[
    "O'Brien", "Müller", "García", "Nakamura", "Dubois", "Kowalska", "Smith", "Øster", "Rossi", "D'Angelo", "Yılmaz",
    "Patel",
];
/// City, country and telephone country code.
pub(super) const CITIES: &[(&str, &str, u16)] = &[
    ("Dublin", "Ireland", 353),
    ("Cork", "Ireland", 353),
    ("Zürich", "Switzerland", 41),
    ("Berlin", "Germany", 49),
    ("Köln", "Germany", 49),
    ("Paris", "France", 33),
    ("Lyon", "France", 33),
    ("Madrid", "Spain", 34),
    ("Málaga", "Spain", 34),
    ("Kraków", "Poland", 48),
    ("Oslo", "Norway", 47),
    ("Kyoto", "Japan", 81),
];
/// Categories with the names and prices of their products.
pub(super) const PRODUCTS: &[(&str, &[(&str, f64)])] = &[
    (
        "Electronics",
        &[
            ("Laptop 14\"", 899.0),
            ("Wireless Mouse", 24.9),
            ("USB-C Hub", 39.5),
            ("Noise-cancelling Headphones", 199.0),
            ("4K Monitor", 329.0),
            ("Mechanical Keyboard", 89.0),
            ("Webcam HD", 59.9),
            ("Portable Speaker", 74.5),
        ],
    ),
    (
        "Books",
        &[
            ("The Old Lighthouse", 12.9),
            ("Cooking for Two", 24.0),
            ("A Short History of Maps", 18.5),
            ("Learning SQL Slowly", 34.9),
            ("Poems of the North", 9.9),
            ("Garden Birds", 21.0),
            ("Mysteries of the Fjord", 11.5),
            ("Atlas of Islands", 45.0),
        ],
    ),
    (
        "Home & Kitchen",
        &[
            ("Espresso Machine", 249.0),
            ("Chef's Knife", 64.0),
            ("Linen Tablecloth", 38.0),
            ("Cast-iron Pan", 49.9),
            ("Glass Teapot", 27.5),
            ("Desk Lamp", 42.0),
            ("Wool Blanket", 79.0),
            ("Storage Basket", 15.9),
        ],
    ),
    (
        "Sports",
        &[
            ("Yoga Mat", 29.9),
            ("Trail Shoes", 119.0),
            ("Water Bottle", 14.5),
            ("Climbing Rope 60 m", 149.0),
            ("Tennis Racket", 95.0),
            ("Swim Goggles", 17.9),
            ("Cycling Gloves", 22.0),
            ("Foam Roller", 25.0),
        ],
    ),
    (
        "Toys",
        &[
            ("Wooden Train", 34.0),
            ("Puzzle 1000 Pieces", 16.9),
            ("Kite", 19.5),
            ("Building Blocks", 44.0),
            ("Plush Fox", 13.9),
            ("Marble Run", 52.0),
            ("Chess Set", 38.5),
            ("Paint Box", 11.9),
        ],
    ),
];
/// Order statuses, repeated to weight the random choice.
pub(super) const ORDER_STATUSES: &[&str] =
    &["delivered", "delivered", "delivered", "delivered", "delivered", "returned", "cancelled"];
/// Review comments, indexed by number of stars minus one.
pub(super) const COMMENTS: &[&[&str]] = &[
    &["Broke after a week.", "Not what the picture showed."],
    &["Arrived late and scratched.", "Wouldn't buy it again."],
    &["It's all right.", "Does what it should, no more."],
    &["Good value.", "Très bien, merci!", "Nice, though the box was dented."],
    &["Love it!", "Exactly what I wanted.", "Wunderschön.", "Best one I've owned."],
];
