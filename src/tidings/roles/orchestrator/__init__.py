"""The orchestrator: alone moves sagas, creates their jobs and buries what is exhausted."""
