// Avahi's client library, opened at run time: a machine without it, or without its daemon, has no DNS-SD and works all the
// same. Nothing here needs the library's headers; its interface has been the same since version 0.6.4 (libavahi-client.so.3).

#pragma once

#include <stddef.h>
#include <stdint.h>

// Numbers of the library.
enum {
  CAVAHI_UNSPECIFIED = -1,  // any interface, any protocol
  CAVAHI_IPV4 = 0,
  CAVAHI_IPV6 = 1,

  CAVAHI_NO_FAIL = 2,  // a client waits for a daemon that isn't there

  CAVAHI_CLIENT_REGISTERING = 1,
  CAVAHI_CLIENT_RUNNING = 2,
  CAVAHI_CLIENT_COLLISION = 3,
  CAVAHI_CLIENT_FAILURE = 100,
  CAVAHI_CLIENT_CONNECTING = 101,

  CAVAHI_GROUP_ESTABLISHED = 2,
  CAVAHI_GROUP_COLLISION = 3,
  CAVAHI_GROUP_FAILURE = 4,

  CAVAHI_BROWSER_NEW = 0,
  CAVAHI_BROWSER_REMOVE = 1,

  CAVAHI_RESOLVER_FOUND = 0,

  CAVAHI_COLLISION = -8,
};

typedef void (*CAvahiClientCallback)(void *client, int state, void *context);
typedef void (*CAvahiGroupCallback)(void *group, int state, void *context);
typedef void (*CAvahiBrowserCallback)(void *browser, int interface, int protocol, int event, const char *name,
                                      const char *type, const char *domain, int flags, void *context);
typedef void (*CAvahiResolverCallback)(void *resolver, int interface, int protocol, int event, const char *name,
                                       const char *type, const char *domain, const char *host, const void *address,
                                       uint16_t port, void *text, int flags, void *context);

// The functions, as X(result, name, arguments). Objects of the library are void *.
#define CAVAHI_FUNCTIONS(X)                                                                                  \
  X(void *, threaded_poll_new, (void))                                                                       \
  X(void, threaded_poll_free, (void *poll))                                                                  \
  X(const void *, threaded_poll_get, (void *poll))                                                           \
  X(int, threaded_poll_start, (void *poll))                                                                  \
  X(int, threaded_poll_stop, (void *poll))                                                                   \
  X(void *, client_new,                                                                                      \
    (const void *poll, int flags, CAvahiClientCallback callback, void *context, int *error))                 \
  X(void, client_free, (void *client))                                                                       \
  X(int, client_errno, (void *client))                                                                       \
  X(const char *, client_get_host_name, (void *client))                                                      \
  X(const char *, strerror, (int error))                                                                     \
  X(void *, entry_group_new, (void *client, CAvahiGroupCallback callback, void *context))                    \
  X(int, entry_group_free, (void *group))                                                                    \
  X(int, entry_group_commit, (void *group))                                                                  \
  X(int, entry_group_reset, (void *group))                                                                   \
  X(int, entry_group_add_service_strlst,                                                                     \
    (void *group, int interface, int protocol, int flags, const char *name, const char *type,                \
     const char *domain, const char *host, uint16_t port, void *text))                                       \
  X(char *, alternative_service_name, (const char *name))                                                    \
  X(void, free, (void *memory))                                                                              \
  X(void *, string_list_add_arbitrary, (void *list, const uint8_t *text, size_t size))                       \
  X(void, string_list_free, (void *list))                                                                    \
  X(void *, string_list_get_next, (void *list))                                                              \
  X(uint8_t *, string_list_get_text, (void *list))                                                           \
  X(size_t, string_list_get_size, (void *list))                                                              \
  X(void *, service_browser_new,                                                                             \
    (void *client, int interface, int protocol, const char *type, const char *domain, int flags,             \
     CAvahiBrowserCallback callback, void *context))                                                         \
  X(int, service_browser_free, (void *browser))                                                              \
  X(void *, service_resolver_new,                                                                            \
    (void *client, int interface, int protocol, const char *name, const char *type, const char *domain,      \
     int addressProtocol, int flags, CAvahiResolverCallback callback, void *context))                        \
  X(int, service_resolver_free, (void *resolver))                                                            \
  X(char *, address_snprint, (char *text, size_t size, const void *address))

typedef struct CAvahiFunctions {
#define X(result, name, arguments) result(*name) arguments;
  CAVAHI_FUNCTIONS(X)
#undef X
} CAvahiFunctions;

// Opens the library `path`, or libavahi-client.so.3 if that is null. Returns null, and why not, if it isn't there. What is opened
// stays open.
const CAvahiFunctions *cavahi_load(const char *path, char *reason, size_t reasonBytes);
