// What Swift can't call: prctl takes any number of arguments, and glibc declares ppoll only to those who ask for its extensions.
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

extern int ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *signals);

/// How late the waits of this thread may end, in nanoseconds. It is 50,000 unless set. Returns -1 with errno if it can't be set.
static inline int touchstone_set_timer_slack(unsigned long nanoseconds) {
  return prctl(PR_SET_TIMERSLACK, nanoseconds, 0, 0, 0);
}
