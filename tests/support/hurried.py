"""The product's command line, but for one pause: its cleaner waits as long after it connected as the test says."""

import os

from tidings.cli.main import main
from tidings.roles.cleaner.cleaner import Cleaner

PATIENCE = "TIDINGS_TEST_CLEANER_PATIENCE"

if __name__ == "__main__":
    assert Cleaner.__init__.__kwdefaults__
    Cleaner.__init__.__kwdefaults__["patience"] = float(os.environ[PATIENCE])
    main()
