-- A producer that is nothing but SQL: psql "postgresql://app:secret@localhost/shop" -f postgresql.sql
-- The login needs the role event_ingest_writer.

CREATE TABLE IF NOT EXISTS orders (id int PRIMARY KEY, paid boolean NOT NULL DEFAULT false);

-- By hand: the order and its event, or neither.
BEGIN;
INSERT INTO orders (id) VALUES (21);
INSERT INTO tidings.events (event_type, external_id, payload)
VALUES ('order.placed', 'order-21-placed', json_build_object('order', 21));
COMMIT;

-- By a trigger: nobody can forget it. It runs with the rights of whoever updates the order.
CREATE OR REPLACE FUNCTION publish_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO tidings.events (event_type, external_id, payload)
  VALUES ('order.paid', 'order-' || NEW.id || '-paid', json_build_object('order', NEW.id));
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER publish_payment AFTER UPDATE OF paid ON orders
FOR EACH ROW WHEN (NEW.paid AND NOT OLD.paid) EXECUTE FUNCTION publish_payment();

UPDATE orders SET paid = true WHERE id = 21;

-- What is rolled back never was.
BEGIN;
INSERT INTO orders (id) VALUES (22);
INSERT INTO tidings.events (event_type, payload) VALUES ('order.placed', '{"order": 22}');
ROLLBACK;
