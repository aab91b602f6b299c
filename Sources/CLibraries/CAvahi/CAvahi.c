#include "CAvahi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

// Where the library's headers are, its numbers are checked.
#if __has_include(<avahi-client/publish.h>) && __has_include(<avahi-client/lookup.h>)
#include <avahi-client/lookup.h>
#include <avahi-client/publish.h>
#include <avahi-common/error.h>
#define SAME(ours, theirs) _Static_assert((int)ours == (int)theirs, #theirs)
SAME(CAVAHI_UNSPECIFIED, AVAHI_IF_UNSPEC);
SAME(CAVAHI_UNSPECIFIED, AVAHI_PROTO_UNSPEC);
SAME(CAVAHI_IPV4, AVAHI_PROTO_INET);
SAME(CAVAHI_IPV6, AVAHI_PROTO_INET6);
SAME(CAVAHI_NO_FAIL, AVAHI_CLIENT_NO_FAIL);
SAME(CAVAHI_CLIENT_REGISTERING, AVAHI_CLIENT_S_REGISTERING);
SAME(CAVAHI_CLIENT_RUNNING, AVAHI_CLIENT_S_RUNNING);
SAME(CAVAHI_CLIENT_COLLISION, AVAHI_CLIENT_S_COLLISION);
SAME(CAVAHI_CLIENT_FAILURE, AVAHI_CLIENT_FAILURE);
SAME(CAVAHI_CLIENT_CONNECTING, AVAHI_CLIENT_CONNECTING);
SAME(CAVAHI_GROUP_ESTABLISHED, AVAHI_ENTRY_GROUP_ESTABLISHED);
SAME(CAVAHI_GROUP_COLLISION, AVAHI_ENTRY_GROUP_COLLISION);
SAME(CAVAHI_GROUP_FAILURE, AVAHI_ENTRY_GROUP_FAILURE);
SAME(CAVAHI_BROWSER_NEW, AVAHI_BROWSER_NEW);
SAME(CAVAHI_BROWSER_REMOVE, AVAHI_BROWSER_REMOVE);
SAME(CAVAHI_RESOLVER_FOUND, AVAHI_RESOLVER_FOUND);
SAME(CAVAHI_COLLISION, AVAHI_ERR_COLLISION);
#endif

const CAvahiFunctions *cavahi_load(const char *path, char *reason, size_t reasonBytes) {
  void *library = dlopen(path ? path : "libavahi-client.so.3", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(reason, reasonBytes, "%s", dlerror());
    return NULL;
  }
  CAvahiFunctions *functions = calloc(1, sizeof *functions);
  if (!functions) {
    snprintf(reason, reasonBytes, "out of memory");
    return NULL;
  }
  const char *missing = NULL;
#define X(result, name, arguments)                                                                           \
  *(void **)&functions->name = dlsym(library, "avahi_" #name);                                               \
  if (!functions->name) missing = "avahi_" #name;
  CAVAHI_FUNCTIONS(X)
#undef X
  if (missing) {
    snprintf(reason, reasonBytes, "it has no function %s", missing);
    free(functions);
    return NULL;
  }
  return functions;
}
