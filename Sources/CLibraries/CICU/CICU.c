#define _GNU_SOURCE
#include "CICU.h"

#include <stddef.h>
#include <string.h>
#include <unicode/ubrk.h>
#include <unicode/ucal.h>
#include <unicode/uchar.h>
#include <unicode/ucol.h>
#include <unicode/uloc.h>
#include <unicode/unorm2.h>
#include <unicode/uregex.h>
#include <unicode/uscript.h>
#include <unicode/ustring.h>
#include <unicode/utext.h>
#include <unicode/utypes.h>

// The caller's types are ICU's under other names.
#define STATUS ((UErrorCode *)status)
#define COLLATOR ((UCollator *)collator)
#define REGEX ((URegularExpression *)regex)
#define WORDS ((UBreakIterator *)words)

_Static_assert(sizeof(UErrorCode) == sizeof(icu_status), "an error code has 32 bits");
_Static_assert(sizeof(UChar) == sizeof(uint16_t), "UTF-16 has units of 16 bits");

icu_collator *icu_collator_open(const char *locale, icu_strength strength, int has_case_level, icu_status *status) {
  UCollator *collator = ucol_open(locale, STATUS);
  static const UColAttributeValue strengths[] = {UCOL_PRIMARY, UCOL_SECONDARY, UCOL_TERTIARY};
  ucol_setAttribute(collator, UCOL_STRENGTH, strengths[strength], STATUS);
  if (has_case_level) ucol_setAttribute(collator, UCOL_CASE_LEVEL, UCOL_ON, STATUS);
  ucol_setAttribute(collator, UCOL_NORMALIZATION_MODE, UCOL_ON, STATUS);
  if (U_SUCCESS(*STATUS)) return (icu_collator *)collator;
  ucol_close(collator);
  return NULL;
}

void icu_collator_leave_marks(icu_collator *collator, icu_status *status) {
  ucol_setAttribute(COLLATOR, UCOL_NORMALIZATION_MODE, UCOL_OFF, STATUS);
}

icu_collator *icu_collator_open_rules(const uint16_t *rules, int32_t count, icu_status *status) {
  UParseError error;
  UCollator *collator = ucol_openRules(rules, count, UCOL_ON, UCOL_TERTIARY, &error, STATUS);
  if (U_SUCCESS(*STATUS)) return (icu_collator *)collator;
  ucol_close(collator);
  return NULL;
}

icu_collator *icu_collator_clone(const icu_collator *collator, icu_status *status) {
  return (icu_collator *)ucol_clone(COLLATOR, STATUS);
}

void icu_collator_version(const icu_collator *collator, uint8_t version[4]) {
  _Static_assert(sizeof(UVersionInfo) == 4, "a version has four numbers");
  ucol_getVersion(COLLATOR, version);
}

void icu_collator_close(icu_collator *collator) { ucol_close(COLLATOR); }

int icu_collator_compare(const icu_collator *collator, const char *a, int32_t a_count, const char *b, int32_t b_count) {
  UErrorCode status = U_ZERO_ERROR;
  return ucol_strcollUTF8(COLLATOR, a, a_count, b, b_count, &status);
}

int32_t icu_collator_sort_key(const icu_collator *collator, const uint16_t *text, int32_t count, uint8_t *key, int32_t capacity) {
  return ucol_getSortKey(COLLATOR, text, count, key, capacity);
}

int32_t icu_to_utf16(const char *from, int32_t count, uint16_t *to, int32_t capacity) {
  UErrorCode status = U_ZERO_ERROR;
  int32_t length = 0;
  u_strFromUTF8WithSub(to, capacity, &length, from, count, 0xFFFD, NULL, &status);
  return U_FAILURE(status) ? -1 : length;
}

int32_t icu_to_utf8(const uint16_t *from, int32_t count, char *to, int32_t capacity) {
  UErrorCode status = U_ZERO_ERROR;
  int32_t length = 0;
  u_strToUTF8WithSub(to, capacity, &length, from, count, 0xFFFD, NULL, &status);
  return U_FAILURE(status) ? -1 : length;
}

int32_t icu_to_upper(uint16_t *to, int32_t capacity, const uint16_t *from, int32_t count) {
  UErrorCode status = U_ZERO_ERROR;
  return u_strToUpper(to, capacity, from, count, "", &status);
}

int32_t icu_to_lower(uint16_t *to, int32_t capacity, const uint16_t *from, int32_t count) {
  UErrorCode status = U_ZERO_ERROR;
  return u_strToLower(to, capacity, from, count, "", &status);
}

int32_t icu_fold(int32_t c) { return u_foldCase(c, U_FOLD_CASE_DEFAULT); }
int icu_is_space(int32_t c) { return u_isUWhiteSpace(c); }
int icu_is_alphanumeric(int32_t c) { return u_isalnum(c); }
int32_t icu_simple_title(int32_t c) { return u_totitle(c); }
int32_t icu_simple_lower(int32_t c) { return u_tolower(c); }
int icu_is_mark(int32_t c) { return u_charType(c) == U_NON_SPACING_MARK; }

int32_t icu_nfd(const uint16_t *from, int32_t count, uint16_t *to, int32_t capacity) {
  UErrorCode status = U_ZERO_ERROR;
  const UNormalizer2 *nfd = unorm2_getNFDInstance(&status);
  if (U_FAILURE(status)) return -1;
  return unorm2_normalize(nfd, from, count, to, capacity, &status);
}

int32_t icu_nfc(const uint16_t *from, int32_t count, uint16_t *to, int32_t capacity) {
  UErrorCode status = U_ZERO_ERROR;
  const UNormalizer2 *nfc = unorm2_getNFCInstance(&status);
  if (U_FAILURE(status)) return -1;
  return unorm2_normalize(nfc, from, count, to, capacity, &status);
}

