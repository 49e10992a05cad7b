"""What most programs publish, send and do: one kilobyte, signed with one secret; tasks that do nothing."""

KEY = "a-key-for-the-bench"
ADMIN_KEY = "an-admin-key-for-the-bench"
SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
PAYLOAD = '{"order": 4711, "note": "' + "x" * 970 + '"}'
TASK_TYPE = "NOOP"
