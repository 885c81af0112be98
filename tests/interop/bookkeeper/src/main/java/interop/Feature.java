package interop;

/** One thing that a client can do; it fails by throwing. */
@FunctionalInterface
interface Feature {
    void show(Clients c) throws Exception;
}
