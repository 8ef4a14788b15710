"""`python -m kiln_check` is `kiln`."""

import sys

from kiln_check.cli import main

sys.exit(main())
