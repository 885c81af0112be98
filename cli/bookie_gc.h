/* bookie_gc.h - `lgm bookie gc`: garbage collection of one bookie, by its HTTP. */
#ifndef CLI_BOOKIE_GC_H
#define CLI_BOOKIE_GC_H

int gc_command(int argc, char **argv); /* argv[0] is "gc"; the exit code */

#endif
