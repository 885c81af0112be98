"""certs.py - certificates for one test, made with the openssl command.

    ca = Authority(folder)
    cert, key = ca.issue("server")              # for localhost and 127.0.0.1
    lgm.Standalone(..., args=["--tls-cert", cert, "--tls-key", key])
"""
import os
import subprocess


def openssl(*words):
    done = subprocess.run(["openssl", *words], capture_output=True, text=True)
    assert done.returncode == 0, f"openssl {' '.join(words)}: {done.stderr}"
    return done.stdout


def make_key(path):
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path)


class Authority:
    """Signs for whoever asks; its own certificate is `cert`."""

    def __init__(self, folder, name="ca"):
        self.folder, self.name = folder, name
        self.cert, self.key = self.path(name + ".pem"), self.path(name + ".key")
        make_key(self.key)
        openssl("req", "-x509", "-new", "-key", self.key, "-out", self.cert, "-days", "2",
                "-subj", f"/CN={name} of a test", "-addext", "keyUsage=critical,keyCertSign,cRLSign")
        self.issued = 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def issue(self, name, days=2, host="DNS:localhost,IP:127.0.0.1"):
        """(certificate, key): files of their own for each name, written over by the next of that name."""
        cert, key = self.path(f"{name}.pem"), self.path(f"{name}.key")
        request, more = self.path(f"{name}.csr"), self.path(f"{name}.ext")
        self.issued += 1
        make_key(key + ".new")
        openssl("req", "-new", "-key", key + ".new", "-subj", f"/CN={name}", "-out", request)
        with open(more, "w") as f:
            f.write(f"basicConstraints=critical,CA:FALSE\nsubjectAltName={host}\n")
        openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key, "-days", str(days),
                "-set_serial", str(1000 + self.issued), "-extfile", more, "-out", cert + ".new")
        os.replace(key + ".new", key)
        os.replace(cert + ".new", cert)
        return cert, key
