// What Swift can't call: prctl takes any number of arguments, and glibc declares ppoll and sem_clockwait only to those who ask for its
// extensions.
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

extern int ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *signals);

/// How late the waits of this thread may end, in nanoseconds. It is 50,000 unless set. Returns -1 with errno if it can't be set.
static inline int touchstone_set_timer_slack(unsigned long nanoseconds) {
  return prctl(PR_SET_TIMERSLACK, nanoseconds, 0, 0, 0);
}

extern int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *deadline);
extern void __tsan_acquire(void *address) __attribute__((weak));

/// Decrements a semaphore, or waits for that until the monotonic clock, which nobody sets, reaches the deadline. Returns -1 with errno.
static inline int touchstone_wait_until(sem_t *semaphore, const struct timespec *deadline) {
  if (sem_clockwait(semaphore, CLOCK_MONOTONIC, deadline) != 0) return -1;
  // The thread sanitizer knows sem_timedwait, but not this call.
  if (__tsan_acquire) __tsan_acquire(semaphore);
  return 0;
}
