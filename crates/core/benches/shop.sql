CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT NOT NULL);
CREATE TABLE orders (order_id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers (customer_id), total REAL NOT NULL);
CREATE TABLE weather (station TEXT PRIMARY KEY, rain REAL NOT NULL);
INSERT INTO customers VALUES (1, 'Ann', 'Cork'), (2, 'Bo', 'Oslo'), (3, 'Cy', 'Cork');
INSERT INTO orders VALUES (1, 1, 10.5), (2, 1, 20.0), (3, 2, 5.25), (4, 3, 8.0);
INSERT INTO weather VALUES ('C1', 12.5);
