-- mark_present: this process is alive
CALL mark_present(:worker_id, :process, :host, :pid, :version);

-- mark_gone: it ends
CALL mark_gone(:worker_id);
