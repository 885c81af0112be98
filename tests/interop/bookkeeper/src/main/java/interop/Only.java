package interop;

import java.util.Map;
import java.util.stream.LongStream;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.client.api.WriteFlag;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.bookkeeper.net.BookieId;

/** What only one version of the protocol has. */
final class Only {
    private Only() {
    }

    static void addTo(Map<String, Feature> features) {
        features.put("bk_v2_batch_read", Only::batchRead);
        features.put("bk_v2_batch_read_in_parts", Only::batchReadInParts);
        features.put("bk_v2_beside_v3", Only::beside);
        features.put("bk_v3_long_poll", Only::longPoll);
        features.put("bk_v3_long_poll_ends", Only::longPollEnds);
        features.put("bk_v3_long_poll_of_a_closed_ledger", Only::longPollOfClosed);
        features.put("bk_v3_explicit_lac", Only::explicitLac);
        features.put("bk_v3_deferred_sync_and_force", Only::force);
        features.put("bk_v3_list_of_entries", Only::listOfEntries);
        features.put("bk_bookie_info", Only::bookieInfo);
        features.put("bk_v2_tls", c -> byTls(c, true));
        features.put("bk_v3_tls", c -> byTls(c, false));
        features.put("bk_tls_without_a_certificate", Only::withoutCertificate);
    }

    private static LedgerHandle written(BookKeeper bk, int entries) throws Exception {
        WriteHandle w = Clients.create(bk, 3, 3, 2, DigestType.CRC32C);
        Clients.add(w, entries);
        w.close();
        return (LedgerHandle) Clients.open(bk, w.getId(), true);
    }

    private static void batchRead(Clients c) throws Exception {
        LedgerHandle h = written(c.v2(), 500);
        Check.same(100L, Clients.count(h, h.batchReadEntries(0, 100, 1 << 22), 0), "of 100");
        Check.same(50L, Clients.count(h, h.batchReadEntries(450, 100, 1 << 22), 450), "of the last");
        Check.same(1L, Clients.count(h, h.batchReadEntries(499, 1, 1 << 22), 499), "of one");
        h.close();
    }

    /** As many as go into so many bytes, one at least. */
    private static void batchReadInParts(Clients c) throws Exception {
        LedgerHandle h = written(c.v2(), 500);
        Check.same(1L, Clients.count(h, h.batchReadEntries(30, 100, 10), 30), "in 10 bytes");
        long parts = 0;
        for (long e = 0; e < 500; parts++) {
            long n = Clients.count(h, h.batchReadEntries(e, 0, 20000), e);
            Check.that(n >= 1 && n <= 120, "entries in 20,000 bytes: " + n);
            e += n;
        }
        Check.that(parts > 50, "parts: " + parts);
        h.close();
    }

    /** What one writes the other reads. */
    private static void beside(Clients c) throws Exception {
        WriteHandle w = Clients.create(c.v2(), 3, 2, 2, DigestType.MAC);
        Clients.add(w, 60);
        var r = Clients.open(c.v3(), w.getId(), false, DigestType.MAC);
        Clients.read(r, 0, 58);
        w.close();
        WriteHandle later = Clients.create(c.v3(), 3, 2, 2, DigestType.MAC);
        Clients.add(later, 60);
        Clients.read(Clients.open(c.v2(), later.getId(), true, DigestType.MAC), 0, 59);
    }

    private static void longPoll(Clients c) throws Exception {
        WriteHandle w = Clients.create(c.v3());
        Clients.add(w, 2);
        var r = Clients.open(c.v3(), w.getId(), false);
        try (var first = r.readLastAddConfirmedAndEntry(0, 10000, true)) {
            Check.same(0L, first.getLastAddConfirmed(), "known already");
            Check.that(first.hasEntry(), "with its entry");
        }
        for (long e = 1; e < 20; e++) {
            var waiting = r.readLastAddConfirmedAndEntryAsync(e, 20000, e % 2 == 0);
            Check.that(!waiting.isDone(), "it waits");
            Clients.add(w, 1);
            try (var next = waiting.get()) {
                Check.same(e, next.getLastAddConfirmed(), "the next");
                Check.that(next.hasEntry() && next.getEntry().getEntryId() == e, "with its entry");
            }
        }
        w.close();
        r.close();
    }

    private static void longPollEnds(Clients c) throws Exception {
        WriteHandle w = Clients.create(c.v3());
        Clients.add(w, 2);
        var r = Clients.open(c.v3(), w.getId(), false);
        r.readLastAddConfirmed();
        long began = System.nanoTime();
        try (var nothing = r.readLastAddConfirmedAndEntry(1, 300, false)) {
            Check.same(0L, nothing.getLastAddConfirmed(), "nothing new");
            Check.that(!nothing.hasEntry(), "no entry");
        }
        long ms = (System.nanoTime() - began) / 1_000_000;
        Check.that(ms >= 250 && ms < 10000, "it waited " + ms + " ms");
        w.close();
    }

