-- console_sessions: who is signed in to the console; of a session's id only a hash is kept
CREATE TABLE console_sessions (
    session_hash varchar(64) COLLATE "C" PRIMARY KEY,
    public_id    varchar(40) COLLATE "C" NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT statement_timestamp(),
    seen_at      timestamptz NOT NULL DEFAULT statement_timestamp()
);

-- idx_console_session_seen: those that nobody uses any more
CREATE INDEX idx_console_session_seen ON console_sessions (seen_at);

-- delivery_totals: what came of attempts: of each subscription by hour, of all together (0) by minute; places are used again
CREATE TABLE delivery_totals (
    subscription_id bigint NOT NULL,
    place           integer NOT NULL,
    slot            integer NOT NULL,
    began_at        timestamptz NOT NULL,
    delivered       bigint NOT NULL DEFAULT 0,
    failed          bigint NOT NULL DEFAULT 0,
    dead            bigint NOT NULL DEFAULT 0,
    within_100ms    bigint NOT NULL DEFAULT 0,
    within_300ms    bigint NOT NULL DEFAULT 0,
    within_1s       bigint NOT NULL DEFAULT 0,
    within_3s       bigint NOT NULL DEFAULT 0,
    within_10s      bigint NOT NULL DEFAULT 0,
    slower          bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (subscription_id, place, slot)
);

-- idx_delivery_total_of: the last hours of one subscription, the last minutes of all
CREATE INDEX idx_delivery_total_of ON delivery_totals (subscription_id, began_at);

-- idx_delivery_total_began: everybody's last hours
CREATE INDEX idx_delivery_total_began ON delivery_totals (began_at);
