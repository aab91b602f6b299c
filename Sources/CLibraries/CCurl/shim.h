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

static inline CURLcode ccurl_set_writer(CURL *curl, CURLoption option, curl_write_callback callback) {
  return (curl_easy_setopt)(curl, option, callback);
}

static inline CURLcode ccurl_set_reader(CURL *curl, curl_read_callback callback) {
  return (curl_easy_setopt)(curl, CURLOPT_READFUNCTION, callback);
}

static inline CURLcode ccurl_set_seeker(CURL *curl, curl_seek_callback callback) {
  return (curl_easy_setopt)(curl, CURLOPT_SEEKFUNCTION, callback);
}

// Called when a connection stands, before the request is sent.
static inline CURLcode ccurl_set_before_request(CURL *curl, curl_prereq_callback callback) {
  return (curl_easy_setopt)(curl, CURLOPT_PREREQFUNCTION, callback);
}

static inline CURLcode ccurl_set_large(CURL *curl, CURLoption option, curl_off_t value) {
  return (curl_easy_setopt)(curl, option, value);
}

static inline CURLcode ccurl_get_large(CURL *curl, CURLINFO info, curl_off_t *value) {
  return (curl_easy_getinfo)(curl, info, value);
}

static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return (curl_multi_setopt)(multi, option, value);
}

// The result of a message that says that a transfer is done.
static inline CURLcode ccurl_result(const CURLMsg *message) { return message->data.result; }

// A macro of casts.
static inline CURLcode ccurl_global_init(void) { return curl_global_init(CURL_GLOBAL_ALL); }
