#!/usr/bin/env python3
"""tiers_test.py - the short form of tests/tiers.py."""
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.exit(subprocess.run([sys.executable, os.path.join(here, "..", "tiers.py"), "--rounds", "6",
                         "--seconds", "6", *sys.argv[1:], "crash", "two-owners", "etcd-away",
                         "frozen-bookie", "one-tier-alone", "takeover-with-frozen", "shared"]).returncode)
