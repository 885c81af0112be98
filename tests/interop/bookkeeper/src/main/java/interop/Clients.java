package interop;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.Map;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.LedgerEntry;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.client.api.WriteFlag;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.pulsar.metadata.bookkeeper.PulsarMetadataClientDriver;

/** BookKeeper's clients of both versions of its protocol, and what the features do with them. */
final class Clients implements AutoCloseable {
    private final String metadata;
    private final Path certificates; // cert.pem and key.pem, of bookies and clients
    private final Map<String, BookKeeper> open = new HashMap<>();

    Clients(String metadata, String certificates) {
        this.metadata = metadata;
        this.certificates = Path.of(certificates);
        PulsarMetadataClientDriver.init();
    }

    ClientConfiguration conf(boolean v2) {
        var conf = new ClientConfiguration();
        conf.setMetadataServiceUri("metadata-store:" + metadata);
        conf.setUseV2WireProtocol(v2);
        conf.setExplictLacInterval(0);
        conf.setReadEntryTimeout(20);
        conf.setAddEntryTimeout(20);
        return conf;
    }

    private BookKeeper client(String name, ClientConfiguration conf) throws Exception {
        if (!open.containsKey(name)) {
            open.put(name, new BookKeeper(conf));
        }
        return open.get(name);
    }

    BookKeeper v2() throws Exception {
        return client("v2", conf(true));
    }

    BookKeeper v3() throws Exception {
        return client("v3", conf(false));
    }

    /** One that writes explicit LACs. */
    BookKeeper v3Explicit() throws Exception {
        return client("v3-explicit", conf(false).setExplictLacInterval(50));
    }

    /** One that asks for TLS. */
    BookKeeper tls(boolean v2, boolean showsCertificate) throws Exception {
        var conf = conf(v2);
        conf.setTLSProvider("JDK");
        conf.setTLSProviderFactoryClass("org.apache.bookkeeper.tls.TLSContextFactory");
        conf.setTLSTrustStoreType("PEM");
        conf.setTLSTrustStore(certificates.resolve("cert.pem").toString());
        if (showsCertificate) {
            conf.setTLSClientAuthentication(true);
            conf.setTLSKeyStoreType("PEM");
            conf.setTLSKeyStore(certificates.resolve("key.pem").toString());
            conf.setTLSCertificatePath(certificates.resolve("cert.pem").toString());
        }
        return client("tls-" + v2 + "-" + showsCertificate, conf);
    }

    @Override
    public void close() throws Exception {
        for (BookKeeper bk : open.values()) {
            bk.close();
        }
    }

    static byte[] password() {
        return "secret".getBytes();
    }

    static WriteHandle create(BookKeeper bk, int ensemble, int write, int ack, DigestType digest,
            WriteFlag... flags) throws Exception {
        EnumSet<WriteFlag> set = EnumSet.noneOf(WriteFlag.class);
        set.addAll(Arrays.asList(flags));
        return bk.newCreateLedgerOp().withEnsembleSize(ensemble).withWriteQuorumSize(write)
                .withAckQuorumSize(ack).withDigestType(digest).withPassword(password())
                .withWriteFlags(set).execute().get();
    }

    static WriteHandle create(BookKeeper bk) throws Exception {
        return create(bk, 3, 3, 2, DigestType.CRC32C);
    }

    static ReadHandle open(BookKeeper bk, long ledger, boolean recovery, DigestType digest)
            throws Exception {
        return bk.newOpenLedgerOp().withLedgerId(ledger).withPassword(password())
                .withDigestType(digest).withRecovery(recovery).execute().get();
    }

    static ReadHandle open(BookKeeper bk, long ledger, boolean recovery) throws Exception {
        return open(bk, ledger, recovery, DigestType.CRC32C);
    }

    static byte[] payload(long entry, int size) {
        byte[] bytes = new byte[size];
        Arrays.fill(bytes, (byte) (entry * 31 + 7));
        return bytes;
    }

    /** Adds entries, of growing size, to where the ledger ends. */
    static void add(WriteHandle w, int entries) throws Exception {
        long first = w.getLastAddPushed() + 1;
        for (long e = first; e < first + entries; e++) {
            Check.same(e, w.append(payload(e, size(e))), "the entry's id");
        }
    }

    static int size(long entry) {
        return (int) (entry % 50) * 100;
    }

    /** The entries of a range are there and are what add() wrote. */
    static void read(ReadHandle r, long first, long last) throws Exception {
        try (var entries = r.read(first, last)) {
            long e = first;
            for (var entry : entries) {
                Check.same(e, entry.getEntryId(), "the entry's id");
                Check.that(Arrays.equals(payload(e, size(e)), entry.getEntryBytes()), "entry " + e);
                e++;
            }
            Check.same(last + 1, e, "entries read");
        }
    }

    static long count(LedgerHandle h, Enumeration<LedgerEntry> entries, long first) {
        long e = first;
        for (; entries.hasMoreElements(); e++) {
            LedgerEntry entry = entries.nextElement();
            Check.same(e, entry.getEntryId(), "the entry's id in " + h.getId());
            Check.that(Arrays.equals(payload(e, size(e)), entry.getEntry()), "entry " + e);
        }
        return e - first;
    }
}
