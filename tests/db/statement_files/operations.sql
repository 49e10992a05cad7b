-- keep: one value of every kind
INSERT INTO keepsakes (id, flag, whole, fraction, words, raw, moment)
VALUES (:id, :flag, :whole, :fraction, :words, :raw, :moment);

-- keep_rows: many of them in one statement
INSERT INTO keepsakes (id, flag, whole, fraction, words, raw, moment)
{rows kept(id bigint, flag boolean, whole bigint, fraction double precision, words text, raw bytea,
           moment timestamptz)};

-- kept: what was kept under one number
SELECT * FROM keepsakes WHERE id = :id;

-- joined: a batch that is joined with what is stored, which differs in more than words
SELECT k.id, asked.words FROM keepsakes k
  JOIN ({rows asked(id bigint, words text)}) AS asked(id, words) ON asked.id = k.id ORDER BY k.id;

-- kept_among: which of these are kept
SELECT id FROM keepsakes WHERE id {in :ids} ORDER BY id;

-- kept_among_words: the same by their words
SELECT id FROM keepsakes WHERE words {in :all_words} ORDER BY id;

-- kept_apart_from: all the others
SELECT id FROM keepsakes WHERE NOT (id {in :ids}) ORDER BY id;

-- renamed: says the same words again, which changes nothing
UPDATE keepsakes SET words = words WHERE id = :id;

-- moments: the server's time, and times shifted by seconds
SELECT {now} AS now, {now + :seconds} AS later, {now - :seconds} AS sooner,
       {moment + :seconds} AS after_it, {k.moment - :seconds} AS before_it
  FROM keepsakes k WHERE id = :id;

-- odd_signs: nothing in a string or a comment is ours to read
SELECT 'at 10:30 :id {now} 100% it''s {"a": [1]} %s $1' AS words, -- nor is :this or {that}, isn't it?
       :id + 1 AS more /* :neither {this} % */;

-- cast: a double colon is a cast, not a parameter
SELECT '42'::int AS answer;

-- dawdle: takes its time
SELECT pg_sleep(:seconds);

-- session_id: which of the server's sessions this is
SELECT pg_backend_pid() AS id;

-- wait_briefly: a lock that is not to be had is an error
SET LOCAL lock_timeout = '200ms';

-- settings: what the session brings along
SELECT current_setting('TimeZone') AS zone, current_setting('transaction_isolation') AS isolation,
       current_user::text AS acts_as;

-- open_orders: locks the orders that are not settled yet
SELECT id, amount FROM orders WHERE status = 'open' ORDER BY id FOR UPDATE;

-- settle_orders: only those that are still open
UPDATE orders SET status = 'settled', settled_at = {now} WHERE id {in :ids} AND status = 'open';

-- write_receipts: one for each settled order
INSERT INTO receipts (order_id, amount) {rows receipts(order_id bigint, amount bigint)};

-- put_orders: new ones, each number once
INSERT INTO orders (id, amount) {rows orders(id bigint, amount bigint)};

-- add_to_till: what was earned
UPDATE till SET total = total + :amount;

-- reword: each its own words and numbers, none where there are none
UPDATE keepsakes SET words = {pick :all_words text for id in :ids}, whole = {pick :wholes bigint for id in :ids},
       fraction = {pick :fractions double precision for id in :ids}, raw = {pick :raws bytea for id in :ids}
 WHERE id {in :ids};

-- nearest: the first few of each shelf
SELECT lane.id AS lane, k.id FROM ({rows lanes(id bigint, room int)}) AS lane (id, room)
  CROSS JOIN LATERAL (SELECT id FROM keepsakes WHERE whole = lane.id ORDER BY id LIMIT lane.room) k ORDER BY 1, 2;

-- forget_all: makes room
DELETE FROM keepsakes;
