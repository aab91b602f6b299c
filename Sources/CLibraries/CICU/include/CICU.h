// A thin C face of ICU: text in UTF-8 and UTF-16, cases and classes of characters, collators, regular expressions, time
// zones and word breaks.
//
// ICU's own headers stay out of it for two reasons: its function names carry its version (ucol_open_72) by macros that Swift
// can't see, and its types have other definitions in the ICU that Foundation brings.
#ifndef TOUCHSTONE_CICU_H
#define TOUCHSTONE_CICU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// ICU's error code: below 0 warnings, 0 success, above 0 errors. A function that gets an error does nothing.
typedef int32_t icu_status;
int icu_failed(icu_status status);
const char *icu_error_name(icu_status status);

/// What two texts have to differ in: letters, accents too, cases too.
typedef enum { ICU_LETTERS, ICU_ACCENTS, ICU_CASES } icu_strength;

typedef struct icu_collator icu_collator;
/// Opens a collator for a locale ("" is the root), which normalizes text. `has_case_level` lets cases differ whatever
/// the strength. NULL when `status` says that it failed.
icu_collator *icu_collator_open(const char *locale, icu_strength strength, int has_case_level, icu_status *status);
/// Lets a collator take marks in the order of the text, without normalizing it.
void icu_collator_leave_marks(icu_collator *collator, icu_status *status);
/// Opens the root collator with changes in ICU's syntax of rules. It normalizes text, and letters, accents and cases count.
icu_collator *icu_collator_open_rules(const uint16_t *rules, int32_t count, icu_status *status);
/// A collator of its own for another thread. Threads may clone one at the same time.
icu_collator *icu_collator_clone(const icu_collator *collator, icu_status *status);
/// The version of the collator's data. Sort keys of one version are the same.
void icu_collator_version(const icu_collator *collator, uint8_t version[4]);
void icu_collator_close(icu_collator *collator);
/// Compares UTF-8: below, at or above 0.
int icu_collator_compare(const icu_collator *collator, const char *a, int32_t a_count, const char *b, int32_t b_count);
/// Writes a sort key with its closing 0 and returns its length, which may be above the capacity.
int32_t icu_collator_sort_key(const icu_collator *collator, const uint16_t *text, int32_t count, uint8_t *key, int32_t capacity);

/// Where bytes first occur in others, by the C library's search (memmem, which Swift doesn't see): linear in both. NULL when
/// they don't.
const void *text_find(const void *text, size_t text_count, const void *part, size_t part_count);

/// UTF-8 to UTF-16 with U+FFFD for what is malformed. `to` has room for `count` units. Returns their number.
int32_t icu_to_utf16(const char *from, int32_t count, uint16_t *to, int32_t capacity);
/// UTF-16 to UTF-8; the capacity has to be 3 bytes a unit. Returns the number of bytes.
int32_t icu_to_utf8(const uint16_t *from, int32_t count, char *to, int32_t capacity);

int32_t icu_to_upper(uint16_t *to, int32_t capacity, const uint16_t *from, int32_t count);
int32_t icu_to_lower(uint16_t *to, int32_t capacity, const uint16_t *from, int32_t count);
/// The simple case folding of a code point.
int32_t icu_fold(int32_t c);
int icu_is_space(int32_t c);
int icu_is_alphanumeric(int32_t c);
int32_t icu_simple_title(int32_t c);
int32_t icu_simple_lower(int32_t c);
int icu_is_mark(int32_t c);

/// Canonical decomposition. Returns the length, which may be above the capacity, or -1.
int32_t icu_nfd(const uint16_t *from, int32_t count, uint16_t *to, int32_t capacity);
/// Composition: normal form C. Returns the length, which may be above the capacity, or -1.
int32_t icu_nfc(const uint16_t *from, int32_t count, uint16_t *to, int32_t capacity);

typedef struct icu_regex icu_regex;
icu_regex *icu_regex_open(const uint16_t *pattern, int32_t count, icu_status *status);
void icu_regex_close(icu_regex *regex);
/// Bounds on time and memory, so that no pattern stops a query.
void icu_regex_limit(icu_regex *regex, int32_t steps, int32_t stack, icu_status *status);
/// Asked again and again: inside of a match, and before each place where one may begin. 0 ends the search with an error.
typedef int8_t (*icu_regex_in_match)(const void *context, int32_t steps);
typedef int8_t (*icu_regex_in_search)(const void *context, int64_t place);
void icu_regex_ask(
    icu_regex *regex, icu_regex_in_match in_match, icu_regex_in_search in_search, const void *context, icu_status *status);
void icu_regex_set_text(icu_regex *regex, const uint16_t *text, int32_t count, icu_status *status);
int icu_regex_find(icu_regex *regex, int32_t from, icu_status *status);
int icu_regex_find_next(icu_regex *regex, icu_status *status);
int32_t icu_regex_start(icu_regex *regex, int32_t group);
int32_t icu_regex_end(icu_regex *regex, int32_t group);
int32_t icu_regex_groups(icu_regex *regex);

typedef struct icu_zone icu_zone;
/// Opens the rules of a time zone by its IANA name. NULL for an unknown name. One thread at a time may use it.
icu_zone *icu_zone_open(const uint16_t *name, int32_t count);
void icu_zone_close(icu_zone *zone);
/// The milliseconds east of UTC at a time in milliseconds since 1970.
int32_t icu_zone_offset(icu_zone *zone, double time);

// What the words of text are made of.
int32_t icu_fold_turkic(int32_t c);
/// A letter, number or private use character.
int icu_is_word(int32_t c);
int icu_is_any_mark(int32_t c);
/// Whether normal form C may change the character, by itself or behind another one.
int icu_may_compose(int32_t c);
int icu_is_latin_or_greek(int32_t c);
int icu_is_hangul(int32_t c);
/// Whether the word breaks never divide the character from another one of which this is true.
int icu_never_breaks(int32_t c);

typedef struct icu_words icu_words;
/// The word breaks of the root locale. NULL when `status` says that it failed.
icu_words *icu_words_open(icu_status *status);
void icu_words_close(icu_words *words);
/// Lets the breaks be those of UTF-8. `text` is NULL the first time, and then what was returned before; the bytes stay
/// where they are until the next call.
void *icu_words_set(icu_words *words, void *text, const char *bytes, int64_t count, icu_status *status);
/// The next break in bytes, or -1.
int32_t icu_words_next(icu_words *words);
void icu_text_close(void *text);

/// The library that runs: its major and minor version.
void icu_running_version(int *major, int *minor);

#ifdef __cplusplus
}
#endif

#endif
