package interop;

import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.client.api.WriteHandle;

/** What is done over either version of the protocol. */
final class Both {
    private static final int[][] QUORUMS = {{3, 3, 2}, {3, 2, 2}, {1, 1, 1}};

    private Both() {
    }

    /** Which client does it. */
    private interface Client {
        BookKeeper of(Clients c) throws Exception;
    }

    static void addTo(Map<String, Feature> features) {
        addTo(features, "bk_v2_", Clients::v2);
        addTo(features, "bk_v3_", Clients::v3);
    }

    private static void addTo(Map<String, Feature> features, String prefix, Client client) {
        for (DigestType digest : DigestType.values()) {
            features.put(prefix + "add_read_" + digest.name().toLowerCase(),
                    c -> addsAndReads(client.of(c), digest));
        }
        features.put(prefix + "large_entries", c -> largeEntries(client.of(c)));
        features.put(prefix + "pipelined", c -> pipelined(client.of(c)));
        features.put(prefix + "no_such_entry", c -> nothingThere(client.of(c)));
        features.put(prefix + "another_password", c -> anotherPassword(client.of(c)));
        features.put(prefix + "fences_the_writer", c -> fences(client.of(c)));
        features.put(prefix + "recovers_an_open_ledger", c -> recovers(client.of(c)));
        features.put(prefix + "recovers_an_empty_ledger", c -> recoversNothing(client.of(c)));
        features.put(prefix + "reads_while_written", c -> readsWhileWritten(client.of(c)));
        features.put(prefix + "ids_of_the_caller", c -> idsOfTheCaller(client.of(c)));
        features.put(prefix + "deletes", c -> deletes(client.of(c)));
    }

    private static void addsAndReads(BookKeeper bk, DigestType digest) throws Exception {
        for (int[] q : QUORUMS) {
            try (WriteHandle w = Clients.create(bk, q[0], q[1], q[2], digest)) {
                Clients.add(w, 120);
                Clients.read(w, 0, 119);
                w.close();
                var r = Clients.open(bk, w.getId(), true, digest);
                Check.that(r.isClosed(), "it is closed");
                Check.same(119L, r.getLastAddConfirmed(), "its last entry");
                Check.same(w.getLength(), r.getLength(), "its length");
                Clients.read(r, 0, 119);
                Clients.read(r, 50, 50);
                r.close();
            }
        }
    }

    private static void largeEntries(BookKeeper bk) throws Exception {
        byte[] large = Clients.payload(1, 5 * 1024 * 1024 - 200);
        try (WriteHandle w = Clients.create(bk)) {
            for (int i = 0; i < 3; i++) {
                w.append(large);
            }
            try (var entries = w.read(0, 2)) {
                for (var entry : entries) {
                    Check.same(large.length, entry.getEntryBytes().length, "its size");
                }
            }
        }
    }

    private static void pipelined(BookKeeper bk) throws Exception {
        try (WriteHandle w = Clients.create(bk, 3, 2, 2, DigestType.CRC32C)) {
            var last = w.appendAsync(Clients.payload(0, 0));
            for (long e = 1; e < 5000; e++) {
                last = w.appendAsync(Clients.payload(e, Clients.size(e)));
            }
            Check.same(4999L, last.get(), "the last entry");
            Clients.read(w, 0, 4999);
        }
    }

    private static void nothingThere(BookKeeper bk) throws Exception {
        try (WriteHandle w = Clients.create(bk)) {
            Clients.add(w, 3);
            Check.refused(BKException.Code.NoSuchEntryException, () -> w.readUnconfirmed(7, 7));
        }
        try (WriteHandle w = Clients.create(bk)) {
            Check.refused(BKException.Code.NoSuchLedgerExistsException,
                    () -> w.readUnconfirmed(0, 0));
        }
    }

    private static void anotherPassword(BookKeeper bk) throws Exception {
        try (WriteHandle w = Clients.create(bk)) {
            Clients.add(w, 1);
            Check.refused(BKException.Code.UnauthorizedAccessException,
                    () -> bk.newOpenLedgerOp().withLedgerId(w.getId())
                            .withPassword("another".getBytes()).withDigestType(DigestType.CRC32C)
                            .withRecovery(true).execute().get());
            Clients.add(w, 1);
        }
    }

    private static void fences(BookKeeper bk) throws Exception {
        WriteHandle w = Clients.create(bk);
        Clients.add(w, 10);
        var r = Clients.open(bk, w.getId(), true);
        Check.that(r.isClosed(), "it is closed");
        Check.same(9L, r.getLastAddConfirmed(), "its last entry");
        Check.refused(BKException.Code.LedgerFencedException, () -> w.append(new byte[10]));
        Clients.read(r, 0, 9);
        r.close();
    }

    private static void recovers(BookKeeper bk) throws Exception {
        for (int[] q : QUORUMS) {
            WriteHandle w = Clients.create(bk, q[0], q[1], q[2], DigestType.CRC32);
            Clients.add(w, 101);
            var r = Clients.open(bk, w.getId(), true, DigestType.CRC32);
            Check.same(100L, r.getLastAddConfirmed(), "its last entry");
            Check.same(w.getLength(), r.getLength(), "its length");
            Clients.read(r, 0, 100);
            r.close();
        }
    }

    private static void recoversNothing(BookKeeper bk) throws Exception {
        WriteHandle w = Clients.create(bk);
        var r = Clients.open(bk, w.getId(), true);
        Check.same(-1L, r.getLastAddConfirmed(), "its last entry");
        Check.refused(BKException.Code.LedgerFencedException, () -> w.append(new byte[10]));
        r.close();
    }

    private static void readsWhileWritten(BookKeeper bk) throws Exception {
        try (WriteHandle w = Clients.create(bk)) {
            Clients.add(w, 5);
            var r = Clients.open(bk, w.getId(), false);
            Check.that(!r.isClosed(), "it is open");
            Check.same(3L, r.readLastAddConfirmed(), "what the last entry confirms");
            Check.same(3L, r.tryReadLastAddConfirmed(), "the same of any bookie");
            Clients.read(r, 0, 3);
            Clients.add(w, 5);
            Check.same(8L, r.readLastAddConfirmed(), "after five more");
            r.close();
        }
    }

    /** Entries that come in another order than their ids. */
    private static void idsOfTheCaller(BookKeeper bk) throws Exception {
        LedgerHandle h = bk.createLedgerAdv(3, 3, 2, BookKeeper.DigestType.CRC32C,
                Clients.password());
        var done = new CountDownLatch(4);
        for (long e : new long[] {3, 1, 0, 2}) {
            h.asyncAddEntry(e, Clients.payload(e, Clients.size(e)), 0, Clients.size(e),
                    (rc, handle, entry, ctx) -> done.countDown(), null);
        }
        Check.that(done.await(20, TimeUnit.SECONDS), "four entries");
        Clients.read(h, 0, 3);
        h.close();
    }

    private static void deletes(BookKeeper bk) throws Exception {
        WriteHandle w = Clients.create(bk);
        Clients.add(w, 1);
        w.close();
        bk.deleteLedger(w.getId());
        Check.refused(BKException.Code.NoSuchLedgerExistsOnMetadataServerException,
                () -> Clients.open(bk, w.getId(), true));
    }
}
