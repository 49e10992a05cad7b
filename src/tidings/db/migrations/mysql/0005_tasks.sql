-- idx_task_updated: tasks by how long they have been as they are: which have been silent, which ended long ago
CREATE INDEX {if_not_exists} idx_task_updated ON sys_pending_tasks (status, updated_at);

-- archive_finished_tasks: those of these tasks, a JSON list of ids, that have ended go to the history
CREATE DEFINER = {definer} PROCEDURE IF NOT EXISTS archive_finished_tasks(IN ids LONGTEXT) SQL SECURITY DEFINER
BEGIN
    -- Without a transaction of the caller each statement in here would be one, and a task in both tables for a moment.
    DECLARE is_alone BOOLEAN DEFAULT @@autocommit = 1 AND {in_transaction} = 0;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        IF is_alone THEN
            ROLLBACK;
        END IF;
        RESIGNAL;
    END;
    -- JSON_TABLE would read 4 in 4.5 and in "4; DROP".
    IF ids NOT REGEXP '^\\[[-0-9, ]*\\]$' THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the ids must be a JSON list of whole numbers';
    END IF;
    IF is_alone THEN
        START TRANSACTION;
    END IF;
    DROP TEMPORARY TABLE IF EXISTS ended_tasks;
    CREATE TEMPORARY TABLE ended_tasks (id BIGINT UNSIGNED PRIMARY KEY) ENGINE = InnoDB;
    INSERT INTO ended_tasks (id)
    SELECT t.id
      FROM (SELECT DISTINCT a.id FROM JSON_TABLE(ids, '$[*]' COLUMNS (id BIGINT PATH '$')) a) asked
      STRAIGHT_JOIN sys_pending_tasks t ON t.id = asked.id
     WHERE t.status IN (2, 4) ORDER BY t.id FOR UPDATE;
    INSERT INTO sys_pending_tasks_history
           (id, biz_type, biz_key, status, priority, payload, result_msg, retry_count, max_retries, next_run_time,
            version, worker_id, correlation_id, created_at, updated_at)
    SELECT t.id, t.biz_type, t.biz_key, t.status, t.priority, t.payload, t.result_msg, t.retry_count, t.max_retries,
           t.next_run_time, t.version, t.worker_id, t.correlation_id, t.created_at, t.updated_at
      FROM ended_tasks e STRAIGHT_JOIN sys_pending_tasks t ON t.id = e.id;
    DELETE t FROM ended_tasks e STRAIGHT_JOIN sys_pending_tasks t ON t.id = e.id;
    IF is_alone THEN
        COMMIT;
    END IF;
    SELECT e.id AS archived_id FROM ended_tasks e ORDER BY e.id;
    DROP TEMPORARY TABLE ended_tasks;
END;
