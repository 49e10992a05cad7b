-- has_stale: whether there is any, by one row
SELECT (SELECT id FROM webhook_delivery_jobs FORCE INDEX (idx_job_status_lease)
         WHERE status = 'Leased' AND lease_until < {now} ORDER BY lease_until LIMIT 1) IS NOT NULL AS has_stale;

-- stale_leases: jobs whose worker did not report in time
SELECT id AS job_id, saga_id, lease_resets, worker_id, lease_until
  FROM webhook_delivery_jobs FORCE INDEX (idx_job_status_lease)
 WHERE status = 'Leased' AND lease_until < {now} ORDER BY lease_until LIMIT :limit FOR UPDATE SKIP LOCKED;
