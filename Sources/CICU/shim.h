// ICU's function names carry its version (ucol_open_72), by macros that Swift can't see: each is wrapped here.
#include <stdlib.h>
#include <unicode/ubrk.h>
#include <unicode/uchar.h>
#include <unicode/ucol.h>
#include <unicode/unorm2.h>
#include <unicode/uregex.h>
#include <unicode/ustring.h>
#include <unicode/utypes.h>
#include <unicode/uloc.h>
#include <unicode/uscript.h>
#include <unicode/utext.h>

/// Opens a collator for a locale ("" is the root). NULL when `status` says that it failed.
static inline UCollator *icu_ucol_open(const char *locale, UErrorCode *status) { return ucol_open(locale, status); }
static inline void icu_ucol_close(UCollator *collator) { ucol_close(collator); }
static inline void icu_ucol_set(UCollator *collator, UColAttribute attribute, UColAttributeValue value, UErrorCode *status) {
  ucol_setAttribute(collator, attribute, value, status);
}
/// Compares UTF-8: below, at or above 0.
static inline int icu_ucol_compare(const UCollator *collator, const char *a, int32_t a_count, const char *b, int32_t b_count) {
  UErrorCode status = U_ZERO_ERROR;
  return ucol_strcollUTF8(collator, a, a_count, b, b_count, &status);
}
/// Writes a sort key with its closing 0 and returns its length, which may be above the capacity.
static inline int32_t icu_ucol_sort_key(const UCollator *collator, const UChar *text, int32_t count, uint8_t *key, int32_t capacity) {
  return ucol_getSortKey(collator, text, count, key, capacity);
}

/// UTF-8 to UTF-16 with U+FFFD for what is malformed. `to` has room for `count` units. Returns their number.
static inline int32_t icu_to_utf16(const char *from, int32_t count, UChar *to, int32_t capacity) {
  UErrorCode status = U_ZERO_ERROR;
  int32_t length = 0;
  u_strFromUTF8WithSub(to, capacity, &length, from, count, 0xFFFD, NULL, &status);
  return U_FAILURE(status) ? -1 : length;
}
/// UTF-16 to UTF-8; the capacity has to be 3 bytes a unit. Returns the number of bytes.
static inline int32_t icu_to_utf8(const UChar *from, int32_t count, char *to, int32_t capacity) {
  UErrorCode status = U_ZERO_ERROR;
  int32_t length = 0;
  u_strToUTF8WithSub(to, capacity, &length, from, count, 0xFFFD, NULL, &status);
  return U_FAILURE(status) ? -1 : length;
}

static inline int32_t icu_to_upper(UChar *to, int32_t capacity, const UChar *from, int32_t count) {
  UErrorCode status = U_ZERO_ERROR;
  return u_strToUpper(to, capacity, from, count, "", &status);
}
static inline int32_t icu_to_lower(UChar *to, int32_t capacity, const UChar *from, int32_t count) {
  UErrorCode status = U_ZERO_ERROR;
  return u_strToLower(to, capacity, from, count, "", &status);
}
/// The simple case folding of a code point.
static inline int32_t icu_fold(int32_t c) { return u_foldCase(c, U_FOLD_CASE_DEFAULT); }
static inline int icu_is_space(int32_t c) { return u_isUWhiteSpace(c); }
static inline int icu_is_alphanumeric(int32_t c) { return u_isalnum(c); }
static inline int32_t icu_simple_upper(int32_t c) { return u_toupper(c); }
static inline int32_t icu_simple_title(int32_t c) { return u_totitle(c); }
static inline int32_t icu_simple_lower(int32_t c) { return u_tolower(c); }
static inline int icu_is_mark(int32_t c) { return u_charType(c) == U_NON_SPACING_MARK; }

/// Canonical decomposition. Returns the length, which may be above the capacity, or -1.
static inline int32_t icu_nfd(const UChar *from, int32_t count, UChar *to, int32_t capacity) {
  UErrorCode status = U_ZERO_ERROR;
  const UNormalizer2 *nfd = unorm2_getNFDInstance(&status);
  if (U_FAILURE(status)) return -1;
  return unorm2_normalize(nfd, from, count, to, capacity, &status);
}

