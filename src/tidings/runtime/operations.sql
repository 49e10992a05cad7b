-- arrive: this process is alive
INSERT INTO worker_presence (worker_id, process, host, pid, version) VALUES (:worker_id, :process, :host, :pid, :version);

-- still_here: it is still alive
UPDATE worker_presence SET seen_at = {now} WHERE worker_id = :worker_id;

-- leave: it ends
DELETE FROM worker_presence WHERE worker_id = :worker_id;

-- forget_the_gone: processes that died without a word, long ago
DELETE FROM worker_presence WHERE seen_at < {now - :seconds};