    /** Who waits learns of the fence, and then of the end. */
    private static void longPollOfClosed(Clients c) throws Exception {
        WriteHandle w = Clients.create(c.v3());
        Clients.add(w, 3);
        var r = Clients.open(c.v3(), w.getId(), false);
        r.readLastAddConfirmed();
        var waiting = r.readLastAddConfirmedAndEntryAsync(2, 60000, true);
        long began = System.nanoTime();
        Clients.open(c.v3(), w.getId(), true).close();
        try (var last = waiting.get()) {
            Check.that(last.getLastAddConfirmed() >= 1, "what is known");
        }
        Check.that(System.nanoTime() - began < 30_000_000_000L, "it did not wait to the end");
    }

    private static void explicitLac(Clients c) throws Exception {
        WriteHandle w = Clients.create(c.v3Explicit());
        Clients.add(w, 10);
        LedgerHandle r = (LedgerHandle) Clients.open(c.v3Explicit(), w.getId(), false);
        Check.soon("the last entry is confirmed without another one",
                () -> r.readExplicitLastConfirmed() == 9);
        Clients.read(r, 0, 9);
        Clients.add(w, 5);
        Check.soon("five more", () -> r.readExplicitLastConfirmed() == 14);
        w.close();
        r.close();
    }

    private static void force(Clients c) throws Exception {
        WriteHandle w = Clients.create(c.v3(), 3, 3, 2, DigestType.CRC32C, WriteFlag.DEFERRED_SYNC);
        for (int round = 0; round < 5; round++) {
            Clients.add(w, 20);
            Check.same(round * 20L - 1, w.getLastAddConfirmed(), "before it is forced");
            w.force().get();
            Check.same(round * 20L + 19, w.getLastAddConfirmed(), "forced");
        }
        Clients.read(w, 0, 99);
        w.close();
        Check.same(99L, Clients.open(c.v3(), w.getId(), true).getLastAddConfirmed(), "its last");
    }

    /** With E=3 and Qw=2 a bookie has two of three, and it says which. */
    private static void listOfEntries(Clients c) throws Exception {
        WriteHandle w = Clients.create(c.v3(), 3, 2, 2, DigestType.CRC32C);
        Clients.add(w, 1000);
        var ensemble = w.getLedgerMetadata().getAllEnsembles().firstEntry().getValue();
        try (var admin = new BookKeeperAdmin(c.v3())) {
            for (int i = 0; i < 3; i++) {
                BookieId bookie = ensemble.get(i);
                var has = admin.asyncGetListOfEntriesOfLedger(bookie, w.getId()).get();
                int at = i;
                long wanted = LongStream.range(0, 1000).filter(e -> holds(e, at)).count();
                Check.same(wanted, has.getTotalNumOfAvailableEntries(), "entries of " + bookie);
                LongStream.range(0, 1000).forEach(
                        e -> Check.same(holds(e, at), has.isEntryAvailable(e), "entry " + e));
            }
        }
        w.close();
    }

    private static boolean holds(long entry, int bookie) {
        return entry % 3 == bookie || (entry + 1) % 3 == bookie;
    }

    /** It asks for TLS, shows its certificate, and then does what it does without. */
    private static void byTls(Clients c, boolean v2) throws Exception {
        BookKeeper bk = c.tls(v2, true);
        WriteHandle w = Clients.create(bk);
        Clients.add(w, 100);
        var r = Clients.open(bk, w.getId(), true);
        Clients.read(r, 0, 99);
        Check.refused(BKException.Code.LedgerFencedException, () -> w.append(new byte[10]));
        r.close();
        try (WriteHandle large = Clients.create(bk)) {
            large.append(Clients.payload(1, 5 * 1024 * 1024 - 200));
        }
    }

    private static void withoutCertificate(Clients c) throws Exception {
        WriteHandle w = Clients.create(c.tls(false, false));
        Check.refused(BKException.Code.NotEnoughBookiesException, () -> w.append(new byte[10]));
    }

    private static void bookieInfo(Clients c) throws Exception {
        for (BookKeeper bk : new BookKeeper[] {c.v3(), c.v2()}) {
            var infos = bk.getBookieInfo();
            Check.same(3, infos.size(), "bookies");
            infos.forEach((bookie, info) -> Check.that(
                    info.getFreeDiskSpace() > 0 && info.getTotalDiskSpace() > info.getFreeDiskSpace(),
                    bookie + " says " + info));
        }
    }
}
