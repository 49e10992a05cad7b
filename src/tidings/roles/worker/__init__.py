"""The worker: leases jobs, sends them, reports what came back; decides nothing."""
