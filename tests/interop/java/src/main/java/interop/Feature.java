package interop;

/** One thing that a client can do, shown in a world of its own; it fails by throwing. */
@FunctionalInterface
interface Feature {
    void show(World w) throws Exception;
}
