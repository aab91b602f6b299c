#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdio.h>

// What a daemon is started with. Swift can't call functions with variable arguments.
struct cmicrohttpd_setup {
  unsigned int flags;
  unsigned int connections;
  size_t connection_memory;
  void *context;
  MHD_AccessHandlerCallback on_request;
  void *(*on_target)(void *context, const char *target, struct MHD_Connection *connection);
  MHD_RequestCompletedCallback on_completed;
  MHD_NotifyConnectionCallback on_connection;
  // Called with one line of the library's log, without its newline.
  void (*on_log)(void *context, const char *line);
};


static inline void cmicrohttpd_log(void *setup, const char *format, va_list arguments) {
  struct cmicrohttpd_setup *logger = (struct cmicrohttpd_setup *)setup;
  char line[512];
  int length = vsnprintf(line, sizeof line, format, arguments);
  if (length < 0) return;
  if ((size_t)length >= sizeof line) length = (int)sizeof line - 1;
  while (length > 0 && line[length - 1] == '\n') line[--length] = 0;
  logger->on_log(logger->context, line);
}

// The raw target is kept: nothing is decoded.
static inline size_t cmicrohttpd_keep(void *context, struct MHD_Connection *connection, char *text) {
  (void)context;
  (void)connection;
  size_t length = 0;
  while (text[length]) length++;
  return length;
}

// Starts a daemon without a listening socket. `setup` must live as long as the daemon.
static inline struct MHD_Daemon *cmicrohttpd_start(struct cmicrohttpd_setup *setup) {
  struct MHD_OptionItem options[16];
  int count = 0;
#define CMICROHTTPD_OPTION(name, number, pointer) \
  options[count++] = (struct MHD_OptionItem){(name), (intptr_t)(number), (void *)(pointer)}
  CMICROHTTPD_OPTION(MHD_OPTION_EXTERNAL_LOGGER, &cmicrohttpd_log, setup);
  CMICROHTTPD_OPTION(MHD_OPTION_UNESCAPE_CALLBACK, &cmicrohttpd_keep, NULL);
  CMICROHTTPD_OPTION(MHD_OPTION_URI_LOG_CALLBACK, setup->on_target, setup->context);
  CMICROHTTPD_OPTION(MHD_OPTION_NOTIFY_COMPLETED, setup->on_completed, setup->context);
  CMICROHTTPD_OPTION(MHD_OPTION_NOTIFY_CONNECTION, setup->on_connection, setup->context);
  CMICROHTTPD_OPTION(MHD_OPTION_CONNECTION_MEMORY_LIMIT, setup->connection_memory, NULL);
  CMICROHTTPD_OPTION(MHD_OPTION_CONNECTION_LIMIT, setup->connections, NULL);
  CMICROHTTPD_OPTION(MHD_OPTION_END, 0, NULL);
#undef CMICROHTTPD_OPTION
  return MHD_start_daemon(setup->flags, 0, NULL, NULL, setup->on_request, setup->context, MHD_OPTION_ARRAY, options,
                          MHD_OPTION_END);
}

// The descriptor that can be read from when a daemon without threads of its own has something to do.
static inline int cmicrohttpd_events(struct MHD_Daemon *daemon) {
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
  return info ? info->epoll_fd : -1;
}

static inline int cmicrohttpd_descriptor(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info ? (int)info->connect_fd : -1;
}

static inline void *cmicrohttpd_context(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info ? info->socket_context : NULL;
}

static inline size_t cmicrohttpd_header_size(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  return info ? info->header_size : 0;
}

static inline enum MHD_Result cmicrohttpd_close_upgraded(struct MHD_UpgradeResponseHandle *handle) {
  return MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
}

// Makes an answer end with its connection if its length isn't known, and not in chunks.
static inline void cmicrohttpd_avoid_chunks(struct MHD_Response *response) {
  MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
}

// Sees to it that the library looks at a connection again, in a second. A body that ends early closes the connection, and
// up to 0.9.75 the library then forgets it until something happens to its socket. Call it inside a callback of it.
static inline void cmicrohttpd_look_again(struct MHD_Connection *connection) {
  MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 1u);
}

// Bytes that were written to a socket, and that its peer hasn't confirmed; -1 if unknown.
static inline int cmicrohttpd_unconfirmed(int socket) {
  int bytes = 0;
  return ioctl(socket, SIOCOUTQ, &bytes) == 0 ? bytes : -1;
}

// Bytes of a socket that wait to be read; -1 if unknown.
static inline int cmicrohttpd_unread(int socket) {
  int bytes = 0;
  return ioctl(socket, FIONREAD, &bytes) == 0 ? bytes : -1;
}

// What glibc declares only to those who ask for all of its extensions.
extern int accept4(int socket, struct sockaddr *address, socklen_t *length, int flags);
static const short cmicrohttpd_half_closed = 0x2000;  // POLLRDHUP

