"""What needs other machinery than signals: a standby that takes over, hosts with addresses, wrong clocks, full disks.

Real processes under load, judged by the checker of `tests/chaos`. `python -m tests.machines TRIAL --engine …` runs one.
"""
