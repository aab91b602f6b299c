// Takes the place of two of LMDB's calls in a program that links it, and lets one opening of a named database wait.
#ifndef TOUCHSTONE_HELD_HANDLES_H
#define TOUCHSTONE_HELD_HANDLES_H

/// Lets the next opening of a named database wait within `mdb_dbi_open` until a write transaction begins, at most for that
/// many milliseconds.
void hold_next_handle(int milliseconds);

/// Waits until an opening is held.
void wait_for_held_handle(void);

#endif
