#include <curl/curl.h>

// Swift can't call functions with a variable number of arguments. The names are in parentheses because curl also has macros
// of these names, which want constants.
static inline CURLcode ccurl_set_long(CURL *curl, CURLoption option, long value) {
  return (curl_easy_setopt)(curl, option, value);
}

static inline CURLcode ccurl_set_pointer(CURL *curl, CURLoption option, const void *value) {
  return (curl_easy_setopt)(curl, option, value);
}

// curl copies the bytes.
static inline CURLcode ccurl_set_blob(CURL *curl, CURLoption option, const void *bytes, size_t count) {
  struct curl_blob blob = {(void *)bytes, count, CURL_BLOB_COPY};
  return (curl_easy_setopt)(curl, option, &blob);
}

static inline CURLcode ccurl_set_progress(CURL *curl, curl_xferinfo_callback callback, void *context) {
  CURLcode code = (curl_easy_setopt)(curl, CURLOPT_XFERINFOFUNCTION, callback);
  if (code == CURLE_OK) code = (curl_easy_setopt)(curl, CURLOPT_XFERINFODATA, context);
  return code;
}

static inline CURLcode ccurl_get_long(CURL *curl, CURLINFO info, long *value) {
  return (curl_easy_getinfo)(curl, info, value);
}

static inline CURLcode ccurl_get_socket(CURL *curl, curl_socket_t *socket) {
  return (curl_easy_getinfo)(curl, CURLINFO_ACTIVESOCKET, socket);
}

static inline CURLcode ccurl_get_certificates(CURL *curl, struct curl_certinfo **certificates) {
  return (curl_easy_getinfo)(curl, CURLINFO_CERTINFO, certificates);
}

// A macro of casts.
static inline CURLcode ccurl_global_init(void) { return curl_global_init(CURL_GLOBAL_ALL); }