const void *text_find(const void *text, size_t text_count, const void *part, size_t part_count) {
  return memmem(text, text_count, part, part_count);
}

icu_regex *icu_regex_open(const uint16_t *pattern, int32_t count, icu_status *status) {
  UParseError error;
  return (icu_regex *)uregex_open(pattern, count, 0, &error, STATUS);
}

void icu_regex_close(icu_regex *regex) { uregex_close(REGEX); }

void icu_regex_limit(icu_regex *regex, int32_t steps, int32_t stack, icu_status *status) {
  uregex_setTimeLimit(REGEX, steps, STATUS);
  uregex_setStackLimit(REGEX, stack, STATUS);
}

void icu_regex_ask(
    icu_regex *regex, icu_regex_in_match in_match, icu_regex_in_search in_search, const void *context, icu_status *status) {
  uregex_setMatchCallback(REGEX, in_match, context, STATUS);
  uregex_setFindProgressCallback(REGEX, in_search, context, STATUS);
}

void icu_regex_set_text(icu_regex *regex, const uint16_t *text, int32_t count, icu_status *status) {
  uregex_setText(REGEX, text, count, STATUS);
}

int icu_regex_find(icu_regex *regex, int32_t from, icu_status *status) {
  return uregex_find(REGEX, from, STATUS);
}

int icu_regex_find_next(icu_regex *regex, icu_status *status) { return uregex_findNext(REGEX, STATUS); }

int32_t icu_regex_start(icu_regex *regex, int32_t group) {
  UErrorCode status = U_ZERO_ERROR;
  return uregex_start(REGEX, group, &status);
}

int32_t icu_regex_end(icu_regex *regex, int32_t group) {
  UErrorCode status = U_ZERO_ERROR;
  return uregex_end(REGEX, group, &status);
}

int32_t icu_regex_groups(icu_regex *regex) {
  UErrorCode status = U_ZERO_ERROR;
  return uregex_groupCount(REGEX, &status);
}

icu_zone *icu_zone_open(const uint16_t *name, int32_t count) {
  UChar canonical[64];
  UBool is_known = 0;
  UErrorCode status = U_ZERO_ERROR;
  ucal_getCanonicalTimeZoneID(name, count, canonical, 64, &is_known, &status);
  if (U_FAILURE(status) || !is_known) return NULL;
  UCalendar *calendar = ucal_open(name, count, "", UCAL_GREGORIAN, &status);
  if (U_SUCCESS(status)) return (icu_zone *)calendar;
  ucal_close(calendar);
  return NULL;
}

void icu_zone_close(icu_zone *zone) { ucal_close((UCalendar *)zone); }

int32_t icu_zone_offset(icu_zone *zone, double time) {
  UCalendar *calendar = (UCalendar *)zone;
  UErrorCode status = U_ZERO_ERROR;
  ucal_setMillis(calendar, time, &status);
  int32_t offset = ucal_get(calendar, UCAL_ZONE_OFFSET, &status) + ucal_get(calendar, UCAL_DST_OFFSET, &status);
  return U_SUCCESS(status) ? offset : 0;
}

int32_t icu_fold_turkic(int32_t c) { return u_foldCase(c, U_FOLD_CASE_EXCLUDE_SPECIAL_I); }
int icu_is_word(int32_t c) { return (U_GET_GC_MASK(c) & (U_GC_L_MASK | U_GC_N_MASK | U_GC_CO_MASK)) != 0; }
int icu_is_any_mark(int32_t c) { return (U_GET_GC_MASK(c) & U_GC_M_MASK) != 0; }
int icu_may_compose(int32_t c) { return u_getIntPropertyValue(c, UCHAR_NFC_QUICK_CHECK) != UNORM_YES; }

int icu_is_latin_or_greek(int32_t c) {
  int32_t script = u_getIntPropertyValue(c, UCHAR_SCRIPT);
  return script == USCRIPT_LATIN || script == USCRIPT_GREEK;
}

int icu_is_hangul(int32_t c) { return u_getIntPropertyValue(c, UCHAR_SCRIPT) == USCRIPT_HANGUL; }

int icu_never_breaks(int32_t c) {
  if (u_getIntPropertyValue(c, UCHAR_LINE_BREAK) == U_LB_COMPLEX_CONTEXT) return 0;
  switch (u_getIntPropertyValue(c, UCHAR_SCRIPT)) {
    case USCRIPT_HAN: case USCRIPT_HIRAGANA: case USCRIPT_KATAKANA: return 0;
  }
  switch (u_getIntPropertyValue(c, UCHAR_WORD_BREAK)) {
    case U_WB_ALETTER: case U_WB_HEBREW_LETTER: case U_WB_NUMERIC: case U_WB_EXTEND: return 1;
  }
  return 0;
}

icu_words *icu_words_open(icu_status *status) { return (icu_words *)ubrk_open(UBRK_WORD, "", NULL, 0, STATUS); }
void icu_words_close(icu_words *words) { ubrk_close(WORDS); }

void *icu_words_set(icu_words *words, void *text, const char *bytes, int64_t count, icu_status *status) {
  UText *opened = utext_openUTF8((UText *)text, bytes, count, STATUS);
  ubrk_setUText(WORDS, opened, STATUS);
  return opened;
}

int32_t icu_words_next(icu_words *words) { return ubrk_next(WORDS); }
void icu_text_close(void *text) { utext_close((UText *)text); }
int icu_failed(icu_status status) { return U_FAILURE((UErrorCode)status); }
const char *icu_error_name(icu_status status) { return u_errorName((UErrorCode)status); }

void icu_running_version(int *major, int *minor) {
  UVersionInfo version;
  u_getVersion(version);
  *major = version[0];
  *minor = version[1];
}
