-- mark_present: this process is alive
SELECT is_new FROM mark_present(:worker_id, :process, :host, :pid, :version);

-- mark_gone: it ends
SELECT mark_gone(:worker_id);
