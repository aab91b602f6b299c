// ICU's function names carry its version (ucol_open_72), by macros that Swift can't see: each is wrapped here.
#include <unicode/uchar.h>
#include <unicode/ucol.h>
#include <unicode/utypes.h>

/// Opens a collator for a locale ("" is the root). NULL when `status` says that it failed.
static inline UCollator *icu_ucol_open(const char *locale, UErrorCode *status) { return ucol_open(locale, status); }
static inline void icu_ucol_close(UCollator *collator) { ucol_close(collator); }
