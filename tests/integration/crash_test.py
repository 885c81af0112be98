#!/usr/bin/env python3
"""crash_test.py - three kills of standalone under load: the short form of `make crash`."""
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.exit(subprocess.run([sys.executable, os.path.join(here, "..", "crash.py"), "--rounds", "3",
                         *sys.argv[1:]]).returncode)
