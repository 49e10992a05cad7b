-- idx_task_updated: tasks by how long they have been as they are: which have been silent, which ended long ago
CREATE INDEX idx_task_updated ON sys_pending_tasks (status, updated_at) WHERE status IN (1, 2, 4);

-- archive_finished_tasks: those of these tasks that have ended go to the history, so that their business keys are free
CREATE FUNCTION archive_finished_tasks(ids bigint[]) RETURNS TABLE (archived_id bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, {schema}, pg_temp SET enable_seqscan = off AS $$
DECLARE
    ended bigint[];
BEGIN
    -- By their ids, never by an index that has the status in it: there may be millions that have ended.
    ended := ARRAY(SELECT t.id FROM sys_pending_tasks t
                    WHERE t.id = ANY (ids) AND t.status + 0 IN (2, 4) ORDER BY t.id FOR UPDATE);
    INSERT INTO sys_pending_tasks_history
           (id, biz_type, biz_key, status, priority, payload, result_msg, retry_count, max_retries, next_run_time,
            version, worker_id, correlation_id, created_at, updated_at)
    SELECT t.id, t.biz_type, t.biz_key, t.status, t.priority, t.payload, t.result_msg, t.retry_count, t.max_retries,
           t.next_run_time, t.version, t.worker_id, t.correlation_id, t.created_at, t.updated_at
      FROM sys_pending_tasks t WHERE t.id = ANY (ended);
    DELETE FROM sys_pending_tasks t WHERE t.id = ANY (ended);
    RETURN QUERY SELECT unnest(ended);
END $$;

-- task_routines_are_not_public: who may call them is said by the grants
REVOKE EXECUTE ON FUNCTION archive_finished_tasks(bigint[]) FROM PUBLIC;
