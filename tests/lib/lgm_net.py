"""lgm_net.py - a network of our own: each process in a namespace with an address, all on one bridge,
and links between any two of them that can be cut, one way too.

    with Net() as net:
        host = net.place(process)          # before it starts; it must listen there
        net.cut(a, b)                      # what a sends to b gets lost, without a word
        net.mend(a, b)

A cut is a neighbour entry that names nobody's hardware address: it needs no packet filter in the kernel.
The test itself is at the bridge: it reaches everybody, always.
"""
import atexit
import collections
import os
import subprocess

NOBODY = "02:00:00:00:de:ad"


class NotPermitted(Exception):
    """And why."""


def ip(*words, check=True):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if check and done.returncode != 0:
        raise NotPermitted(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done


class Net:
    def __init__(self):
        number = os.getpid()
        self.bridge = f"lgm{number % 100000}"
        self.prefix = f"10.213.{number % 250}"
        self.here = self.prefix + ".1"
        self.spaces, self.at, self.cuts = [], {}, collections.Counter()

    def __enter__(self):
        atexit.register(self.close)
        try:
            ip("link", "add", self.bridge, "type", "bridge")
            ip("addr", "add", self.here + "/24", "dev", self.bridge)
            ip("link", "set", self.bridge, "up")
        except (NotPermitted, FileNotFoundError) as e:
            self.close()
            raise NotPermitted(str(e)) from None
        return self

    def __exit__(self, kind, error, trace):
        self.close()

    def close(self):
        atexit.unregister(self.close)
        try:
            for n, space in enumerate(self.spaces):
                ip("link", "del", f"{self.bridge}v{n + 2}", check=False)
                ip("netns", "del", space, check=False)
            ip("link", "del", self.bridge, check=False)
        except FileNotFoundError:
            pass
        self.spaces = []

    def place(self, process):
        """Gives its address."""
        n = len(self.spaces) + 2
        space, mine, theirs = f"{self.bridge}-{n}", f"{self.bridge}v{n}", f"{self.prefix}.{n}"
        self.spaces.append(space)
        ip("netns", "add", space)
        ip("link", "add", mine, "type", "veth", "peer", "name", "eth0", "netns", space)
        ip("link", "set", mine, "master", self.bridge, "up")
        ip("-n", space, "addr", "add", theirs + "/24", "dev", "eth0")
        ip("-n", space, "link", "set", "lo", "up")
        ip("-n", space, "link", "set", "eth0", "up")
        process.inside = ["ip", "netns", "exec", space]
        self.at[process.name] = (space, theirs)
        return theirs

    def cut(self, a, b):
        """As often as it is cut it must be mended."""
        (space, _), (_, to) = self.at[a.name], self.at[b.name]
        self.cuts[space, to] += 1
        ip("-n", space, "neigh", "replace", to, "lladdr", NOBODY, "dev", "eth0", "nud", "permanent")

    def mend(self, a, b):
        (space, _), (_, to) = self.at[a.name], self.at[b.name]
        self.cuts[space, to] -= 1
        if self.cuts[space, to] == 0:
            ip("-n", space, "neigh", "del", to, "dev", "eth0")
