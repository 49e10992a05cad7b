-- stale_leases: jobs whose worker did not report in time
SELECT id AS job_id, saga_id, lease_resets, worker_id, lease_until FROM webhook_delivery_jobs
 WHERE status = 'Leased' AND lease_until < {now} ORDER BY lease_until LIMIT :limit FOR UPDATE SKIP LOCKED;

-- has_stale: whether there is any, by one row
SELECT (SELECT id FROM webhook_delivery_jobs
         WHERE status = 'Leased' AND lease_until < {now} ORDER BY lease_until LIMIT 1) IS NOT NULL AS has_stale;

-- reset_leases: anybody may lease them again; the old worker's report will find another token
UPDATE webhook_delivery_jobs
   SET status = 'Pending', lease_until = {now}, worker_id = NULL, lease_token = :token, lease_resets = lease_resets + 1
 WHERE id {in :ids};

-- expire_leases: too often already; whether the endpoint got the request is not known
UPDATE webhook_delivery_jobs
   SET status = 'Failed', error_code = 'lease_expired', lease_token = :token, lease_resets = lease_resets + 1,
       finished_at = {now}
 WHERE id {in :ids};