static inline URegularExpression *icu_regex_open(const UChar *pattern, int32_t count, UErrorCode *status) {
  UParseError error;
  return uregex_open(pattern, count, 0, &error, status);
}
static inline void icu_regex_close(URegularExpression *regex) { uregex_close(regex); }
/// Bounds on time and memory, so that no pattern stops a query.
static inline void icu_regex_limit(URegularExpression *regex, int32_t steps, int32_t stack, UErrorCode *status) {
  uregex_setTimeLimit(regex, steps, status);
  uregex_setStackLimit(regex, stack, status);
}
static inline void icu_regex_set_text(URegularExpression *regex, const UChar *text, int32_t count, UErrorCode *status) {
  uregex_setText(regex, text, count, status);
}
static inline int icu_regex_find(URegularExpression *regex, int32_t from, UErrorCode *status) {
  return uregex_find(regex, from, status);
}
static inline int icu_regex_find_next(URegularExpression *regex, UErrorCode *status) { return uregex_findNext(regex, status); }
static inline int32_t icu_regex_start(URegularExpression *regex, int32_t group) {
  UErrorCode status = U_ZERO_ERROR;
  return uregex_start(regex, group, &status);
}
static inline int32_t icu_regex_end(URegularExpression *regex, int32_t group) {
  UErrorCode status = U_ZERO_ERROR;
  return uregex_end(regex, group, &status);
}
static inline int32_t icu_regex_groups(URegularExpression *regex) {
  UErrorCode status = U_ZERO_ERROR;
  return uregex_groupCount(regex, &status);
}
/// Composition: normal form C. Returns the length, which may be above the capacity, or -1.
static inline int32_t icu_nfc(const UChar *from, int32_t count, UChar *to, int32_t capacity) {
  UErrorCode status = U_ZERO_ERROR;
  const UNormalizer2 *nfc = unorm2_getNFCInstance(&status);
  if (U_FAILURE(status)) return -1;
  return unorm2_normalize(nfc, from, count, to, capacity, &status);
}

// What the words of text are made of.
static inline int32_t icu_fold_turkic(int32_t c) { return u_foldCase(c, U_FOLD_CASE_EXCLUDE_SPECIAL_I); }
/// A letter, number or private use character.
static inline int icu_is_word(int32_t c) { return (U_GET_GC_MASK(c) & (U_GC_L_MASK | U_GC_N_MASK | U_GC_CO_MASK)) != 0; }
static inline int icu_is_any_mark(int32_t c) { return (U_GET_GC_MASK(c) & U_GC_M_MASK) != 0; }
/// Whether normal form C may change the character, by itself or behind another one.
static inline int icu_may_compose(int32_t c) { return u_getIntPropertyValue(c, UCHAR_NFC_QUICK_CHECK) != UNORM_YES; }
static inline int icu_is_latin_or_greek(int32_t c) {
  int32_t script = u_getIntPropertyValue(c, UCHAR_SCRIPT);
  return script == USCRIPT_LATIN || script == USCRIPT_GREEK;
}
static inline int icu_is_hangul(int32_t c) { return u_getIntPropertyValue(c, UCHAR_SCRIPT) == USCRIPT_HANGUL; }
/// Whether the word breaks never divide the character from another one of which this is true.
static inline int icu_never_breaks(int32_t c) {
  if (u_getIntPropertyValue(c, UCHAR_LINE_BREAK) == U_LB_COMPLEX_CONTEXT) return 0;
  switch (u_getIntPropertyValue(c, UCHAR_SCRIPT)) {
    case USCRIPT_HAN: case USCRIPT_HIRAGANA: case USCRIPT_KATAKANA: return 0;
  }
  switch (u_getIntPropertyValue(c, UCHAR_WORD_BREAK)) {
    case U_WB_ALETTER: case U_WB_HEBREW_LETTER: case U_WB_NUMERIC: case U_WB_EXTEND: return 1;
  }
  return 0;
}

/// The word breaks of the root locale. NULL when `status` says that it failed.
static inline UBreakIterator *icu_words_open(UErrorCode *status) { return ubrk_open(UBRK_WORD, "", NULL, 0, status); }
static inline void icu_words_close(UBreakIterator *words) { ubrk_close(words); }
/// Lets the breaks be those of UTF-8. `text` is NULL the first time, and then what was returned before; the bytes stay
/// where they are until the next call.
static inline void *icu_words_set(UBreakIterator *words, void *text, const char *bytes, int64_t count, UErrorCode *status) {
  UText *opened = utext_openUTF8((UText *)text, bytes, count, status);
  ubrk_setUText(words, opened, status);
  return opened;
}
/// The next break in bytes, or -1.
static inline int32_t icu_words_next(UBreakIterator *words) { return ubrk_next(words); }
static inline void icu_text_close(void *text) { utext_close((UText *)text); }

static inline int icu_failed(UErrorCode status) { return U_FAILURE(status); }
static inline const char *icu_error_name(UErrorCode status) { return u_errorName(status); }
static inline const char *icu_version(void) { return U_ICU_VERSION; }
/// The library that runs: its major and minor version.
static inline void icu_running_version(int *major, int *minor) {
  UVersionInfo version;
  u_getVersion(version);
  *major = version[0];
  *minor = version[1];
}
