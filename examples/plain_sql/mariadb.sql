-- A producer that is nothing but SQL: mariadb shop < mariadb.sql
-- The login needs the role event_ingest_writer.

CREATE TABLE IF NOT EXISTS orders (id int PRIMARY KEY, paid boolean NOT NULL DEFAULT false);

-- The order and its event, or neither.
START TRANSACTION;
INSERT INTO orders (id) VALUES (21);
INSERT INTO tidings.events (event_type, external_id, payload)
VALUES ('order.placed', 'order-21-placed', JSON_OBJECT('order', 21));
COMMIT;

START TRANSACTION;
UPDATE orders SET paid = true WHERE id = 21;
INSERT INTO tidings.events (event_type, external_id, payload)
VALUES ('order.paid', 'order-21-paid', JSON_OBJECT('order', 21));
COMMIT;

-- What is rolled back never was.
START TRANSACTION;
INSERT INTO orders (id) VALUES (22);
INSERT INTO tidings.events (event_type, payload) VALUES ('order.placed', '{"order": 22}');
ROLLBACK;

-- A trigger of yours runs with the rights of its definer and without that login's roles: to publish from one,
-- GRANT INSERT ON tidings.events to the definer itself.
